"""The queue: proposals that are being carried out, as journalled, with what of each is not done yet.

A proposal that empties a node is a `Drain`; one that moves pods for others' sake, or for the edge's, an
`OpenRearrangement`. A preemption needs no entry: what it has promised stands on the pod that it is for. Nor does a move
that somebody asked for, which its method writes down on the pods, nor a machine that is handed back, whose claim is
Draining. Nor do purchases that are to replace nodes: their
claims name them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from htas.model.moves import Move
from htas.model.rearrangement import OpenRearrangement


class Drain(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="drain"):
    """A node being emptied. `claim` is what is released when it is empty."""

    node: str
    claim: str
    reason: str
    started_at: float
    moves: tuple[Move, ...] = ()
    version: int = 0

    @property
    def id(self) -> str:
        return drain_id(self.node)


Disruption = Drain | OpenRearrangement
"""An entry of the queue. `version` counts the journal's writes of it, and `id` tells it from all others."""
ANY_DISRUPTION: type[Disruption] = Disruption  # type: ignore[assignment] # a union: what msgspec is told to decode


def drain_id(node: str) -> str:
    """The entry of a node that is emptied. No node's name has a slash."""
    return f"drain/{node}"


def drains_of(queue: Iterable[Disruption]) -> tuple[Drain, ...]:
    return tuple(each for each in queue if isinstance(each, Drain))


def rearrangement_of(queue: Iterable[Disruption]) -> OpenRearrangement | None:
    """The rearrangement under way: there is one at most."""
    return next((each for each in queue if isinstance(each, OpenRearrangement)), None)
