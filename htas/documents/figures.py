"""What a node's pods ask of it, kept from one picture to the next.

A cluster of 5,000 nodes and 50,000 pods was added up anew for the first page after each cycle: 110 ms, and more beside
a plan under way. From one cycle to the next few nodes change, and what did not change is the same objects.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from htas.model.nodes import Node
from htas.model.plan_document import instant_text
from htas.model.pods import Pod
from htas.model.policy import CleaningRules
from htas.planning.disrupt.cleaning.utilization import shares


class Figures(msgspec.Struct, frozen=True, gc=False):
    """Of one node: utilisation as the cleaner counts it, and what is asked for, DaemonSet pods and all."""

    cpu: float
    memory: float
    asked_cpu_m: int
    asked_bytes: int
    created: str


class _Known(msgspec.Struct, frozen=True):
    node: Node
    pods: Sequence[Pod]
    rules: CleaningRules
    figures: Figures


class KnownFigures:
    """Figures by node, as long as node, pods and rules are what they were. Asked by several threads: at worst one is
    worked out twice.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def of(self, node: Node, pods: Sequence[Pod], rules: CleaningRules, now: float) -> Figures:
        known = self._known.get(node.name)
        # Lists of the same objects are equal at first sight: nothing within the pods is looked at.
        if known is not None and known.pods == pods and known.rules == rules and known.node == node:
            return known.figures
        figures = _figures(node, pods, rules, now)
        if any(pod.is_terminating for pod in pods):  # it counts until its end is overdue, and then no more
            self._known.pop(node.name, None)
        else:
            self._known[node.name] = _Known(node, pods, rules, figures)
        return figures

    def keep(self, names: set[str]) -> None:
        """Forget nodes that are gone."""
        if len(self._known) > len(names):
            self._known = {name: known for name, known in list(self._known.items()) if name in names}


def _figures(node: Node, pods: Sequence[Pod], rules: CleaningRules, now: float) -> Figures:
    cpu, memory = shares(node, pods, rules, now)
    asked_cpu = asked_bytes = 0
    for pod in pods:
        asked_cpu += pod.requests.cpu_m
        asked_bytes += pod.requests.memory_bytes
    return Figures(cpu, memory, asked_cpu, asked_bytes, instant_text(node.created_at))
