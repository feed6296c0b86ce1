"""What holds nodes: the rules of draining, the pods they speak for, and the cluster were some of them lifted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import msgspec

from htas.model.budgets import DisruptionBudget
from htas.model.moves import MigrationMethod
from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT, SCALE_DOWN_DISABLED, Node
from htas.model.pods import MAY_MIGRATE, SAFE_LOCAL_VOLUMES, SAFE_TO_EVICT, Owner, Pod, WorkKind, with_article
from htas.model.reasons import Blocking, Kept
from htas.planning.disrupt.cleaning.utilization import utilization
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import TWO_BUDGETS, BudgetLedger
from htas.planning.eligibility.drain_rules import Context
from htas.planning.eligibility.migration_methods import VolumeBook
from htas.planning.what_if.adopting import ADOPTED, AdoptedCluster, annotations_that_hold, uncalmed
from htas.planning.what_if.arranging import Arrangement, packed
from htas.planning.what_if.pinning import PINNED, Pins, told

FREE = {MAY_MIGRATE: "true", SAFE_TO_EVICT: "true"}
"""What a pod says that may be moved by every rule that listens to pods."""
_ANY_NUMBER = 10**9
CALMING = (Kept.SCALE_DOWN_DISABLED, Kept.DO_NOT_DISRUPT)
"""Rules of a node's own annotations; the latter is also one of pods."""
THRESHOLD = "UtilizationThreshold"
"""Not a pod's: nodes above the threshold are not emptied, though their pods may move."""


@dataclass(frozen=True, slots=True)
class Held:
    """A pod that holds its node, and by which rule; no pod: an annotation of the node itself."""

    pod: str
    node: str
    rule: str
    message: str
    owner: str
    """The kind of its controller; empty: it has none."""
    is_ending: bool = False
    """It ends by itself, and frees its node: batch work that has not run for long."""


def holding(present: AdoptedCluster) -> list[Held]:
    """Every rule that holds a node that could go: its annotations, then its pods by name, each by all its rules."""
    policy = present.policy
    volumes = VolumeBook.of(present.snapshot.cluster.volumes)
    ledger = BudgetLedger(present.snapshot.cluster.budgets)
    context = Context(present.rules, ledger, present.now, policy.migration, volumes)
    pins = pins_of(present)
    owners = {pod.key: pod.owner for pod in present.snapshot.cluster.pods if pod.owner is not None}
    nodes = sorted(present.snapshot.cluster.nodes, key=lambda node: node.name)
    held = [each for node in nodes if node.name in present.calm for each in _calm(node)]
    for pod in sorted(present.snapshot.cluster.pods, key=lambda pod: pod.key):
        if pod.node is None or pod.node in present.fixed:
            continue
        owner = pod.owner.kind if pod.owner is not None else ""
        ends = ends_by_itself(pod, present.now)
        for verdict in drain_rules.judge_all(pod, context):
            rule = verdict.blocked or Kept.BLOCKED_BY_ON_COMPLETION_POD
            message = verdict.message + _beside(pod, rule, owners, ends=ends)
            held.append(Held(pod.key, pod.node, str(rule), message, owner, ends))
        pin = pins.of(pod)
        if pin is not None and pin.nodes <= {pod.node}:
            held.append(Held(pod.key, pod.node, PINNED, told(pod, pin), owner))
    return held + _under_one_budget(present, ledger)


def _under_one_budget(present: AdoptedCluster, ledger: BudgetLedger) -> list[Held]:
    """Pods that may leave one by one, but hold their node: it is emptied at once or not at all, as the cleaner does."""
    under: dict[tuple[str, int], list[Pod]] = {}
    for pod, number in _charged(present, ledger):
        under.setdefault((pod.node or "", number), []).append(pod)
    held = []
    for (_, number), pods in sorted(under.items()):
        budget, left = ledger.budgets[number], ledger.left(number)
        why = f"budget {budget.namespace}/{budget.name} lets {left} go at once, and {len(pods)} are on its node"
        if 0 < left < len(pods):
            held += [_budgeted(pod, f"{pod.key}: {why}") for pod in pods]
    return held


def slowed(present: AdoptedCluster) -> list[Held]:
    """Pods that hold no node where they are, of which their budget lets fewer go in one cycle than there are.

    Nodes that could be emptied in the same cycle wait, and meanwhile others take the room or share with them.
    """
    ledger = BudgetLedger(present.snapshot.cluster.budgets)
    pods = list(_charged(present, ledger))
    counts = Counter(number for _, number in pods)
    return [_budgeted(pod, "") for pod, number in pods if 0 < ledger.left(number) < counts[number]]


def _charged(present: AdoptedCluster, ledger: BudgetLedger) -> Iterator[tuple[Pod, int]]:
    """Pods on nodes that could go, by name, and the one budget that is spent if they leave."""
    for pod in sorted(present.snapshot.cluster.pods, key=lambda pod: pod.key):
        if pod.is_work and pod.node is not None and pod.node not in present.fixed:
            charged = ledger.charged(pod)
            if len(charged) == 1:
                yield pod, charged[0]


def _budgeted(pod: Pod, message: str) -> Held:
    owner = pod.owner.kind if pod.owner is not None else ""
    return Held(pod.key, pod.node or "", str(Blocking.NOT_ENOUGH_PDB), message, owner)


def _calm(node: Node) -> list[Held]:
    """By the annotations that keep a node whatever runs on it."""
    keys = [(rule, key) for rule in CALMING for key in annotations_that_hold(node, (rule,))]
    return [Held("", node.name, str(rule), f"annotated {key}=true", "") for rule, key in keys]


SHORT_S = 86_400.0
"""Work that has run for longer, though it says that it ends, may be somebody's shell that sleeps for ever."""


def ends_by_itself(pod: Pod, now: float) -> bool:
    """Whether a pod runs to an end (restartPolicy Never or OnFailure) and began within the last day."""
    return pod.kind is WorkKind.BATCH and now - (pod.started_at or pod.created_at) < SHORT_S


def _beside(pod: Pod, rule: str, owners: Mapping[str, Owner], *, ends: bool) -> str:
    """What is known besides of a pod without a controller that starts it again: who it is of, and that it ends."""
    if rule not in (Blocking.NOT_REPLICATED, Blocking.UNKNOWN_CONTROLLER):
        return ""
    whose = ""
    if pod.owner is not None and pod.owner.kind == "Pod":
        above = owners.get(f"{pod.namespace}/{pod.owner.name}")
        of = f" of {above.kind} {above.name}" if above is not None else ""
        whose = f"; it works for pod {pod.owner.name}{of}"
    return whose + ("; it goes away by itself when its work is done, and frees the node" if ends else "")


def pins_of(present: AdoptedCluster) -> Pins:
    """Who names the nodes to run on; all nodes count, also those that stay in any case."""
    view = present.snapshot.cluster
    return Pins(view.nodes, view.volumes)


def pinned(present: AdoptedCluster, held: Iterable[Held]) -> dict[str, str]:
    """Nodes that stay with all they hold, and the first reason of each."""
    reasons = {name: f"{stays.rule}: {stays.message}" for name, stays in present.fixed.items()}
    for each in held:
        reasons.setdefault(each.node, f"{each.rule}: {each.message}")
    return reasons


@dataclass(frozen=True, slots=True)
class Lift:
    """A rule, what lifts it, and the cluster without it."""

    rule: str
    remedy: str
    lifted: AdoptedCluster


def lifts(present: AdoptedCluster, held: Iterable[Held]) -> list[Lift]:
    """Each rule that holds something, lifted alone; in order of the rules' names."""
    held = list(held)
    rules = {each.rule for each in held}
    if present.snapshot.cluster.budgets:
        rules.add(str(Blocking.NOT_ENOUGH_PDB))
    found = [Lift(rule, _remedy(rule, held), without(present, (rule,), held)) for rule in rules]
    threshold = present.rules.utilization_threshold
    if threshold < 1:
        what = f"raise cleaning.utilizationThreshold from {_thresholds(present)}; htas simulate shows how far"
        found.append(Lift(THRESHOLD, what, without(present, (THRESHOLD,), held)))
    return sorted(found, key=lambda lift: lift.rule)


def _thresholds(present: AdoptedCluster) -> str:
    """That of every group where they differ: `0.5 (group services), 0.7 (group batch)`."""
    groups = [group for group in present.policy.groups if group.name != ADOPTED]
    found = {group.cleaning.utilization_threshold for group in groups}
    if len(found) < 2:
        return f"{present.rules.utilization_threshold:g}"
    return ", ".join(f"{group.cleaning.utilization_threshold:g} (group {group.name})" for group in groups)


def raised_threshold(present: AdoptedCluster, without_any: Arrangement) -> str:
    """How far the threshold has to be raised for what was packed without any, in words.

    The fullest node that went is the least that it could be, if it is enough: each packing is a search of its own.
    """
    nodes = [node for node in present.snapshot.cluster.nodes if node.name not in without_any.kept]
    names = {node.name: node for node in nodes}
    pods: dict[str, list[Pod]] = {name: [] for name in names}
    for pod in present.snapshot.cluster.pods:
        if pod.node in pods:
            pods[pod.node].append(pod)
    used = (utilization(node, pods[name], present.rules, present.now) for name, node in names.items())
    share = ceil(100 * max(used, default=1.0) - 1e-9) / 100  # 2.2 cores of 4 are 55.00000000000001 %
    tried = packed(_with_rules(present, utilization_threshold=share))
    enough = share if tried.hourly_nanos <= without_any.hourly_nanos else 1.0
    return f"raise cleaning.utilizationThreshold from {present.rules.utilization_threshold:g} to {enough:g}"


_REMEDIES: Mapping[str, str] = {
    Blocking.SERVICE_NOT_OPTED_IN: f'annotate them {MAY_MIGRATE}: "true", or cleaning.moveServices: true',
    Blocking.DO_NOT_DISRUPT: "remove the annotations, or wait for their end",
    Kept.SCALE_DOWN_DISABLED: f"kubectl annotate node NODE {SCALE_DOWN_DISABLED}-",
    Blocking.NOT_SAFE_TO_EVICT: f'remove {SAFE_TO_EVICT}: "false"',
    Blocking.LOCAL_STORAGE_REQUESTED: f"where that may be lost, annotate them {SAFE_LOCAL_VOLUMES} with the "
    "names of the volumes, or cleaning.skipLocalStorage: false",
    Blocking.UNMOVABLE_KUBE_SYSTEM_POD: "give them a disruption budget, or cleaning.skipSystemPods: false",
    Blocking.MIN_REPLICAS_REACHED: "more replicas, or lower cleaning.minReplicaCount",
    Blocking.NOT_ENOUGH_PDB: "budgets that allow more disruptions at once, which often takes one replica more; "
    "where one lets some go, kubectl drain empties a node little by little",
    Blocking.NOT_MOVABLE: "let them be evicted instead (cleaning.migration: evict)",
    Kept.BLOCKED_BY_ON_COMPLETION_POD: "wait for their end",
    PINNED: "take the hostname out of their nodeSelector or affinity, and keep their data on volumes that every node "
    "reaches; Ceph's OSDs (Rook): ceph osd out ID, wait until Ceph has moved the data, take the node out of the "
    "CephCluster's storage.nodes and purge the OSD",
}


def _remedy(rule: str, held: Iterable[Held]) -> str:
    mine = [each for each in held if each.rule == rule]
    if rule == Kept.DO_NOT_DISRUPT:
        return _disturbed(mine)
    if rule == Blocking.NOT_REPLICATED:
        return _ending(mine, "run them under a controller, such as a Deployment or a Job, or delete them")
    if rule == Blocking.NOT_ENOUGH_PDB:
        return _of_budgets(mine)
    if rule != Blocking.UNKNOWN_CONTROLLER:
        return _REMEDIES.get(rule, "")
    others = [each for each in mine if not each.is_ending]
    return _ending(mine, _of_controllers(others))


def _of_budgets(held: Sequence[Held]) -> str:
    """Budgets that are spent, and pods that several cover: one replica more helps the first alone."""
    doubly = [TWO_BUDGETS in each.message for each in held]
    told = [] if doubly and all(doubly) else [_REMEDIES[Blocking.NOT_ENOUGH_PDB]]
    return "; ".join([*told, *(["one budget alone for each pod: delete the others"] if any(doubly) else [])])


def _disturbed(held: Sequence[Held]) -> str:
    """Pods are annotated so, and nodes: only those that there are are spoken of."""
    of_nodes = {each.message for each in held if not each.pod}
    keys = [key for key in (DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT) if any(key in message for message in of_nodes)]
    told = [_REMEDIES[Blocking.DO_NOT_DISRUPT]] if any(each.pod for each in held) else []
    return "; ".join([*told, *(f"kubectl annotate node NODE {key}-" for key in keys)])


def _ending(held: Sequence[Held], otherwise: str) -> str:
    """What to do about pods some of which go away by themselves."""
    count = len({each.pod for each in held if each.is_ending})
    if not count:
        return otherwise
    waiting = "1 pod ends by itself and then frees its node: wait"
    if count > 1:
        waiting = f"{count} pods end by themselves and then free their node: wait"
    rest = count < len({each.pod for each in held})
    return f"{waiting}; of the others: {otherwise}" if rest else waiting


STRIMZI = "StrimziPodSet"


def _of_controllers(held: Iterable[Held]) -> str:
    kinds = sorted({each.owner for each in held})
    if kinds == [STRIMZI]:
        return (
            "Strimzi's operator starts evicted pods of Kafka again, one at a time where its Drain Cleaner is installed:"
            " cleaning.skipCustomControllerPods: false; data on volumes of a node keeps them there all the same"
        )
    told = ", ".join(kinds)
    one = len(kinds) == 1
    return (
        f"HTAS does not know whether {with_article(told)} starts an evicted pod again"
        if one
        else f"HTAS does not know whether these controllers start an evicted pod again: {told}"
    ) + f"; where {'it does' if one else 'they do'}, cleaning.skipCustomControllerPods: false"


def all_lifted(present: AdoptedCluster) -> AdoptedCluster:
    """The cluster were no rule to hold a pod: what its work could cost once everything may move."""
    pins = pins_of(present)
    free = _with_pods(
        uncalmed(_without_budgets(present), CALMING),
        lambda pod: _freed(pins.unpinned(pod)) if pod.is_work else pod,
    )
    return _with_rules(free, utilization_threshold=1.0, migration=MigrationMethod.EVICT)


def without(present: AdoptedCluster, rules: Collection[str], held: Iterable[Held]) -> AdoptedCluster:
    """The cluster as it would be if these rules did not hold the pods they hold; others may hold them still."""
    pods: dict[str, set[str]] = {rule: set() for rule in rules}
    for each in held:
        if each.rule in pods:
            pods[each.rule].add(each.pod)
    for rule in sorted(pods):
        present = _without(present, rule, pods[rule])
    return present


def _without(present: AdoptedCluster, rule: str, pods: Collection[str]) -> AdoptedCluster:
    if rule == Blocking.NOT_ENOUGH_PDB:
        return _with_budgets(present, _generous(present))
    if rule in _SETTINGS:
        return _with_rules(present, **_SETTINGS[rule])
    present = uncalmed(present, (rule,))
    change = pins_of(present).unpinned if rule == PINNED else _CHANGES[rule]
    return _with_pods(present, lambda pod: change(pod) if pod.key in pods else pod)


_SETTINGS: Mapping[str, Mapping[str, object]] = {
    Blocking.UNMOVABLE_KUBE_SYSTEM_POD: {"skip_system_pods": False},
    Blocking.UNKNOWN_CONTROLLER: {"skip_custom_controller_pods": False},
    Blocking.NOT_MOVABLE: {"migration": MigrationMethod.EVICT},
    THRESHOLD: {"utilization_threshold": 1.0},
}
"""Rules that a setting lifts."""


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
    Kept.SCALE_DOWN_DISABLED: lambda pod: pod,
    Blocking.NOT_SAFE_TO_EVICT: _evictable,
    Kept.BLOCKED_BY_ON_COMPLETION_POD: _evictable,
    Blocking.LOCAL_STORAGE_REQUESTED: lambda pod: msgspec.structs.replace(pod, has_local_storage=False),
    Blocking.NOT_REPLICATED: lambda pod: msgspec.structs.replace(pod, owner=Owner("ReplicaSet", "given")),
    Blocking.MIN_REPLICAS_REACHED: _of_many,
}


def _freed(pod: Pod) -> Pod:
    return msgspec.structs.replace(_of_many(pod), disruption=FREE)


def _with_pods(present: AdoptedCluster, change: Callable[[Pod], Pod]) -> AdoptedCluster:
    view = present.snapshot.cluster
    changed = msgspec.structs.replace(view, pods=tuple(change(pod) for pod in view.pods))
    return replace(present, snapshot=msgspec.structs.replace(present.snapshot, cluster=changed))


def _generous(present: AdoptedCluster) -> tuple[DisruptionBudget, ...]:
    """The budgets with any number of disruptions allowed; one alone for each pod, since Kubernetes evicts none of two.

    They are not taken away: a budget is also what makes a pod of kube-system movable.
    """
    budgets = sorted(present.snapshot.cluster.budgets, key=lambda budget: (budget.namespace, budget.name))
    ledger, beside = BudgetLedger(budgets), set[int]()
    for pod in present.snapshot.cluster.pods:
        beside.update([i for i in ledger.covering(pod) if i not in beside][1:])
    kept = (budget for i, budget in enumerate(budgets) if i not in beside)
    return tuple(msgspec.structs.replace(budget, disruptions_allowed=_ANY_NUMBER) for budget in kept)


def _without_budgets(present: AdoptedCluster) -> AdoptedCluster:
    return _with_budgets(present, ())


def _with_budgets(present: AdoptedCluster, budgets: tuple[DisruptionBudget, ...]) -> AdoptedCluster:
    view = msgspec.structs.replace(present.snapshot.cluster, budgets=budgets)
    return replace(present, snapshot=msgspec.structs.replace(present.snapshot, cluster=view))


def _with_rules(present: AdoptedCluster, **changes: object) -> AdoptedCluster:
    *groups, adopted = present.policy.groups
    groups.append(msgspec.structs.replace(adopted, cleaning=msgspec.structs.replace(adopted.cleaning, **changes)))
    return replace(present, policy=msgspec.structs.replace(present.policy, groups=tuple(groups)))
