"""What became of launched machines, seen from the pods that they were launched for.

A launch is unused while none of the pods that it was for, and no other pod of their owner, has come to run on its node.
Owners are marks made by `htas.planning.cluster.owners`: pods that are made again under other names have the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

MOST_OWNERS = 20
"""So many owners of a launch are written into the journal, the first by their marks."""


class OpenLaunch(msgspec.Struct, frozen=True, omit_defaults=True):
    """A launched machine that is coming, or there and unused: `owners` has the pods (uids) it is for, by owner.

    An owner without pods is known from the journal alone. `is_made`: the cloud has made the machine.
    `is_initialized`: its node was initialized. `still_pending`: owners whose pods were pending after that.
    """

    at: float
    flavour: str
    owners: Mapping[str, tuple[str, ...]] = {}
    is_made: bool = False
    is_initialized: bool = False
    still_pending: tuple[str, ...] = ()


class FlavourPause(msgspec.Struct, frozen=True):
    """How many launches of a flavour in a row were unused, and when the last was found to be."""

    times: int
    at: float


class UnusedLaunches(msgspec.Struct, frozen=True, omit_defaults=True):
    """An owner's launches within the last hour that ended unused, or whose nodes refuse its pods: when each was made.

    `why` is what is known of the last one.
    """

    launched_at: tuple[float, ...] = ()
    flavours: Mapping[str, FlavourPause] = {}
    why: str = ""
    at: float = 0.0
    """When the last one was found to be unused."""


class Declined(msgspec.Struct, frozen=True, omit_defaults=True):
    """Room that pods of an owner have on nodes and that their scheduler does not use: since when.

    `times` is how often in a row it was not used for `timeouts.unused`; `until` then no room is kept for them.
    """

    since: float | None = None
    times: int = 0
    until: float = 0.0


class Launches(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one plan hands to the next about launches; each part is empty where every launch is used."""

    open: Mapping[str, OpenLaunch] = {}
    """By claim."""
    unused: Mapping[str, UnusedLaunches] = {}
    """By owner."""
    used: Mapping[str, float] = {}
    """By owner when the newest launch was made that its pods use, while older ones of the owner are open."""
    tries: Mapping[str, tuple[float, ...]] = {}
    """By pod (uid and owner): when its launches that ended unused were made, within the last hour."""
    declined: Mapping[str, Declined] = {}
    """By owner whose pods another scheduler binds."""

    def owners_of(self, claim: str) -> tuple[str, ...]:
        """Marks of the owners that an open launch is for, the first of them: so many go into the journal."""
        launch = self.open.get(claim)
        return tuple(launch.owners)[:MOST_OWNERS] if launch is not None else ()
