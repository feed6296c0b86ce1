"""Pods whose starts bring machines down.

A start *lived* if its pod runs for `SOON_S` on a Ready node. It *failed* if its machine fails before that. Starts are
judged for an owner, and for each of its workloads by name: of Jobs train-0 to train-9 one may be broken, and a CronJob
has another Job each time. A start that lived clears both. Two failed starts in a row make a suspect.

Of the suspects on a failed machine, those are guilty whose starts have failed most often in a row. If many have, half
of them are: one broken pod among n new ones is found after log2 n machines, as in group testing. Others are not
charged with the launch. Guilty pods are not bound for a pause, which doubles while they are guilty alone. After it,
one pod of a suspect is let through at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.launches import FailedStarts, Launches
from htas.model.pauses import doubled_s, is_on
from htas.model.plan_document import instant_text
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.owners import Owners

SOON_S = 300.0
PAUSE_S = 2 * SOON_S
"""The first pause: those that are let go on have lived before it is over."""
MOST_PAUSE_S = 1800.0
HOUR_S = 3600.0
SUSPECT = 2
"""So many failed starts in a row make a suspect: one may be the machine's fault."""

_BAD = frozenset({ClaimState.REGISTERED, ClaimState.FAILED})
_OVER = frozenset({ClaimState.RELEASED, ClaimState.DRAINING})


@dataclass(frozen=True, slots=True)
class JudgedStarts:
    """What is known of starts after this plan. `charged`: by failed claim with suspects the owners charged with it."""

    starts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    failed: Mapping[str, FailedStarts] = field(default_factory=dict)
    charged: Mapping[str, frozenset[str]] = field(default_factory=dict)


def judge_starts(snapshot: ClusterSnapshot, policy: Policy, before: Launches, now: float) -> JudgedStarts:
    """Follow starts on machines of ours, and judge those whose machines have failed."""
    ready = {node.name for node in snapshot.cluster.nodes if node.is_ready}
    starts, lived = _seen(snapshot, Owners(policy), before, ready, now)
    failed = {key: known for key, known in before.failed_starts.items() if key not in lived}
    failed = {key: known for key, known in failed.items() if now - known.at < HOUR_S or _is_paused(known, now)}
    claims = {claim.id: claim for claim in snapshot.claims}
    left: dict[str, Mapping[str, float]] = {}
    fallen: dict[str, list[str]] = {}
    for claim_id, begun in starts.items():
        claim = claims.get(claim_id)
        if claim is None or claim.state in _OVER:
            continue
        bad_since = _bad_since(claim, ready, now)
        young = {workload: at for workload, at in begun.items() if bad_since - at < SOON_S}
        has_failed = claim.state is ClaimState.FAILED or now - bad_since >= policy.timeouts.missing_s
        if not begun and bad_since < now:
            left[claim_id] = {}  # judged: pods may still be listed there
        elif young and has_failed:
            fallen[claim_id], left[claim_id] = sorted(young.keys()), {}
        elif young:
            left[claim_id] = young
    for key in {key for workloads in fallen.values() for each in workloads for key in _keys(each)} - lived:
        known = failed.get(key, FailedStarts())
        failed[key] = msgspec.structs.replace(known, times=known.times + 1, at=now)
    found = {claim: _found_guilty(workloads, failed, now) for claim, workloads in fallen.items()}
    return JudgedStarts(left, failed, {claim: owners for claim, owners in found.items() if owners is not None})


def _seen(
    snapshot: ClusterSnapshot, owners: Owners, before: Launches, ready: Collection[str], now: float
) -> tuple[dict[str, dict[str, float]], set[str]]:
    """Recent starts by claim and workload, and the keys of what has lived and is of interest."""
    starts = {claim: dict(each) for claim, each in before.starts.items()}
    judged = {claim for claim, each in before.starts.items() if not each}
    claims = {node.name: node.claim for node in snapshot.cluster.nodes if node.claim is not None}
    lived: set[str] = set()
    for pod in snapshot.cluster.pods:
        if pod.started_at is None or pod.node is None or not pod.is_work:
            continue
        if now - pod.started_at < SOON_S:
            if (claim := claims.get(pod.node)) is not None and claim not in judged:
                starts.setdefault(claim, {})[workload_of(pod, owners)] = min(pod.started_at, now)
        elif before.failed_starts and pod.node in ready:
            lived.update(_keys(workload_of(pod, owners)))
    return starts, lived


def _bad_since(claim: NodeClaim, ready: Collection[str], now: float) -> float:
    """Since when a machine is missing or its node not Ready; now: it is well, or may yet be."""
    if claim.missing_since is not None:
        return min(claim.missing_since, now)
    is_bad = claim.state in _BAD and (claim.state is ClaimState.FAILED or claim.node not in ready)
    return min(claim.since, now) if is_bad else now


def _found_guilty(workloads: Sequence[str], failed: dict[str, FailedStarts], now: float) -> frozenset[str] | None:
    """Pause the guilty of one failed machine; returns their owners, without those of other workloads on it.

    None: nothing there is suspect.
    """
    tied = _most_suspect(workloads, failed)
    if not tied:
        return None
    guilty = tied[len(tied) // 2 :]
    others = {_owner(each) for each in workloads if each not in guilty}
    owners = {owner for each in guilty if (owner := _owner(each)) not in others and owner in failed}
    alone = len(tied) == 1
    for key in {*guilty, *owners} & failed.keys():
        alone_times = failed[key].alone_times + alone
        until = now + doubled_s(alone_times, PAUSE_S, MOST_PAUSE_S)
        failed[key] = msgspec.structs.replace(failed[key], alone_times=alone_times, until=until)
    return frozenset(owners)


def _most_suspect(workloads: Sequence[str], failed: Mapping[str, FailedStarts]) -> list[str]:
    """Suspects whose starts have failed most often in a row: by owner, and of one owner's by workload."""
    own = {each: failed[each].times if each in failed else 0 for each in workloads}
    times = {each: failed[owner].times if (owner := _owner(each)) in failed else own[each] for each in workloads}
    most = max(times.values())
    if most < SUSPECT:
        return []
    most_own: dict[str, int] = {}
    for each in workloads:
        most_own[_owner(each)] = max(own[each], most_own.get(_owner(each), 0))
    return [each for each in workloads if times[each] == most and own[each] == most_own[_owner(each)]]


def _is_paused(known: FailedStarts, now: float) -> bool:
    return is_on(known.until, MOST_PAUSE_S, now)


def paused_pods(waiting: Iterable[Pod], snapshot: ClusterSnapshot, policy: Policy, now: float) -> list[tuple[Pod, str]]:
    """Pods that are not bound now since their starts fail, each with a sentence for people."""
    launches = snapshot.memory.launches
    failed = launches.failed_starts
    if not any(known.times >= SUSPECT for known in failed.values()):
        return []
    owners = Owners(policy)
    tried = {key for each in launches.starts.values() for workload in each for key in _keys(workload)}
    for pod in snapshot.cluster.pods:
        if pod.node is not None and pod.is_work and (pod.started_at is None or now - pod.started_at < SOON_S):
            tried.update(_keys(workload_of(pod, owners)))
    paused = []
    for pod in sorted(waiting, key=lambda pod: pod.key):
        key = _judged_by(workload_of(pod, owners), failed)
        if key not in failed or failed[key].times < SUSPECT:
            continue
        if why := _why(failed[key], now, is_tried=key in tried):
            paused.append((pod, why))
        tried.add(key)
    return paused


def _judged_by(workload: str, failed: Mapping[str, FailedStarts]) -> str:
    """What a pod is judged by: its owner once that was guilty itself, or where nothing is known of the workload."""
    owner = failed.get(_owner(workload))
    return _owner(workload) if owner is not None and (owner.until or workload not in failed) else workload


def _why(known: FailedStarts, now: float, *, is_tried: bool) -> str:
    """Why a suspect pod is not bound; empty: it is let through."""
    told = f"its last {known.times} starts were each on a machine that failed within {SOON_S:g} s"
    if _is_paused(known, now):
        return f"{told}; the next not before {instant_text(known.until)}"
    return f"{told}; one pod is tried at a time, for {SOON_S:g} s" if is_tried else ""


def workload_of(pod: Pod, owners: Owners) -> str:
    """The mark of a pod's owner, and the name that its next pod will have: that of its controller, or its own."""
    has_lasting_name = pod.owner is None or pod.owner.kind.partition(".")[0] == "StatefulSet"
    return f"{owners.of(pod)} {pod.name if has_lasting_name or pod.owner is None else pod.owner.name}"


def _owner(workload: str) -> str:
    return workload.rpartition(" ")[0]


def _keys(workload: str) -> tuple[str, str]:
    return workload, _owner(workload)
