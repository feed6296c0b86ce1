"""Drain rules: promises to users, in Cluster Autoscaler's order. The first rule that answers decides.

Source of order and reasons: Cluster Autoscaler, simulator/drainability/rules/rules.go. Its rule for terminal pods is
not here, since a snapshot holds none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from htas.model.migrations import MigrationSettings
from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT
from htas.model.pods import MAY_MIGRATE, SAFE_LOCAL_VOLUMES, SAFE_TO_EVICT, Pod, WorkKind, with_article
from htas.model.policy import CleaningRules
from htas.model.reasons import Blocking
from htas.planning.cluster.ending import is_overdue
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.migration_methods import NO_VOLUMES, VolumeBook, method_for, refusal

REPLICA_CONTROLLERS = frozenset({"ReplicaSet", "ReplicationController"})
KNOWN_CONTROLLERS = REPLICA_CONTROLLERS | {"Job", "StatefulSet"}
"""They start a pod again that was evicted."""
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule may look at."""

    rules: CleaningRules
    budgets: BudgetLedger
    now: float
    settings: MigrationSettings = field(default_factory=MigrationSettings)
    volumes: VolumeBook = NO_VOLUMES


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule says of a pod.

    `blocked`: it holds its node; `waits`: its end is awaited; `stays`: it ends with its node; else it moves.
    """

    blocked: Blocking | None = None
    waits: bool = False
    stays: bool = False
    message: str = ""


MOVES = Verdict()
GOES_WITH_NODE = Verdict(stays=True)

Rule = Callable[[Pod, Context], Verdict | None]
"""None: the rule has nothing to say, the next one is asked."""


def mirror(pod: Pod, context: Context) -> Verdict | None:
    """Mirror pods are the kubelet's own: they end with their node and hold nothing."""
    return GOES_WITH_NODE if pod.is_mirror else None


def long_terminating(pod: Pod, context: Context) -> Verdict | None:
    """A pod whose deletion is overdue (grace period and 30 s more) is waited for no longer."""
    return GOES_WITH_NODE if is_overdue(pod, context.now) else None


def replica_count(pod: Pod, context: Context) -> Verdict | None:
    """With a minimum replica count, pods of smaller ReplicaSets and ReplicationControllers stay."""
    owner, least = pod.owner, context.rules.min_replica_count
    if owner is None or owner.kind not in REPLICA_CONTROLLERS or owner.replicas is None or owner.replicas >= least:
        return None
    message = f"{pod.key}: {owner.kind} {owner.name} has {owner.replicas} replicas, fewer than {least}"
    return Verdict(Blocking.MIN_REPLICAS_REACHED, message=message)


def daemon_set(pod: Pod, context: Context) -> Verdict | None:
    """DaemonSet pods belong to their node and end with it."""
    return GOES_WITH_NODE if pod.is_daemon else None


def do_not_disrupt(pod: Pod, context: Context) -> Verdict | None:
    """`do-not-disrupt` (HTAS's and Karpenter's): "true" for ever, a duration such as "30m" from the pod's start."""
    for key in (DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT):
        until = _holds_until(pod, key)
        if context.now < until:
            left = "" if until == inf else f", {until - context.now:.0f} s left"
            return Verdict(Blocking.DO_NOT_DISRUPT, message=f"{pod.key}: {key}={pod.disruption[key]}{left}")
    return None


def not_disrupted_until(pod: Pod) -> float:
    """Until when a pod asks not to be disrupted; inf: for ever, -inf: it does not."""
    return max(_holds_until(pod, key) for key in (DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT))


def _holds_until(pod: Pod, key: str) -> float:
    value = pod.disruption.get(key)
    if value is None or value == "false":
        return -inf
    length = duration_s(value)
    # "true" and what cannot be understood protect alike: a promise is not dropped for a typing error.
    return inf if length is None else pod.since + length


def duration_s(text: str) -> float | None:
    """Seconds of a duration as Go writes it ("90s", "1h30m"); None for anything else."""
    if not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


def unsupported(pod: Pod, context: Context) -> Verdict | None:
    """A pod that asks for what HTAS does not understand (a DRA claim) cannot be judged elsewhere: it stays."""
    features = pod.constraints.unsupported
    if not features:
        return None
    return Verdict(
        Blocking.NOT_SAFE_TO_EVICT,
        message=f"{pod.key} asks for {', '.join(features)}, which HTAS cannot place elsewhere",
    )


def service_opt_in(pod: Pod, context: Context) -> Verdict | None:
    """Services stay unless they opt in with `htas.io/migrate: "true"`, or their group moves all that do not opt out.

    Batch work moves unless it says "false". What is neither is a typing error, and protects.
    """
    wish = pod.disruption.get(MAY_MIGRATE)
    may_move = wish == "true" or (wish is None and context.rules.moves_services)
    if pod.kind is WorkKind.SERVICE and not may_move:
        return Verdict(Blocking.SERVICE_NOT_OPTED_IN, message=f'{pod.key} is a service without {MAY_MIGRATE}="true"')
    return opted_out(pod, context)


def opted_out(pod: Pod, context: Context) -> Verdict | None:
    """`htas.io/migrate: "false"` keeps any pod where it is, a service's too."""
    if pod.disruption.get(MAY_MIGRATE) != "false":
        return None
    return Verdict(Blocking.DO_NOT_DISRUPT, message=f'{pod.key} opted out with {MAY_MIGRATE}="false"')


def not_movable(pod: Pod, context: Context) -> Verdict | None:
    """A pod that would lose what it holds, or could not run beside its twin, stays."""
    method = method_for(pod, context.rules.migration)
    if not method.makes_twin:
        return None
    refused = refusal(pod, method, context.settings, context.volumes)
    if refused is None:
        return None
    reason, words = refused
    return Verdict(Blocking.NOT_MOVABLE, message=f"{reason}: {pod.key}: {words}")


def safe_to_evict(pod: Pod, context: Context) -> Verdict | None:
    """`safe-to-evict: true` overrides what follows, disruption budgets excepted."""
    if pod.disruption.get(SAFE_TO_EVICT) != "true":
        return None
    return disruption_budget(pod, context) or MOVES


def on_completion(pod: Pod, context: Context) -> Verdict | None:
    """`safe-to-evict: on-completion`: the node waits for the pod to end by itself."""
    if pod.disruption.get(SAFE_TO_EVICT) != "on-completion":
        return None
    return Verdict(waits=True, message=f"{pod.key} may be evicted on completion only")


def replicated(pod: Pod, context: Context) -> Verdict | None:
    """A pod that no controller would start again stays, unless a twin takes its place: then nobody has to."""
    if pod.owner is None and method_for(pod, context.rules.migration).makes_twin:
        return None
    if pod.owner is None:
        return Verdict(Blocking.NOT_REPLICATED, message=f"{pod.key} has no controller")
    if pod.owner.kind in KNOWN_CONTROLLERS or not context.rules.skip_custom_controller_pods:
        return None
    message = f"{pod.key} is controlled by {with_article(pod.owner.kind)}, which HTAS does not know to start it again"
    if pod.gang:
        message += f"; it is of group {pod.gang}, and evicting one of a group commonly restarts all"
    return Verdict(Blocking.UNKNOWN_CONTROLLER, message=message)


def kube_system(pod: Pod, context: Context) -> Verdict | None:
    """Pods of kube-system stay unless a disruption budget covers them."""
    if pod.namespace != "kube-system" or not context.rules.skip_system_pods or context.budgets.has_budget(pod):
        return None
    return Verdict(
        Blocking.UNMOVABLE_KUBE_SYSTEM_POD, message=f"{pod.key} is in kube-system and no disruption budget covers it"
    )


def not_safe_to_evict(pod: Pod, context: Context) -> Verdict | None:
    """`safe-to-evict: false` holds the node."""
    if pod.disruption.get(SAFE_TO_EVICT) != "false":
        return None
    return Verdict(Blocking.NOT_SAFE_TO_EVICT, message=f'{pod.key}: {SAFE_TO_EVICT}="false"')


MOST_VOLUMES = 6
"""Volumes of a pod that are named in a message."""


def local_storage(pod: Pod, context: Context) -> Verdict | None:
    """Pods with data on the node (hostPath, emptyDir on disk) stay."""
    if not pod.has_local_storage or not context.rules.skip_local_storage:
        return None
    if not pod.local_volumes:
        what = f"{pod.key} keeps data on its node (hostPath or emptyDir)"
        return Verdict(Blocking.LOCAL_STORAGE_REQUESTED, message=what)
    named, others = pod.local_volumes[:MOST_VOLUMES], len(pod.local_volumes) - MOST_VOLUMES
    volumes = f"volume{'s' if len(pod.local_volumes) > 1 else ''} {', '.join(named)}"
    more, also = (f" and {others} more", " and the others") if others > 0 else ("", "")
    return Verdict(
        Blocking.LOCAL_STORAGE_REQUESTED,
        message=f"{pod.key} keeps data on its node (hostPath or emptyDir) in {volumes}{more}; where that may be lost, "
        f'annotate the pod {SAFE_LOCAL_VOLUMES}: "{",".join(named)}"{also}',
    )


def disruption_budget(pod: Pod, context: Context) -> Verdict | None:
    """A budget that allows no disruption now holds the node."""
    why = context.budgets.refusal(pod)
    return None if why is None else Verdict(Blocking.NOT_ENOUGH_PDB, message=why)


def cannot_be_read(pod: str) -> str:
    """Of a pod that was left out of the view, in words: no rule can judge it, and it holds its node."""
    return f"{pod} on it cannot be understood, and may be at work"


RULES: tuple[Rule, ...] = (
    mirror,
    long_terminating,
    replica_count,
    daemon_set,
    # HTAS's own four stand before safe-to-evict: "true", which would else cut them off.
    do_not_disrupt,
    unsupported,
    service_opt_in,
    not_movable,
    safe_to_evict,
    on_completion,
    replicated,
    kube_system,
    not_safe_to_evict,
    local_storage,
    disruption_budget,
)


def judge(pod: Pod, context: Context) -> Verdict:
    """What the rules say of a pod on a node to be emptied."""
    return _first(RULES, pod, context)


def _first(rules: tuple[Rule, ...], pod: Pod, context: Context) -> Verdict:
    for rule in rules:
        verdict = rule(pod, context)
        if verdict is not None:
            return verdict
    return MOVES


def judge_all(pod: Pod, context: Context) -> list[Verdict]:
    """Everything that keeps a pod from being moved, in the rules' order; empty: it moves, or ends with its node.

    What `judge` says first hides what the rules behind it would say once that were lifted.
    """
    held: list[Verdict] = []
    for rule in RULES:
        verdict = rule(pod, context)
        if verdict is None:
            continue
        if verdict.blocked is None and not verdict.waits:
            break
        if verdict not in held:
            held.append(verdict)
        if rule is safe_to_evict:  # it speaks for those behind it
            break
    return held


HANDING_BACK: tuple[Rule, ...] = (
    mirror,
    long_terminating,
    daemon_set,
    do_not_disrupt,
    opted_out,
    safe_to_evict,
    on_completion,
    replicated,
    not_safe_to_evict,
    local_storage,
)
"""What holds a pod even where an operator gives its machine back: what it was promised, and what would be lost.

Left out is what asks whether a move is worth it (services that did not opt in, few replicas), or that a pod be placed
elsewhere by HTAS, and kube-system: its pods are evicted as `kubectl drain` does. Budgets are left to the Eviction API.
"""


def judge_handing_back(pod: Pod, context: Context) -> Verdict:
    """What the rules say of a pod on a machine that an operator gives back."""
    return _first(HANDING_BACK, pod, context)


PROMISES: tuple[Rule, ...] = (
    do_not_disrupt,
    service_opt_in,
    safe_to_evict,
    kube_system,
    not_safe_to_evict,
)
"""What holds a pod by somebody's wish alone: the rest holds it since something would be lost."""


def promised(pod: Pod, context: Context) -> Verdict | None:
    """The wish that keeps a pod where it is; None: there is none. Budgets are for those that go, not for a move."""
    for rule in PROMISES:
        verdict = rule(pod, context)
        if verdict is not None:
            return None if verdict.blocked in (None, Blocking.NOT_ENOUGH_PDB) else verdict
    return None
