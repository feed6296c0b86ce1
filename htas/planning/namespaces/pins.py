"""Pins: running pods that stay where they are by what is written in them, what that costs, and whose count no more.

`do-not-disrupt` and its like are promises to users, and any user may write them: twenty pods of a namespace can keep
twenty machines for ever. Who may is configuration (`namespaces`: maxPins, maxPinnedPricePerHour, pinnedFor). Beyond
it a pin is passed over: its pod is moved, evicted and preempted as one without it, by the Eviction API, within its
budget and its grace period. Budgets are no pins: they are kept for everybody.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from htas.model.money import price_text
from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT
from htas.model.pods import DAEMONSET_POD, MAY_MIGRATE, SAFE_TO_EVICT, Pod
from htas.model.policy import CleaningRules, NamespaceLimit, Policy
from htas.model.snapshot import ClusterSnapshot, ClusterView, Problem
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.drain_rules import KNOWN_CONTROLLERS, Context
from htas.planning.namespaces.charges import charges

_NO_GROUP = CleaningRules()
_NO_BUDGETS = BudgetLedger(())
_WISHES = frozenset({DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT, DAEMONSET_POD, MAY_MIGRATE})


@dataclass(frozen=True, slots=True)
class Pin:
    """A pod that stays where it is; `nanos` is what it is charged of its machine an hour: 0 on one not bought."""

    pod: Pod
    why: str
    nanos: int


@dataclass(frozen=True, slots=True)
class Pinned:
    """What a namespace pins: pods, their price in billionths an hour, since when; and how many are passed over."""

    pods: int
    nanos: int
    since: float
    passed_over: int


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


def within_limits(view: ClusterView, policy: Policy, now: float) -> ClusterView:
    """The view in which pins beyond their namespace's limits are passed over, each with the reason on its pod."""
    if not any(limit.limits_pins for limit in policy.namespaces):  # as in most clusters
        return view
    held = [pin for pin in pins(view, policy, now) if policy.limit_of(pin.pod.namespace) is not None]
    beyond = _beyond(held, policy, now)
    if not beyond:
        return view
    pods = tuple(_passed_over(pod, beyond[pod.uid]) if pod.uid in beyond else pod for pod in view.pods)
    return msgspec.structs.replace(view, pods=pods, problems=(*view.problems, *_told(held, beyond)))


def by_namespace(view: ClusterView, policy: Policy, now: float) -> dict[str, Pinned]:
    """What each namespace pins, the dearest first. `view` is as the daemon observes it, with pins passed over."""
    found: dict[str, list[Pin]] = defaultdict(list)
    for pin in pins(view, policy, now):
        found[pin.pod.namespace].append(pin)
    over = Counter(pod.namespace for pod in view.pods if pod.passed_over)
    told = {
        name: Pinned(
            len(found[name]),
            sum(pin.nanos for pin in found[name]),
            min((pin.pod.since for pin in found[name]), default=now),
            over[name],
        )
        for name in found.keys() | over.keys()
    }
    return dict(sorted(told.items(), key=lambda item: (-item[1].nanos, -item[1].pods, item[0])))


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


def _beyond(held: Iterable[Pin], policy: Policy, now: float) -> dict[str, str]:
    """Pods (by uid) whose pins their namespace's limit does not hold, with the reason; the oldest are held first."""
    pods: Counter[str] = Counter()
    nanos: Counter[str] = Counter()
    beyond: dict[str, str] = {}
    for pin in held:
        name, limit = pin.pod.namespace, policy.limit_of(pin.pod.namespace)
        if limit is None:
            continue
        why = _refusal(pin, pods[name], nanos[name], limit, policy.catalogue.currency, now)
        if why:
            beyond[pin.pod.uid] = f"{why} ({pin.why})"
        else:
            pods[name] += 1
            nanos[name] += pin.nanos
    return beyond


def _refusal(pin: Pin, pods: int, nanos: int, limit: NamespaceLimit, currency: str, now: float) -> str:
    name = pin.pod.namespace
    if limit.pinned_for_s is not None and now - pin.pod.since > limit.pinned_for_s:
        return f"namespace {name} may pin a pod for {limit.pinned_for_s:.0f} s, and it has run longer"
    if limit.max_pins is not None and pods >= limit.max_pins:
        return f"namespace {name} may pin {limit.max_pins} pods, and older ones are pinned"
    most = limit.max_pinned_nanos_per_hour
    if most is not None and nanos + pin.nanos > most:
        return f"namespace {name} may pin pods for {price_text(most)} {currency}/h, and older ones are pinned"
    return ""


def _passed_over(pod: Pod, why: str) -> Pod:
    """The pod as one that has asked for nothing: what would be lost with it is lost, as where nothing is promised."""
    left = {key: value for key, value in pod.disruption.items() if key not in _WISHES}
    if pod.disruption.get(MAY_MIGRATE) == "true":
        left[MAY_MIGRATE] = "true"
    return msgspec.structs.replace(pod, disruption={**left, SAFE_TO_EVICT: "true"}, passed_over=why)


def _told(held: Iterable[Pin], beyond: Mapping[str, str]) -> Iterator[Problem]:
    """One line for each namespace, with one of its pods as an example."""
    over: dict[str, list[Pod]] = defaultdict(list)
    for pin in held:
        if pin.pod.uid in beyond:
            over[pin.pod.namespace].append(pin.pod)
    for name, pods in sorted(over.items()):
        others = f", and {len(pods) - 1} more" if len(pods) > 1 else ""
        what = f"pins beyond its limits are passed over: {pods[0].key}: {beyond[pods[0].uid]}{others}"
        yield Problem(f"Namespace {name}", what, is_doubt=True)
