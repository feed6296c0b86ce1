"""What became of launched machines, seen from the pods that they were launched for.

A launch is in use for an owner from when a pod of that owner runs on its node. It is used for good, settled, once its
machine has served for a while or has ended without failing; if the machine fails before that, the launch is unused.
Owners are marks made by `htas.planning.cluster.owners`: pods that are made again under other names have the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class OpenLaunch(msgspec.Struct, frozen=True, omit_defaults=True):
    """A launched machine that is coming, or there and not settled: `owners` has the pods (uids) it is for, by owner.

    An owner without pods is known from the journal alone. `is_made`: the cloud has made the machine.
    `is_initialized`: its node was initialized. `still_pending`: owners whose pods were pending after that.
    """

    at: float
    flavour: str
    owners: Mapping[str, tuple[str, ...]] = {}
    is_made: bool = False
    is_initialized: bool = False
    still_pending: tuple[str, ...] = ()
    in_use: Mapping[str, float] = {}
    """By owner whose pods have come to run on its node: since when. These are not among `owners` any more."""
    serving: tuple[str, ...] = ()
    """Owners of these whose pods run there now, on a Ready node: older launches are forgiven for them."""
    is_in_doubt: bool = False
    """Work has run there, and its machine is missing or its node not Ready: for owners in use, and for namespaces, it
    counts as unused until that is known."""
    has_run_work: bool = False
    """Whether any work has run on its node, whoever the owner is."""
    failure: str = ""
    """Why its machine failed, where the journal alone knows."""


class FlavourPause(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many launches of a flavour in a row were unused, and when the last was found to be.

    `launched_at` is when the newest of them was made.
    """

    times: int
    at: float
    launched_at: float = 0.0


class UnusedLaunches(msgspec.Struct, frozen=True, omit_defaults=True):
    """An owner's launches within the last hour that ended unused, or whose nodes refuse its pods: when each was made.

    `why` is what is known of the last one.
    """

    launched_at: tuple[float, ...] = ()
    flavours: Mapping[str, FlavourPause] = {}
    why: str = ""
    at: float = 0.0
    """When the last one was found to be unused."""

    def newer_than(self, launch: OpenLaunch) -> UnusedLaunches:
        """Without what was launched before or with one that is used; the pause of its flavour is over."""
        flavours = self.flavours.items()
        return msgspec.structs.replace(
            self,
            launched_at=tuple(at for at in self.launched_at if at > launch.at),
            flavours={name: each for name, each in flavours if name != launch.flavour or each.launched_at > launch.at},
        )


class Declined(msgspec.Struct, frozen=True, omit_defaults=True):
    """Room that pods of an owner have on nodes and that their scheduler does not use: since when.

    `times` is how often in a row it was not used for `timeouts.unused`; `until` then no room is kept for them.
    """

    since: float | None = None
    times: int = 0
    until: float = 0.0


class Launches(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one plan hands to the next about launches; each part is empty where every launch is settled."""

    open: Mapping[str, OpenLaunch] = {}
    """By claim."""
    unused: Mapping[str, UnusedLaunches] = {}
    """By owner. While a newer launch of the owner is in use, they do not count (`counted`)."""
    used: Mapping[str, float] = {}
    """By owner when the newest settled launch was made: while older ones of the owner are open, and for an hour where
    launches for its namespace are unused."""
    tries: Mapping[str, tuple[float, ...]] = {}
    """By pod (uid and owner): when its launches that ended unused were made, within the last hour."""
    declined: Mapping[str, Declined] = {}
    """By owner whose pods another scheduler binds."""
    of_nobody: Mapping[str, tuple[float, ...]] = {}
    """When launches were made within the last hour that ended without a pod on their nodes, or whose pods were deleted
    before: by one owner of each launch, so that a machine for many owners counts once for their namespace."""

    def owners_of(self, claim: str) -> tuple[str, ...]:
        """Marks of the owners that an open launch is for, as they go into the journal."""
        launch = self.open.get(claim)
        return tuple(launch.owners) if launch is not None else ()

    def serving(self) -> Mapping[str, list[OpenLaunch]]:
        """By owner the launches, not settled, on whose nodes its pods run."""
        return _by_owner((owner, launch) for launch in self.open.values() for owner in launch.serving)

    def in_doubt(self) -> Mapping[str, list[OpenLaunch]]:
        """By owner the launches in use whose machines may have failed."""
        doubtful = (launch for launch in self.open.values() if launch.is_in_doubt)
        return _by_owner((owner, launch) for launch in doubtful for owner in launch.in_use)

    def counted(self) -> Mapping[str, UnusedLaunches]:
        """By owner the unused launches that count: those newer than each launch that serves its pods."""
        serving = self.serving() if self.unused else {}
        left = {owner: newer_than_all(known, serving.get(owner, ())) for owner, known in self.unused.items()}
        return {owner: known for owner, known in left.items() if known.launched_at or known.flavours}

    def is_settled(self, claim: str, at: float, owner: str) -> bool:
        """Whether what became of the launch of a claim, made at an instant, is of no more consequence for an owner."""
        launch, known = self.open.get(claim), self.unused.get(owner)
        is_open = launch is not None and (owner in launch.owners or owner in launch.in_use)
        return not is_open and (known is None or at not in known.launched_at)


def newer_than_all(known: UnusedLaunches, launches: Iterable[OpenLaunch]) -> UnusedLaunches:
    """Without what each of the launches forgives."""
    for launch in launches:
        known = known.newer_than(launch)
    return known


def _by_owner(launches: Iterable[tuple[str, OpenLaunch]]) -> Mapping[str, list[OpenLaunch]]:
    found: dict[str, list[OpenLaunch]] = {}
    for owner, launch in launches:
        found.setdefault(owner, []).append(launch)
    return found
