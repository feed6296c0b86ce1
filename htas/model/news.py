"""News: what HTAS tells people about their objects, as Kubernetes Events do."""

from __future__ import annotations

import msgspec


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened to an object, or did not. `name` is `namespace/name`, or `name` for a Node.

    `reason` is one word in CamelCase from the vocabulary of kube-scheduler and Cluster Autoscaler.
    """

    kind: str
    name: str
    reason: str
    message: str
    uid: str = ""
    is_warning: bool = False
