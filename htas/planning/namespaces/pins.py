"""Pins: running pods that stay where they are by what is written in them, and what that costs.

`do-not-disrupt` and its like are kept for every pod. Any user may write them, so twenty pods of a namespace can keep
twenty machines: reports and metrics show which namespaces do. Disruption budgets are no pins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from htas.model.pods import DAEMONSET_POD, Pod
from htas.model.policy import CleaningRules, Policy
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.drain_rules import KNOWN_CONTROLLERS, Context
from htas.planning.namespaces.charges import charges

_NO_GROUP = CleaningRules()
_NO_BUDGETS = BudgetLedger(())


@dataclass(frozen=True, slots=True)
class Pin:
    """A pod that stays where it is; `nanos` is what it is charged of its machine an hour: 0 on one not bought."""

    pod: Pod
    why: str
    nanos: int


@dataclass(frozen=True, slots=True)
class Pinned:
    """What a namespace pins: pods, their price in billionths an hour, and since when."""

    pods: int
    nanos: int
    since: float


def pins(view: ClusterView, policy: Policy, now: float) -> list[Pin]:
    """Running pods that are neither moved nor evicted by what is written in them, the oldest first.

    That is a wish (do-not-disrupt, safe-to-evict "false" or on-completion, migrate "false"), or what nobody would
    start again or keep (no controller, one that is not known, data on the node). A pod that says it is a DaemonSet's
    is never preempted: that is a pin as well. Services that have not opted in are none: the default keeps them.
    """
    rules = {node.name: group.cleaning for node in view.nodes if (group := policy.group(node.group)) is not None}
    found: list[tuple[Pod, str]] = []
    for pod in view.pods:
        if pod.node is not None and not pod.is_terminating and _may_be_pinned(pod):
            why = _why(pod, Context(rules.get(pod.node, _NO_GROUP), _NO_BUDGETS, now))
            if why:
                found.append((pod, why))
    costs = _costs([pod for pod, _ in found], view, policy, now)
    return sorted((Pin(pod, why, costs.get(pod.key, 0)) for pod, why in found), key=lambda p: (p.pod.since, p.pod.key))


def by_namespace(view: ClusterView, policy: Policy, now: float) -> dict[str, Pinned]:
    """What each namespace pins, the dearest first."""
    found: dict[str, list[Pin]] = defaultdict(list)
    for pin in pins(view, policy, now):
        found[pin.pod.namespace].append(pin)
    sums = {
        name: Pinned(len(each), sum(pin.nanos for pin in each), min(pin.pod.since for pin in each))
        for name, each in found.items()
    }
    return dict(sorted(sums.items(), key=lambda item: (-item[1].nanos, -item[1].pods, item[0])))


def _may_be_pinned(pod: Pod) -> bool:
    """Whether it is worth asking the rules: of 50,000 pods nearly none say anything."""
    if pod.is_mirror or (pod.owner is not None and pod.owner.kind == "DaemonSet"):
        return False
    return bool(pod.disruption) or pod.owner is None or pod.owner.kind not in KNOWN_CONTROLLERS or pod.has_local_storage


def _why(pod: Pod, context: Context) -> str:
    """What pins it, in the words of the rule; "": nothing does."""
    if pod.is_daemon:
        return f'{pod.key}: {DAEMONSET_POD}="true"'
    verdict = drain_rules.judge_handing_back(pod, context)
    return verdict.message if verdict.blocked is not None or verdict.waits else ""


def _costs(pinned: Sequence[Pod], view: ClusterView, policy: Policy, now: float) -> Mapping[str, int]:
    """What pods (by key) are charged of their machines, in billionths an hour."""
    names = {pod.node for pod in pinned}
    nodes = tuple(node for node in view.nodes if node.name in names)
    pods = tuple(pod for pod in view.pods if pod.node in names)
    found = charges(ClusterSnapshot(now, ClusterView(nodes, pods)), policy)
    return {key: charge.nanos for key, charge in found.items()}
