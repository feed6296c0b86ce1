"""Limits of namespaces: a launched machine takes no pod whose namespace would be charged more than its limit.

kube-scheduler has no such plugin: its ResourceQuota bounds what pods ask for, and not what their machines cost.
"""

from __future__ import annotations

from collections.abc import Iterator

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal

REASON = "node(s) would exceed the limit of the pod's namespace"


def refuse(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    if context.cap is not None and cls.charged_to:
        beyond = context.cap.refused(cls, rows)
        if beyond.any():
            yield FilterRefusal(REASON, beyond)
