"""Launches that none of their pods came to use, whatever the cause.

A machine may fail, vanish, never be initialized, come with less than its flavour promises, refuse the pods, be brought
down by them as they start, or be deleted empty since their scheduler declines them. Each time everything speaks for the
next machine. So each launch is followed from the plan that made it. It is in use once a pod that it was for, or another
of the same owner, has started on its node. It is settled as used once its machine has then served for its part of the
hour, once such a pod has succeeded there, or when the machine ends without failing. It is unused when its machine fails
before that, when it is deleted though pods of the owner stayed pending while it was there, or when the node refuses
those pods though nothing else runs there. What follows is in `launch_limits.py`.

A node that others have filled was no wasted launch: it would have taken the pods. It is followed no further, and counts
as a try for those of its pods that still have no room: agents may fill every new node. Nor is a
launch unused whose pods their controller removed before the machine came: no pod needed it any more. If nothing ever
ran there, that counts for the namespace (`Launches.of_nobody`), whose pods may come again under another owner.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import untolerated
from htas.model.launches import FlavourPause, Launches, OpenLaunch, UnusedLaunches
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.planning.cluster.classes import Bools
from htas.planning.cluster.owners import Owners, maker_of_mark, namespace_of
from htas.planning.cluster.simulation import Placements
from htas.planning.place.context import PlanContext
from htas.planning.provision.launch_record import HOUR_S, MINIMUM, not_ahead, of_the_last_hour, pod_of_owner

_ENDED = frozenset({ClaimState.FAILED, ClaimState.RELEASED})
_WITH_NODE = frozenset({ClaimState.REGISTERED, ClaimState.READY})
_INITIALIZED = frozenset({ClaimState.READY, ClaimState.DRAINING})


@dataclass(frozen=True, slots=True)
class LaunchesSoFar:
    """What became of earlier launches by this plan."""

    record: Launches = field(default_factory=Launches)
    left_behind: Mapping[str, frozenset[float]] = field(default_factory=dict)
    """By owner when machines were launched for pods that are gone, and that its other pods have no room on."""
    of_nobody: Mapping[str, frozenset[float]] = field(default_factory=dict)
    """As `Launches.of_nobody`, of launches whose machines are still coming or there."""


def part_of_the_hour_s(policy: Policy) -> float:
    """How long a machine in use serves before its launch is settled as used.

    Machines that fail one after another later than that are no more than may be launched within an hour.
    """
    return HOUR_S / policy.max_launches_per_pod


def launches_so_far(context: PlanContext, placements: Placements) -> LaunchesSoFar:
    """What became of earlier launches, by the placements of this plan on what is there and coming."""
    before = not_ahead(context.snapshot.memory.launches, context.now)
    coming = [claim for claim in context.snapshot.claims if claim.launched_for and claim.is_coming]
    if not (coming or before.open or before.unused or before.tries or before.used or before.of_nobody):
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
        self._of_nobody = dict(self._before.of_nobody)
        self._still_of_nobody: dict[str, set[float]] = {}
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
    def _ready(self) -> frozenset[str]:
        """Claims whose nodes are Ready now."""
        nodes = self._context.snapshot.cluster.nodes
        return frozenset(node.claim for node in nodes if node.is_ready and node.claim is not None)

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

    @functools.cached_property
    def _succeeded(self) -> Mapping[str, frozenset[str]]:
        """By node the makers of pods that have succeeded there."""
        found: dict[str, set[str]] = {}
        for end in self._context.snapshot.cluster.ended:
            if end.succeeded and end.node:
                found.setdefault(end.node, set()).add(end.maker)
        return {node: frozenset(makers) for node, makers in found.items()}

    def follow(self, claim_id: str, launch: OpenLaunch) -> None:
        """Take one launch further."""
        claim = self._claims.get(claim_id)
        row = self._rows.get(claim_id) if claim is not None else None
        launch = self._as_seen(launch, claim, row)
        launch = self._without_settled(launch, claim, row, claim_id)
        if claim is None or claim.state in _ENDED:
            self._ended(claim, launch)
            return
        owners = launch.owners
        if row is not None and claim.state is ClaimState.READY:
            owners = {o: uids for o, uids in owners.items() if not self._is_over(o, uids, launch, row)}
        if owners or launch.in_use or claim.is_coming:
            self._open[claim_id] = msgspec.structs.replace(launch, owners=owners)
        if owners:
            is_leaving = claim.state is ClaimState.DRAINING
            staying = {o: uids for o, uids in owners.items() if not is_leaving or o in launch.still_pending}
            self._note_left_behind(staying, launch, row)
        if launch.is_in_doubt:
            self._note_still_of_nobody(launch)

    def _as_seen(self, launch: OpenLaunch, claim: NodeClaim | None, row: int | None) -> OpenLaunch:
        """The launch with what this plan shows: how far its machine is, who uses it, and who is still pending."""
        launch = self._with_use(launch, claim, row)
        if claim is None:
            return launch
        still_pending = launch.still_pending
        if claim.state is ClaimState.READY:
            room = {self._owners.of(pod) for pod in (self._placements.get(row, ()) if row is not None else ())}
            found = {o for o in self._pending.intersection(launch.owners) if launch.is_initialized or o not in room}
            still_pending = tuple(sorted(found.union(still_pending)))
        return msgspec.structs.replace(
            launch,
            is_made=launch.is_made or claim.instance is not None,
            is_initialized=launch.is_initialized or claim.ready_at is not None or claim.state in _INITIALIZED,
            still_pending=still_pending,
        )

    def _with_use(self, launch: OpenLaunch, claim: NodeClaim | None, row: int | None) -> OpenLaunch:
        """The launch with the owners whose pods run on its node, and without pods that run elsewhere."""
        here = self._context.simulated.running.get(row, ()) if row is not None else ()
        in_use, now = dict(launch.in_use), self._context.now
        running: set[str] = set()
        for pod in here:
            if pod.started_at is None or not pod.is_work:
                continue
            running.add(owner := self._owners.of(pod))
            if owner in launch.owners or owner in in_use:
                in_use[owner] = min(in_use.get(owner, now), max(pod.started_at, launch.at))
        if claim is not None and self._is_here(claim):
            minimum = [owner for owner in (*launch.owners, *in_use) if owner.startswith(MINIMUM)]
            in_use = dict.fromkeys(minimum, claim.ready_at or claim.since) | in_use
            running.update(minimum)
        is_well, is_leaving = self._is_well(claim), claim is None or claim.state is ClaimState.DRAINING
        has_run_work = launch.has_run_work or any(pod.started_at is not None and pod.is_work for pod in here)
        left = {owner: self._not_running(uids) for owner, uids in launch.owners.items() if owner not in in_use}
        return msgspec.structs.replace(
            launch,
            owners={owner: still for owner, still in left.items() if still or not launch.owners[owner]},
            in_use=in_use,
            serving=tuple(sorted(running & in_use.keys())) if is_well else (),
            is_in_doubt=(has_run_work or bool(in_use)) and not is_well and not is_leaving,
            has_run_work=has_run_work,
        )

    def _is_well(self, claim: NodeClaim | None) -> bool:
        """Whether a machine is listed and its node Ready, as far as is known."""
        is_listed = claim is not None and claim.state in _WITH_NODE and claim.missing_since is None
        return is_listed and claim is not None and claim.id in self._ready

    def _served_until(self, claim: NodeClaim | None) -> float:
        """When a machine was seen well last, as far as is known: plans may be far apart where nothing happens."""
        if claim is None:
            return -math.inf
        if claim.missing_since is not None:
            return claim.missing_since
        if self._is_well(claim):
            return self._context.now
        return claim.since if claim.state is ClaimState.REGISTERED else -math.inf

    def _without_settled(
        self, launch: OpenLaunch, claim: NodeClaim | None, row: int | None, claim_id: str
    ) -> OpenLaunch:
        """The launch without the owners that it is settled for as used."""
        served_until, part_s = self._served_until(claim), part_of_the_hour_s(self._context.policy)
        is_leaving = claim is None or claim.state is ClaimState.DRAINING
        node = self._context.simulated.sim.table.nodes[row].name if row is not None else claim_id
        makers = self._succeeded.get(node, frozenset())
        settled = {o for o in (*launch.owners, *launch.in_use) if maker_of_mark(o) in makers}
        for owner, since in launch.in_use.items():
            if served_until - since >= part_s or (is_leaving and not launch.failure):
                settled.add(owner)
        for owner in settled:
            self._note_used(owner, launch)
        if not settled:
            return launch
        return msgspec.structs.replace(
            launch,
            owners={owner: uids for owner, uids in launch.owners.items() if owner not in settled},
            in_use={owner: since for owner, since in launch.in_use.items() if owner not in settled},
            serving=tuple(owner for owner in launch.serving if owner not in settled),
        )

    def _ended(self, claim: NodeClaim | None, launch: OpenLaunch) -> None:
        """Note an ended launch for the owners that did not use it, unless their controllers wanted it no more."""
        if not launch.is_made:  # what the cloud refused was no launch
            return
        has_failed = bool(launch.failure) or not launch.is_initialized
        has_failed = has_failed or (claim is not None and claim.state is ClaimState.FAILED)
        why = (claim.message if claim is not None else launch.failure) or "its machine was deleted unused"
        noted = []
        for owner, uids in launch.owners.items():
            if has_failed or owner in launch.still_pending:
                noted += self._note_unused(owner, uids, launch, why)
        for owner, since in launch.in_use.items():  # it has failed: else it is settled by now
            after = (
                f"its machine failed {claim.since - since:.0f} s after its pod started: " if claim is not None else ""
            )
            noted += self._note_unused(owner, (), launch, after + why)
        if not launch.has_run_work and not noted and launch.owners and not self._present(launch.owners):
            noted = list(launch.owners)
        self._note_of_nobody(noted, launch)

    def _note_of_nobody(self, owners: Collection[str], launch: OpenLaunch) -> None:
        """Count a launch once for each namespace of the owners: by the first of these that has not used another."""
        for owner in _firsts(owner for owner in sorted(owners) if owner not in self._used):
            self._of_nobody[owner] = tuple(sorted({*self._of_nobody.get(owner, ()), launch.at}))

    def _is_here(self, claim: NodeClaim) -> bool:
        """Whether a machine has been initialized for long enough that the cloud's list would lack one that is gone."""
        here_s = self._context.now - (claim.ready_at if claim.ready_at is not None else claim.since)
        is_listed = claim.state is ClaimState.READY and claim.missing_since is None
        return is_listed and here_s > self._context.policy.timeouts.missing_s

    def _runs(self, uid: str) -> bool:
        pod = self._pods.get(uid)
        return pod is not None and pod.started_at is not None

    def _not_running(self, uids: Sequence[str]) -> tuple[str, ...]:
        return tuple(uid for uid in uids if not self._runs(uid))

    def _present(self, owners: Mapping[str, tuple[str, ...]]) -> list[str]:
        """Owners of whose pods, as a launch was for them, some are there."""
        return [
            owner
            for owner, uids in owners.items()
            if any((pod := self._pods.get(uid)) is not None and self._owners.of(pod) == owner for uid in uids)
        ]

    def _is_over(self, owner: str, uids: tuple[str, ...], launch: OpenLaunch, row: int) -> bool:
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
            if is_in_use:
                self._note_tries(owner, [uid for uid in uids if uid in self._pods and uid not in self._placed], launch)
            return is_in_use
        if simulated.sim.fits(cls, row):
            return False
        why = ", ".join(sorted(simulated.sim.diagnose(cls, slice(row, row + 1))))
        taint = untolerated(node.taints, pod.constraints.tolerations)
        why += f" {taint.key}" if taint is not None else ""
        self._note_of_nobody(self._note_unused(owner, uids, launch, f"{node.name} did not admit it: {why}"), launch)
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
        here = {self._owners.of(pod) for pod in (self._placements.get(row, ()) if row is not None else ())}
        for owner in gone:
            if owner not in here and not owner.startswith(MINIMUM):
                self._left_behind.setdefault(owner, set()).add(launch.at)
        if not here and not launch.has_run_work and not self._present(launch.owners):
            self._note_still_of_nobody(launch)

    def _note_still_of_nobody(self, launch: OpenLaunch) -> None:
        for owner in _firsts(sorted((*launch.owners, *launch.in_use))):
            self._still_of_nobody.setdefault(owner, set()).add(launch.at)

    def _note_used(self, owner: str, launch: OpenLaunch) -> None:
        """What was launched before or with it is forgiven for good, and its flavour's pause is over."""
        self._used[owner] = max(launch.at, self._used.get(owner, launch.at))
        self._of_nobody.pop(owner, None)
        known = self._unused.pop(owner, None)
        left = known.newer_than(launch) if known is not None else None
        if left is not None and (left.launched_at or left.flavours):
            self._unused[owner] = left

    def _note_tries(self, owner: str, uids: Iterable[str], launch: OpenLaunch) -> None:
        for uid in uids:
            key = pod_of_owner(owner, uid)
            self._tries[key] = (*self._tries.get(key, ()), launch.at)

    def _note_unused(self, owner: str, uids: Sequence[str], launch: OpenLaunch, why: str) -> list[str]:
        """The owner, if the launch counts for it; none if it counts for its own pods alone."""
        is_of_unknown_pods = not uids and owner in launch.owners and not owner.startswith(MINIMUM)
        self._note_tries(owner, ("",) if is_of_unknown_pods else uids, launch)
        if launch.at <= self._used.get(owner, -math.inf):
            return []  # others of the owner use what was launched with it
        now, known = self._context.now, self._unused.get(owner, UnusedLaunches())
        pause = known.flavours.get(launch.flavour, FlavourPause(0, now))
        is_another = launch.at not in known.launched_at  # machines of one plan are one try
        newest = max(launch.at, pause.launched_at)
        flavours = {**known.flavours, launch.flavour: FlavourPause(pause.times + is_another, now, newest)}
        launched_at = tuple(sorted({*known.launched_at, launch.at}))
        self._unused[owner] = UnusedLaunches(launched_at, flavours, f"{launch.flavour}: {why}", now)
        return [] if owner.startswith(MINIMUM) else [owner]

    def result(self) -> LaunchesSoFar:
        """The record, without what is older than an hour."""
        now = self._context.now
        record = Launches(self._open, self._unused, self._used, self._tries, self._before.declined, self._of_nobody)
        running = {key.partition(" ")[0] for key in self._tries}
        record = of_the_last_hour(record, {uid for uid in running if self._runs(uid)}, now)
        since = now - HOUR_S
        return LaunchesSoFar(record, _recent(self._left_behind, since), _recent(self._still_of_nobody, since))


def _firsts(owners: Iterable[str]) -> list[str]:
    """The first owner of each namespace."""
    by_namespace: dict[str, str] = {}
    for owner in owners:
        if not owner.startswith(MINIMUM):
            by_namespace.setdefault(namespace_of(owner), owner)
    return list(by_namespace.values())


def _recent(instants: Mapping[str, Collection[float]], since: float) -> dict[str, frozenset[float]]:
    kept = {owner: frozenset(at for at in each if at > since) for owner, each in instants.items()}
    return {owner: each for owner, each in kept.items() if each}
