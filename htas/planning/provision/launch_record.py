"""The record of launches: begun from the journal, added to by each plan, and cut to the last hour."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Sequence

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.launches import FlavourPause, Launches, OpenLaunch
from htas.model.pods import Pod
from htas.planning.cluster.owners import Owners, namespace_of
from htas.planning.place.context import PlanContext

HOUR_S = 3600.0


def as_journalled(record: Launches, claims: Iterable[NodeClaim], since: float, now: float) -> Launches:
    """The record with what the journal has of the claims that were made within the last hour, Released ones included.

    `since`: of claims that were made before, the record says all. Others are followed from here on. Owners are taken
    off a claim when its launch is settled for them. So the launch of a Released claim was unused for those that are
    left: what became of the machine nobody knows, and one launch too many must not follow from that.
    """
    known = dict(record.open)
    for claim in claims:
        if not claim.launched_for or now - claim.created_at >= HOUR_S:
            continue
        launch = known.get(claim.id)
        if launch is None and claim.created_at >= since:
            launch = OpenLaunch(claim.created_at, claim.flavour, dict.fromkeys(claim.launched_for, ()))
            launch = _left_pending(launch, claim) if claim.state is ClaimState.DRAINING else launch
        if launch is not None:
            known[claim.id] = _released(launch, claim) if claim.state is ClaimState.RELEASED else launch
    return msgspec.structs.replace(record, open=known) if known != record.open else record


def _left_pending(launch: OpenLaunch, claim: NodeClaim) -> OpenLaunch:
    return msgspec.structs.replace(launch, still_pending=tuple(sorted({*launch.still_pending, *claim.launched_for})))


def _released(launch: OpenLaunch, claim: NodeClaim) -> OpenLaunch:
    """The launch of a claim that was Released unseen: it failed for the owners that the claim still has."""
    return msgspec.structs.replace(
        _left_pending(launch, claim),
        is_made=launch.is_made or claim.instance is not None,
        in_use={owner: at for owner, at in launch.in_use.items() if owner in claim.launched_for},
        failure=claim.message or "its machine was deleted",
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


def not_ahead(record: Launches, now: float) -> Launches:
    """The record with no instant later than now: a clock that was ahead has been put back since."""
    clamped = functools.partial(min, now)
    return msgspec.structs.replace(
        record,
        open={
            claim: msgspec.structs.replace(
                each, at=clamped(each.at), in_use={owner: clamped(at) for owner, at in each.in_use.items()}
            )
            for claim, each in record.open.items()
        },
        unused={
            owner: msgspec.structs.replace(
                each,
                launched_at=tuple(map(clamped, each.launched_at)),
                flavours={
                    name: FlavourPause(pause.times, clamped(pause.at), clamped(pause.launched_at))
                    for name, pause in each.flavours.items()
                },
                at=clamped(each.at),
            )
            for owner, each in record.unused.items()
        },
        used={owner: clamped(at) for owner, at in record.used.items()},
        tries={key: tuple(map(clamped, each)) for key, each in record.tries.items()},
        of_nobody={owner: tuple(map(clamped, each)) for owner, each in record.of_nobody.items()},
    )


def of_the_last_hour(record: Launches, running: Collection[str], now: float) -> Launches:
    """The record without what is older than an hour, and without tries for pods (uids) that are running."""
    since = now - HOUR_S
    unused = {
        owner: msgspec.structs.replace(each, launched_at=tuple(at for at in each.launched_at if at > since))
        for owner, each in record.unused.items()
        if each.at > since - HOUR_S  # its flavours may pause for longer than it counts
    }
    tries = {key: kept for key, each in record.tries.items() if (kept := _after(since, each))}
    of_nobody = {owner: kept for owner, each in record.of_nobody.items() if (kept := _after(since, each))}
    record = msgspec.structs.replace(
        record,
        unused=unused,
        tries={key: each for key, each in tries.items() if key.partition(" ")[0] not in running},
        of_nobody=of_nobody,
    )
    return msgspec.structs.replace(record, used=_still_of_use(record, since))


def _after(since: float, instants: Iterable[float]) -> tuple[float, ...]:
    return tuple(at for at in instants if at > since)


def _still_of_use(record: Launches, since: float) -> dict[str, float]:
    """When the newest settled launch of an owner was made, where an older one of it is open; and of the last hour where
    launches for pods of its namespace are unused: it may go on."""
    if not record.used:
        return {}
    first: dict[str, float] = {}
    for launch in record.open.values():
        for owner in (*launch.owners, *launch.in_use):
            first[owner] = min(launch.at, first.get(owner, launch.at))
    suspects = {namespace_of(owner) for owner in record.of_nobody}
    return {
        owner: at
        for owner, at in record.used.items()
        if first.get(owner, math.inf) <= at or (at > since and namespace_of(owner) in suspects)
    }


def pod_of_owner(owner: str, uid: str) -> str:
    """The key of a pod in `Launches.tries`: what became of its launches says nothing once its group is mended."""
    return f"{uid} {owner}"


MINIMUM = "minNodes/"


def minimum_of(group: str) -> str:
    """The owner of machines that are launched for a group and for no pods: one is used once it is initialized."""
    return MINIMUM + group
