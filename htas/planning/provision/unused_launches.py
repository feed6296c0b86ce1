"""Launches that none of their pods came to use, whatever the cause.

A machine may fail, vanish, never be initialized, come with less than its flavour promises, refuse the pods, or be
deleted empty since their scheduler declines them. Each time everything speaks for the next machine. So each launch is
followed from the plan that made it: it is used once a pod that it was for, or another of the same owner, has started on
its node. It is unused when its machine fails before that, when it is deleted though pods of the owner stayed pending
while it was there, or when the node refuses those pods though nothing else runs there. What follows is in
`launch_limits.py`.

A node that others have filled was no wasted launch: it would have taken the pods. It is followed no further. Nor is a
machine wasted whose pods their controller removed before it came: no pod needed it any more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import untolerated
from htas.model.launches import FlavourPause, Launches, OpenLaunch, UnusedLaunches
from htas.model.pods import Pod
from htas.planning.cluster.classes import Bools
from htas.planning.cluster.owners import Owners
from htas.planning.cluster.simulation import Placements
from htas.planning.place.context import PlanContext

HOUR_S = 3600.0
_ENDED = frozenset({ClaimState.FAILED, ClaimState.RELEASED})
_INITIALIZED = frozenset({ClaimState.READY, ClaimState.DRAINING})


@dataclass(frozen=True, slots=True)
class LaunchesSoFar:
    """What became of earlier launches by this plan."""

    record: Launches = field(default_factory=Launches)
    left_behind: Mapping[str, frozenset[float]] = field(default_factory=dict)
    """By owner when machines were launched for pods that are gone, and that its other pods have no room on."""


def launches_so_far(context: PlanContext, placements: Placements) -> LaunchesSoFar:
    """What became of earlier launches, by the placements of this plan on what is there and coming."""
    before = _not_ahead(context.snapshot.memory.launches, context.now)
    coming = [claim for claim in context.snapshot.claims if claim.launched_for and claim.is_coming]
    if not (coming or before.open or before.unused or before.tries or before.used):
        return LaunchesSoFar()
    known = dict(before.open)
    for claim in coming:  # launched by a daemon that ended before it could remember
        if claim.id not in known and claim.ready_at is None:
            known[claim.id] = OpenLaunch(
                min(claim.created_at, context.now), claim.flavour, dict.fromkeys(claim.launched_for, ())
            )
    followed = _Followed(context, placements, before)
    for claim_id, launch in known.items():
        followed.follow(claim_id, launch)
    return followed.result()


def _not_ahead(record: Launches, now: float) -> Launches:
    """The record with no instant later than now: a clock that was ahead has been put back since."""
    clamped = functools.partial(min, now)
    return msgspec.structs.replace(
        record,
        open={claim: msgspec.structs.replace(each, at=clamped(each.at)) for claim, each in record.open.items()},
        unused={
            owner: msgspec.structs.replace(
                each,
                launched_at=tuple(map(clamped, each.launched_at)),
                flavours={name: FlavourPause(pause.times, clamped(pause.at)) for name, pause in each.flavours.items()},
                at=clamped(each.at),
            )
            for owner, each in record.unused.items()
        },
        used={owner: clamped(at) for owner, at in record.used.items()},
        tries={key: tuple(map(clamped, each)) for key, each in record.tries.items()},
    )


def with_launched(
    record: Launches, launched: Iterable[tuple[str, str, str, Sequence[Pod]]], context: PlanContext
) -> Launches:
    """The record with what is launched now: claims, each with its group, its flavour and its pods."""
    owners, now = Owners(context.policy), context.now
    new: dict[str, OpenLaunch] = {}
    for claim, group, flavour, pods in launched:
        by_owner: dict[str, list[str]] = {} if pods else {minimum_of(group): []}
        for pod in pods:
            by_owner.setdefault(owners.of(pod), []).append(pod.uid)
        new[claim] = OpenLaunch(now, flavour, {owner: tuple(uids) for owner, uids in sorted(by_owner.items())})
    return msgspec.structs.replace(record, open={**record.open, **new}) if new else record


def pod_of_owner(owner: str, uid: str) -> str:
    """The key of a pod in `Launches.tries`: what became of its launches says nothing once its group is mended."""
    return f"{uid} {owner}"


_MINIMUM = "minNodes/"


def minimum_of(group: str) -> str:
    """The owner of machines that are launched for a group and for no pods: one is used once it is initialized."""
    return _MINIMUM + group


class _Followed:
    """Follows launches through one plan."""

    def __init__(self, context: PlanContext, placements: Placements, before: Launches) -> None:
        self._context = context
        self._placements = placements
        self._owners = Owners(context.policy)
        self._before = before
        self._open: dict[str, OpenLaunch] = {}
        self._unused = dict(self._before.unused)
        self._used = dict(self._before.used)
        self._tries = dict(self._before.tries)
        self._left_behind: dict[str, set[float]] = {}
        self._holding: dict[int, Bools] = {}

    @functools.cached_property
    def _claims(self) -> Mapping[str, NodeClaim]:
        return {claim.id: claim for claim in self._context.snapshot.claims}

    @functools.cached_property
    def _rows(self) -> Mapping[str, int]:
        """Rows by claim, of nodes that are there and of machines that are coming."""
        nodes = enumerate(self._context.simulated.sim.table.nodes)
        return {node.claim: row for row, node in nodes if node.claim is not None}

    @functools.cached_property
    def _pods(self) -> Mapping[str, Pod]:
        """By uid."""
        return {pod.uid: pod for pod in self._context.snapshot.cluster.pods}

    @functools.cached_property
    def _pending(self) -> frozenset[str]:
        """Owners of pods that are pending, those included that their scheduler declines to place."""
        simulated = self._context.simulated
        return frozenset(self._owners.of(pod) for pod in (*simulated.waiting, *simulated.declined))

    @functools.cached_property
    def _placed(self) -> frozenset[str]:
        """Pods (uids) that this plan places somewhere."""
        return frozenset(pod.uid for pods in self._placements.values() for pod in pods)

    @functools.cached_property
    def _without_room(self) -> Mapping[str, Pod]:
        """By owner the first by name of its pods that this plan places nowhere."""
        without: dict[str, Pod] = {}
        for pod in sorted(self._context.simulated.waiting, key=lambda pod: pod.key):
            if pod.uid not in self._placed:
                without.setdefault(self._owners.of(pod), pod)
        return without

    def follow(self, claim_id: str, launch: OpenLaunch) -> None:
        """Take one launch further."""
        claim = self._claims.get(claim_id)
        owners, row = self._not_served(claim_id, claim, launch), self._rows.get(claim_id)
        launch = self._as_seen(launch, claim, row)
        if claim is None or claim.state in _ENDED:
            self._ended(claim, launch, owners)
            return
        if row is not None and claim.state is ClaimState.READY:
            owners = {o: uids for o, uids in owners.items() if not self._is_settled(o, uids, launch, row)}
        if owners or claim.is_coming:
            self._open[claim_id] = msgspec.structs.replace(launch, owners=owners)
            is_leaving = claim.state is ClaimState.DRAINING
            staying = {o: uids for o, uids in owners.items() if not is_leaving or o in launch.still_pending}
            self._note_left_behind(staying, launch, row)

    def _as_seen(self, launch: OpenLaunch, claim: NodeClaim | None, row: int | None) -> OpenLaunch:
        """The launch with what this plan shows: whether its machine was made and initialized, who is still pending."""
        if claim is None:
            return launch
        still_pending = launch.still_pending
        if claim.state is ClaimState.READY:
            here = {self._owners.of(pod) for pod in (self._placements.get(row, ()) if row is not None else ())}
            found = {o for o in self._pending.intersection(launch.owners) if launch.is_initialized or o not in here}
            still_pending = tuple(sorted(found.union(still_pending)))
        return msgspec.structs.replace(
            launch,
            is_made=launch.is_made or claim.instance is not None,
            is_initialized=launch.is_initialized or claim.ready_at is not None or claim.state in _INITIALIZED,
            still_pending=still_pending,
        )

    def _ended(self, claim: NodeClaim | None, launch: OpenLaunch, owners: Mapping[str, tuple[str, ...]]) -> None:
        """Note an ended launch for the owners that did not use it, unless their controllers wanted it no more."""
        if not launch.is_made:  # what the cloud refused was no launch
            return
        has_failed = not launch.is_initialized or (claim is not None and claim.state is ClaimState.FAILED)
        why = claim.message if claim is not None and claim.message else "its machine was deleted unused"
        for owner, uids in owners.items():
            if has_failed or owner in launch.still_pending:
                self._note_unused(owner, uids, launch, why)

    def _not_served(self, claim_id: str, claim: NodeClaim | None, launch: OpenLaunch) -> dict[str, tuple[str, ...]]:
        """The owners and pods of a launch that do not run yet; where an owner's pod runs on its node, it is used."""
        row = self._rows.get(claim_id) if claim is not None else None
        here = self._context.simulated.running.get(row, ()) if row is not None else ()
        users = {self._owners.of(pod) for pod in here if pod.started_at is not None and pod.is_work}
        left: dict[str, tuple[str, ...]] = {}
        for owner, uids in launch.owners.items():
            if owner in users or (owner.startswith(_MINIMUM) and claim is not None and self._is_here(claim)):
                self._note_used(owner, launch)
                continue
            still = tuple(uid for uid in uids if not self._runs(uid))
            if still or not uids:
                left[owner] = still
        return left

    def _is_here(self, claim: NodeClaim) -> bool:
        """Whether a machine has been initialized for long enough that the cloud's list would lack one that is gone."""
        here_s = self._context.now - (claim.ready_at if claim.ready_at is not None else claim.since)
        is_listed = claim.state is ClaimState.READY and claim.missing_since is None
        return is_listed and here_s > self._context.policy.timeouts.missing_s

    def _runs(self, uid: str) -> bool:
        pod = self._pods.get(uid)
        return pod is not None and pod.started_at is not None

    def _is_settled(self, owner: str, uids: tuple[str, ...], launch: OpenLaunch, row: int) -> bool:
        """Whether nothing more is to be found out of a node that is there: it refuses an owner's pods, or others use it
        that came first."""
        simulated, pod = self._context.simulated, self._without_room.get(owner)
        node, is_in_use = simulated.sim.table.nodes[row], self._is_in_use(row)
        if pod is None:
            return is_in_use and self._context.now - launch.at > HOUR_S
        if not simulated.sim.table.is_open[row] or not node.takes_pods:
            return False
        cls = simulated.book.class_of(pod)
        if self._could_hold(pod, row) and (is_in_use or self._placements.get(row)):
            return is_in_use
        if simulated.sim.fits(cls, row):
            return False
        why = ", ".join(sorted(simulated.sim.diagnose(cls, slice(row, row + 1))))
        taint = untolerated(node.taints, pod.constraints.tolerations)
        why += f" {taint.key}" if taint is not None else ""
        self._note_unused(owner, uids, launch, f"{node.name} did not admit it: {why}")
        return True

    def _could_hold(self, pod: Pod, row: int) -> bool:
        cls = self._context.simulated.book.class_of(pod)
        if id(cls) not in self._holding:
            self._holding[id(cls)] = self._context.simulated.sim.could_hold(cls)
        return bool(self._holding[id(cls)][row])

    def _is_in_use(self, row: int) -> bool:
        return any(pod.is_work for pod in self._context.simulated.running.get(row, ()))

    def _note_left_behind(self, owners: Mapping[str, tuple[str, ...]], launch: OpenLaunch, row: int | None) -> None:
        """Note launches whose pods are all gone and that no pod of their owner has room on."""
        gone = [owner for owner, uids in owners.items() if not any(uid in self._pods for uid in uids)]
        if not gone:
            return
        here = {self._owners.of(pod) for pod in (self._placements.get(row, ()) if row is not None else ())}
        for owner in gone:
            if owner not in here:
                self._left_behind.setdefault(owner, set()).add(launch.at)

    def _note_used(self, owner: str, launch: OpenLaunch) -> None:
        """What was launched before or with it is forgiven, and its flavour's pause is over."""
        self._used[owner] = max(launch.at, self._used.get(owner, launch.at))
        known = self._unused.pop(owner, None)
        if known is None:
            return
        launched_at = tuple(at for at in known.launched_at if at > launch.at)
        flavours = {name: pause for name, pause in known.flavours.items() if name != launch.flavour}
        if launched_at or flavours:
            self._unused[owner] = msgspec.structs.replace(known, launched_at=launched_at, flavours=flavours)

    def _note_unused(self, owner: str, uids: Sequence[str], launch: OpenLaunch, why: str) -> None:
        for uid in uids:
            key = pod_of_owner(owner, uid)
            self._tries[key] = (*self._tries.get(key, ()), launch.at)
        if launch.at <= self._used.get(owner, -math.inf):
            return  # others of the owner use what was launched with it: it counts for its own pods alone
        now, known = self._context.now, self._unused.get(owner, UnusedLaunches())
        pause = known.flavours.get(launch.flavour, FlavourPause(0, now))
        is_another = launch.at not in known.launched_at  # machines of one plan are one try
        flavours = {**known.flavours, launch.flavour: FlavourPause(pause.times + is_another, now)}
        launched_at = tuple(sorted({*known.launched_at, launch.at}))
        self._unused[owner] = UnusedLaunches(launched_at, flavours, f"{launch.flavour}: {why}", now)

    def result(self) -> LaunchesSoFar:
        """The record, without what is older than an hour."""
        since = self._context.now - HOUR_S
        unused = {
            owner: msgspec.structs.replace(each, launched_at=tuple(at for at in each.launched_at if at > since))
            for owner, each in self._unused.items()
            if each.at > since - HOUR_S  # its flavours may pause for longer than it counts
        }
        tries = {
            key: kept
            for key, each in self._tries.items()
            if (kept := tuple(at for at in each if at > since)) and not self._runs(key.partition(" ")[0])
        }
        left_behind = {owner: frozenset(at for at in each if at > since) for owner, each in self._left_behind.items()}
        record = Launches(self._open, unused, self._still_of_use(), tries, self._before.declined)
        return LaunchesSoFar(record, left_behind)

    def _still_of_use(self) -> dict[str, float]:
        """When the newest used launch of an owner was made, for owners that an older launch is open for."""
        first: dict[str, float] = {}
        for launch in self._open.values() if self._used else ():
            for owner in launch.owners:
                first[owner] = min(launch.at, first.get(owner, launch.at))
        return {owner: at for owner, at in self._used.items() if first.get(owner, math.inf) <= at}
