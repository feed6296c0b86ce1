"""Which parts of a rearrangement hang together: pods that leave a node make room for those that come to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from htas.model.rearrangement import OpenRearrangement
from htas.planning.cluster.slots import Reservation


@dataclass(frozen=True, slots=True)
class Component:
    """Nodes between which pods go, directly or over others.

    `gains`: more is placed when it is done than now, priority by priority from the highest; or a move that a suggestion
    is made for is still to come. `disturbs`: pods are still to leave their nodes for it.
    """

    nodes: frozenset[str]
    gains: bool
    disturbs: bool


def components(current: OpenRearrangement, reservations: Sequence[Reservation]) -> list[Component]:
    """The components, in the order of their nodes' names."""
    slots = [each.held.slot for each in reservations]
    groups = _joined(
        [
            *([node for node in (slot.source, slot.node) if node is not None] for slot in slots),
            *([victim.node] for victim in current.victims if victim.node is not None),
        ]
    )
    found = []
    for nodes in groups:
        placed: Counter[int] = Counter()
        for each in reservations:
            placed[each.held.slot.pod.priority] += each.held.slot.node in nodes and _is_awaited(each)
        placed.subtract(victim.priority for victim in current.victims if victim.node in nodes)
        disturbs = any(victim.node in nodes for victim in current.victims) or any(
            not slot.is_away and slot.node in nodes for slot in slots
        )
        is_aimed_at = any(slot.is_aim and slot.node in nodes for slot in slots)
        found.append(Component(nodes, is_aimed_at or _is_gain(placed), disturbs))
    return found


def _is_awaited(each: Reservation) -> bool:
    """Whether somebody is placed when the slot is filled; of a pod that was moved its owner makes another."""
    slot = each.held.slot
    return slot.is_away and (each.held.pod is not None or slot.source is not None)


def _is_gain(placed: Counter[int]) -> bool:
    return next((placed[priority] > 0 for priority in sorted(placed, reverse=True) if placed[priority]), False)


def _joined(edges: Iterable[Sequence[str]]) -> list[frozenset[str]]:
    """Sets of names that edges connect."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        leader.setdefault(name, name)
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for edge in edges:
        for name in edge:
            leader[find(name)] = find(edge[0])
    groups: dict[str, set[str]] = {}
    for name in leader:
        groups.setdefault(find(name), set()).add(name)
    return sorted((frozenset(group) for group in groups.values()), key=min)
