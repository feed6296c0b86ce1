"""What a node's pods ask of it, kept from one picture to the next.

A cluster of 5,000 nodes and 50,000 pods was added up anew for the first page after each cycle: 110 ms, and more beside
a plan under way. From one cycle to the next few nodes change, and what did not change is the same objects.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from htas.model.money import price_text
from htas.model.nodes import Node
from htas.model.plan_document import instant_text
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.resources import MILLION, share_millionths
from htas.planning.disrupt.cleaning.utilization import shares


class Figures(msgspec.Struct, frozen=True, gc=False):
    """Of one node: what it is and costs, utilisation as the cleaner counts it, and what is asked for, DaemonSet pods
    and all. `nanos` is its price an hour, 0 where it has none (`price` is empty then), `idle_nanos` the part of it that
    nobody asks for. Nodes stand in the order of `rank`: by group, those of none last, the fullest first.
    """

    group: str
    flavour: str
    nanos: int
    price: str
    cpu: float
    memory: float
    asked_cpu_m: int
    asked_bytes: int
    idle_nanos: int
    created: str
    rank: tuple[bool, str, float, str]


class _Known(msgspec.Struct, frozen=True):
    node: Node
    pods: Sequence[Pod]
    figures: Figures


class KnownFigures:
    """Figures by node, as long as node, pods and policy are what they were. Asked by several threads: at worst one is
    worked out twice.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._policy: Policy | None = None

    def of(self, node: Node, pods: Sequence[Pod], policy: Policy, now: float) -> Figures:
        if policy is not self._policy:
            self._known, self._policy = {}, policy
        known = self._known.get(node.name)
        # Lists of the same objects are equal at first sight: nothing within the pods is looked at.
        if known is not None and known.pods == pods and (known.node is node or known.node == node):
            return known.figures
        figures = _figures(node, pods, policy, now)
        if any(pod.is_terminating for pod in pods):  # it counts until its end is overdue, and then no more
            self._known.pop(node.name, None)
        else:
            self._known[node.name] = _Known(node, pods, figures)
        return figures

    def keep(self, names: set[str]) -> None:
        """Forget nodes that are gone."""
        if len(self._known) > len(names):
            self._known = {name: known for name, known in list(self._known.items()) if name in names}


def _figures(node: Node, pods: Sequence[Pod], policy: Policy, now: float) -> Figures:
    group, nanos = node.group, policy.price_of(node)
    cpu, memory = shares(node, pods, (policy.group(group) or policy.groups[0]).cleaning, now)
    asked = [pod.requests for pod in pods]
    return Figures(
        group or "",
        node.flavour or "",
        nanos or 0,
        price_text(nanos) if nanos is not None else "",
        cpu,
        memory,
        sum([each.cpu_m for each in asked]),
        sum([each.memory_bytes for each in asked]),
        (nanos or 0) * max(0, MILLION - sum(share_millionths(each, node.allocatable) for each in asked)) // MILLION,
        instant_text(node.created_at),
        (group is None, group or "", -max(cpu, memory), node.name),
    )
