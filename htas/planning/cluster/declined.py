"""Room that another scheduler does not use.

HTAS keeps room for pods that kube-scheduler, Volcano or YuniKorn have found unschedulable, and leaves the bind to them.
A scheduler may have a reason of its own to refuse them, such as a full queue. So room is kept for `timeouts.unused`.
Then the pods have declined: nothing is kept or launched for them for a pause, which doubles each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from htas.model.launches import Declined
from htas.model.pauses import doubled_s, is_on
from htas.model.plan import UnplacedPod
from htas.model.plan_document import instant_text
from htas.model.pods import Pod
from htas.model.policy import Policy, Timeouts
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.owners import Owners


def have_declined(waiting: Sequence[Pod], snapshot: ClusterSnapshot, policy: Policy, now: float) -> tuple[Pod, ...]:
    """Pods of other schedulers whose owner's pause is not over."""
    paused = {owner for owner, known in snapshot.memory.launches.declined.items() if _is_paused(known, policy, now)}
    if not paused:
        return ()
    owners = Owners(policy)
    return tuple(pod for pod in waiting if pod.scheduler != policy.scheduler_name and owners.of(pod) in paused)


def told_declined(pods: Sequence[Pod], snapshot: ClusterSnapshot, policy: Policy) -> list[UnplacedPod]:
    """Why nothing is done for pods that have declined."""
    owners, declined = Owners(policy), snapshot.memory.launches.declined
    told = []
    for pod in pods:
        again = instant_text(declined[owners.of(pod)].until)
        unused = f"had room for {policy.timeouts.unused_s:g} s and its scheduler, {pod.scheduler}, did not bind it"
        told.append(UnplacedPod(pod.key, Unplaced.DECLINED, f"{unused}; HTAS reserves room for it again from {again}"))
    return told


def declined_after(
    waiting: Iterable[Pod], with_room: Set[str], snapshot: ClusterSnapshot, policy: Policy, now: float
) -> dict[str, Declined]:
    """What the next plan must know. `waiting` are pods of other schedulers, `with_room` those (by key) whose room is on
    a node that is there."""
    before = snapshot.memory.launches.declined
    owners = Owners(policy)
    marks = {pod.key: owners.of(pod) for pod in waiting}
    have_room = {marks[key] for key in with_room if key in marks}
    if not before and not have_room:
        return {}
    started = _last_starts(before, snapshot, owners)
    after: dict[str, Declined] = {}
    for owner in sorted(before.keys() | have_room):
        known = _after_starts(before.get(owner, Declined()), started.get(owner), policy)
        if _is_paused(known, policy, now):
            after[owner] = known
        elif owner in have_room:
            after[owner] = _with_room(known, policy.timeouts, now)
        elif owner in marks.values() and known.times:
            after[owner] = Declined(None, known.times, known.until)
    return after


def _with_room(known: Declined, timeouts: Timeouts, now: float) -> Declined:
    since = min(known.since, now) if known.since is not None else now
    if now - since < timeouts.unused_s:
        return Declined(since, known.times, known.until)
    return Declined(None, known.times + 1, now + pause_s(known.times + 1, timeouts))


def pause_s(times: int, timeouts: Timeouts) -> float:
    """For how long nothing is kept for pods that have declined so often in a row."""
    return doubled_s(times, timeouts.unused_s, max(timeouts.unused_s, timeouts.backoff_max_s))


def _is_paused(known: Declined, policy: Policy, now: float) -> bool:
    return known.times > 0 and is_on(known.until, pause_s(known.times, policy.timeouts), now)


def _after_starts(known: Declined, started: float | None, policy: Policy) -> Declined:
    """A pod that has started shows that its scheduler does use the room."""
    return Declined(started) if started is not None and started > _noted_at(known, policy) else known


def _noted_at(known: Declined, policy: Policy) -> float:
    """When room was first kept for an owner, or when its pods declined."""
    return known.since if known.since is not None else known.until - pause_s(known.times, policy.timeouts)


def _last_starts(before: Mapping[str, Declined], snapshot: ClusterSnapshot, owners: Owners) -> dict[str, float]:
    """By owner of `before` when the last of its pods started, of those that did so since the first was noted."""
    if not before:
        return {}
    first = min(_noted_at(each, owners.policy) for each in before.values())
    started: dict[str, float] = {}
    for pod in snapshot.cluster.pods:
        if pod.started_at is not None and pod.started_at > first and (owner := owners.of(pod)) in before:
            started[owner] = max(pod.started_at, started.get(owner, pod.started_at))
    return started
