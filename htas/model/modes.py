"""How much HTAS does by itself: of mode recommend what it would be in charge of, of mode approve who is asked."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from htas.model.nodes import Node
from htas.model.pods import Pod


class Charge(msgspec.Struct, frozen=True):
    """What HTAS would be in charge of, were it let: pods by scheduler and namespace, nodes by their labels.

    `namespaces` and `without` are names with `*` and `?` as in a shell. Pods of others stay where they are put; nodes
    of others, and those without a price, are there whatever HTAS does. `startup_s` is how long a machine would take to
    come; None: as long as the groups say.
    """

    schedulers: tuple[str, ...] = ("default-scheduler",)
    namespaces: tuple[str, ...] = ("*",)
    without: tuple[str, ...] = ()
    nodes: Mapping[str, str] = {}
    startup_s: float | None = None

    def has_pod(self, pod: Pod, scheduler_name: str) -> bool:
        """Whether HTAS would place, and might move, a pod; `scheduler_name` is its own."""
        if pod.scheduler != scheduler_name and pod.scheduler not in self.schedulers:
            return False
        is_named = any(fnmatchcase(pod.namespace, name) for name in self.namespaces)
        return is_named and not any(fnmatchcase(pod.namespace, name) for name in self.without)

    def has_node(self, node: Node) -> bool:
        """Whether it is one of those that HTAS would judge, empty and give back."""
        return all(node.labels.get(key) == value for key, value in self.nodes.items())


class Otherwise(StrEnum):
    """What becomes of a proposal about which nobody has said anything in time."""

    REJECT = "reject"
    CARRY_OUT = "carry-out"


class Approval(msgspec.Struct, frozen=True):
    """With `mode: approve`: how long a proposal waits, what silence means, and for how long a no counts."""

    within_s: float = 1800.0
    otherwise: Otherwise = Otherwise.REJECT
    again_s: float = 14400.0
