"""What holds nodes: the rules of draining, the pods they speak for, and what would be saved were one of them lifted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT
from htas.model.pods import MAY_MIGRATE, SAFE_TO_EVICT, Owner, Pod
from htas.model.reasons import Blocking, Kept
from htas.planning.cleaning import drain_rules
from htas.planning.cleaning.candidates import percent
from htas.planning.cleaning.drain_rules.rule import Context
from htas.planning.cleaning.ledger import BudgetLedger
from htas.planning.what_if.adopting import Present

FREE = {MAY_MIGRATE: "true", SAFE_TO_EVICT: "true"}
"""What a pod says that may be moved by every rule that listens to pods."""


@dataclass(frozen=True, slots=True)
class Held:
    """A pod that holds its node, and by which rule."""

    pod: str
    node: str
    rule: str
    message: str


def holding(present: Present) -> list[Held]:
    """The pods that hold a node of those that could go, in order of their names."""
    context = Context(present.rules, BudgetLedger(present.snapshot.cluster.budgets), present.now)
    held = []
    for pod in sorted(present.snapshot.cluster.pods, key=lambda pod: pod.key):
        if pod.node is None or pod.node in present.fixed:
            continue
        verdict = drain_rules.judge(pod, context)
        if verdict.blocked is not None:
            held.append(Held(pod.key, pod.node, str(verdict.blocked), verdict.message))
        elif verdict.waits:
            held.append(Held(pod.key, pod.node, str(Kept.BLOCKED_BY_ON_COMPLETION_POD), verdict.message))
    return held


def pinned(present: Present, held: Iterable[Held]) -> dict[str, str]:
    """Nodes that stay with all they hold, and the first reason of each."""
    reasons = dict(present.fixed)
    for each in held:
        reasons.setdefault(each.node, f"{each.rule}: {each.message}")
    return reasons


THRESHOLD = "UtilizationThreshold"
"""Not a pod's: nodes above the threshold are not emptied, though their pods may move."""


@dataclass(frozen=True, slots=True)
class Lift:
    """A rule, what it is in words, and the cluster without it."""

    rule: str
    what: str
    lifted: Present


def lifts(present: Present, held: Iterable[Held]) -> list[Lift]:
    """Each rule that holds something, lifted alone; in order of the rules' names."""
    by_rule: dict[str, set[str]] = {}
    for each in held:
        by_rule.setdefault(each.rule, set()).add(each.pod)
    found = [Lift(rule, _REMEDIES.get(rule, ""), _without(present, rule, pods)) for rule, pods in by_rule.items()]
    if str(Blocking.NOT_ENOUGH_PDB) not in by_rule and present.snapshot.cluster.budgets:
        found.append(Lift(str(Blocking.NOT_ENOUGH_PDB), _REMEDIES[Blocking.NOT_ENOUGH_PDB], _without_budgets(present)))
    threshold = present.rules.utilization_threshold
    if threshold < 1:
        what = f"raise cleaning.utilizationThreshold above {percent(threshold)}"
        found.append(Lift(THRESHOLD, what, _with_rules(present, utilization_threshold=1.0)))
    return sorted(found, key=lambda lift: lift.rule)


_REMEDIES: Mapping[str, str] = {
    Blocking.SERVICE_NOT_OPTED_IN: f'annotate them {MAY_MIGRATE}: "true"',
    Blocking.DO_NOT_DISRUPT: "remove the annotations, or wait for their end",
    Blocking.NOT_SAFE_TO_EVICT: f'remove {SAFE_TO_EVICT}: "false"',
    Blocking.LOCAL_STORAGE_REQUESTED: f'annotate them {SAFE_TO_EVICT}: "true", or cleaning.skipLocalStorage: false',
    Blocking.UNMOVABLE_KUBE_SYSTEM_POD: "give them a disruption budget, or cleaning.skipSystemPods: false",
    Blocking.NOT_REPLICATED: "give them a controller",
    Blocking.MIN_REPLICAS_REACHED: "more replicas, or lower cleaning.minReplicaCount",
    Blocking.NOT_ENOUGH_PDB: "budgets that allow more disruptions",
    Kept.BLOCKED_BY_ON_COMPLETION_POD: "wait for their end",
}


def all_lifted(present: Present) -> Present:
    """The cluster were no rule to hold a pod: what its work could cost once everything may move."""
    free = _with_pods(_without_budgets(present), lambda pod: pod if pod.is_daemon or pod.is_mirror else _freed(pod))
    return _with_rules(free, utilization_threshold=1.0)


def _without(present: Present, rule: str, pods: set[str]) -> Present:
    """The cluster as it would be if this rule alone did not hold these pods; others may hold them still."""
    if rule == Blocking.NOT_ENOUGH_PDB:
        return _without_budgets(present)
    if rule == Blocking.UNMOVABLE_KUBE_SYSTEM_POD:
        return _with_rules(present, skip_system_pods=False)
    change = _CHANGES[rule]
    return _with_pods(present, lambda pod: change(pod) if pod.key in pods else pod)


def _undisturbed_no_more(pod: Pod) -> Pod:
    wishes = {
        key: value for key, value in pod.disruption.items() if key not in (DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT)
    }
    if wishes.get(MAY_MIGRATE) == "false":
        wishes[MAY_MIGRATE] = "true"
    return msgspec.structs.replace(pod, disruption=wishes)


def _evictable(pod: Pod) -> Pod:
    wishes = {key: value for key, value in pod.disruption.items() if key != SAFE_TO_EVICT}
    return msgspec.structs.replace(pod, disruption=wishes)


def _of_many(pod: Pod) -> Pod:
    owner = msgspec.structs.replace(pod.owner, replicas=None) if pod.owner is not None else None
    return msgspec.structs.replace(pod, owner=owner)


_CHANGES: Mapping[str, Callable[[Pod], Pod]] = {
    Blocking.SERVICE_NOT_OPTED_IN: lambda pod: msgspec.structs.replace(
        pod, disruption={**pod.disruption, MAY_MIGRATE: "true"}
    ),
    Blocking.DO_NOT_DISRUPT: _undisturbed_no_more,
    Blocking.NOT_SAFE_TO_EVICT: _evictable,
    Kept.BLOCKED_BY_ON_COMPLETION_POD: _evictable,
    Blocking.LOCAL_STORAGE_REQUESTED: lambda pod: msgspec.structs.replace(pod, has_local_storage=False),
    Blocking.NOT_REPLICATED: lambda pod: msgspec.structs.replace(pod, owner=Owner("ReplicaSet", "given")),
    Blocking.MIN_REPLICAS_REACHED: _of_many,
}


def _freed(pod: Pod) -> Pod:
    return msgspec.structs.replace(_of_many(pod), disruption=FREE)


def _with_pods(present: Present, change: Callable[[Pod], Pod]) -> Present:
    view = present.snapshot.cluster
    changed = msgspec.structs.replace(view, pods=tuple(change(pod) for pod in view.pods))
    return replace(present, snapshot=msgspec.structs.replace(present.snapshot, cluster=changed))


def _without_budgets(present: Present) -> Present:
    view = msgspec.structs.replace(present.snapshot.cluster, budgets=())
    return replace(present, snapshot=msgspec.structs.replace(present.snapshot, cluster=view))


def _with_rules(present: Present, **changes: object) -> Present:
    *groups, adopted = present.policy.groups
    groups.append(msgspec.structs.replace(adopted, cleaning=msgspec.structs.replace(adopted.cleaning, **changes)))
    return replace(present, policy=msgspec.structs.replace(present.policy, groups=tuple(groups)))
