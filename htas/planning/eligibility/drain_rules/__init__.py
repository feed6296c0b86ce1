"""Drain rules: one promise to users in each file, in Cluster Autoscaler's order. The first rule that answers decides.

Source of order and reasons: Cluster Autoscaler, simulator/drainability/rules/rules.go. Its rule for terminal pods has
no file here, since a snapshot holds none.
"""

from htas.model.pods import Pod
from htas.model.reasons import Blocking
from htas.planning.eligibility.drain_rules import (
    daemon_set,
    disruption_budget,
    do_not_disrupt,
    kube_system,
    local_storage,
    long_terminating,
    mirror,
    not_movable,
    not_safe_to_evict,
    on_completion,
    opted_out,
    replica_count,
    replicated,
    safe_to_evict,
    service_opt_in,
    unsupported,
)
from htas.planning.eligibility.drain_rules.rule import MOVES, Context, Rule, Verdict

RULES: tuple[Rule, ...] = (
    mirror.judge,
    long_terminating.judge,
    replica_count.judge,
    daemon_set.judge,
    # HTAS's own four stand before safe-to-evict: "true", which would else cut them off.
    do_not_disrupt.judge,
    unsupported.judge,
    service_opt_in.judge,
    not_movable.judge,
    safe_to_evict.judge,
    on_completion.judge,
    replicated.judge,
    kube_system.judge,
    not_safe_to_evict.judge,
    local_storage.judge,
    disruption_budget.judge,
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
        if rule is safe_to_evict.judge:  # it speaks for those behind it
            break
    return held


HANDING_BACK: tuple[Rule, ...] = (
    mirror.judge,
    long_terminating.judge,
    daemon_set.judge,
    do_not_disrupt.judge,
    opted_out.judge,
    safe_to_evict.judge,
    on_completion.judge,
    replicated.judge,
    not_safe_to_evict.judge,
    local_storage.judge,
)
"""What holds a pod even where an operator gives its machine back: what it was promised, and what would be lost.

Left out is what asks whether a move is worth it (services that did not opt in, few replicas), or that a pod be placed
elsewhere by HTAS, and kube-system: its pods are evicted as `kubectl drain` does. Budgets are left to the Eviction API.
"""


def judge_handing_back(pod: Pod, context: Context) -> Verdict:
    """What the rules say of a pod on a machine that an operator gives back."""
    return _first(HANDING_BACK, pod, context)


PROMISES: tuple[Rule, ...] = (
    do_not_disrupt.judge,
    service_opt_in.judge,
    safe_to_evict.judge,
    kube_system.judge,
    not_safe_to_evict.judge,
)
"""What holds a pod by somebody's wish alone: the rest holds it since something would be lost."""


def promised(pod: Pod, context: Context) -> Verdict | None:
    """The wish that keeps a pod where it is; None: there is none. Budgets are for those that go, not for a move."""
    for rule in PROMISES:
        verdict = rule(pod, context)
        if verdict is not None:
            return None if verdict.blocked in (None, Blocking.NOT_ENOUGH_PDB) else verdict
    return None
