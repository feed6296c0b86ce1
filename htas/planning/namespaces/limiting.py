"""Limits of namespaces: whom they hold back, so that what is bought is not for the first that asks.

A plan is made with all that waits, and charged (`charges`). Where a namespace with a limit comes to more, as many of
its waiting pods as lie beyond are held back, and the plan is made anew: buying, packing, preempting and the optimiser
then all see the same. Who is held back may still run on nodes that HTAS did not buy: those are nobody's bill.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from htas.model.constraints import Constraints, NodeSelectorTerm
from htas.model.money import price_text
from htas.model.nodes import CLUSTER_LABEL
from htas.model.plan import Bind, Plan, UnplacedPod
from htas.model.pods import Pod, priority_sort
from htas.model.policy import NamespaceLimit, Policy
from htas.model.proposals import Seat
from htas.model.reasons import Unplaced
from htas.model.resources import MILLION, Resources
from htas.model.selectors import Operator, Requirement
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.whereabouts import is_pending, node_of
from htas.planning.namespaces.charges import (
    NamespaceCharge,
    by_namespace,
    charges,
    is_charged,
    namespace_of,
    share,
)

MOST_TURNS = 8
"""So often a plan is made anew. With fewer pods smaller machines are bought, which those pods fill less: each may be
charged more than before. From the second turn on half of those that are left are held back, so that of a hundred pods
one is left in the end. The next cycle goes on from there.
"""
LEAST_PART = 4
"""A pod is charged no less than a quarter of the share it asks for: where pods use up four resources of a machine to
the brim, each another one, they share it in four."""

Planned = Callable[[ClusterSnapshot], Plan]


def within_limits(planned: Planned, snapshot: ClusterSnapshot, policy: Policy) -> Plan:
    """The plan in which no namespace's bought machines exceed its limits by what this plan adds to them."""
    queues = _queues(snapshot, policy)
    if not queues:
        return planned(snapshot)
    held = _hopeless(queues, snapshot, policy)
    made = planned(fenced(snapshot, policy, held))
    for turn in range(MOST_TURNS):
        beyond = _beyond(queues, held, made, snapshot, policy)
        if not beyond:
            break
        held |= beyond
        if turn:
            held |= _halves(queues, held, {namespace_of(key) for key in beyond})
        made = planned(fenced(snapshot, policy, held))
    else:
        still = {namespace_of(key) for key in _beyond(queues, held, made, snapshot, policy)}
        if still:
            held |= {pod.key for namespace in still for pod in queues[namespace]}
            made = planned(fenced(snapshot, policy, held))
    return _told(made, held, snapshot, policy)


def fenced(snapshot: ClusterSnapshot, policy: Policy, held: Collection[str]) -> ClusterSnapshot:
    """The snapshot in which pods (by key) may run on no machine that was bought, and none may be bought for them."""
    if not held:
        return snapshot
    pods = tuple(_kept_off(pod, policy) if pod.key in held else pod for pod in snapshot.cluster.pods)
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=pods))


def held_in(plan: Plan) -> frozenset[str]:
    """Pods, by key, that a plan held back for their namespace's limit."""
    return frozenset(item.pod for item in plan.unplaced if item.reason is Unplaced.NAMESPACE_LIMIT)


def exceeds(seats: Sequence[Seat], snapshot: ClusterSnapshot, policy: Policy) -> str:
    """What is wrong with seats that pods are to be given: a namespace would have more than its limit; "": nothing."""
    if not policy.namespaces:
        return ""
    made = Plan(snapshot.taken_at, bind=tuple(Bind(seat.pod, seat.node) for seat in seats))
    seated = {seat.pod for seat in seats}
    queues = {name: [pod for pod in pods if pod.key in seated] for name, pods in _queues(snapshot, policy).items()}
    beyond = _beyond(queues, frozenset(), made, snapshot, policy)
    names = sorted({namespace_of(key) for key in beyond})
    return f"namespace {names[0]} would have more of the launched machines than its limit" if names else ""


def _queues(snapshot: ClusterSnapshot, policy: Policy) -> dict[str, list[Pod]]:
    """Waiting pods of each namespace that has a limit, in the order in which it may use it up."""
    if not any(limit.limits_machines for limit in policy.namespaces):
        return {}  # as in most clusters: 50,000 pods are not looked at for nobody
    queues: dict[str, list[Pod]] = defaultdict(list)
    for pod in snapshot.cluster.pods:
        if is_pending(pod, node_of(pod, snapshot)) and is_charged(pod):
            limit = policy.limit_of(pod.namespace)
            if limit is not None and limit.limits_machines:
                queues[pod.namespace].append(pod)
    for pods in queues.values():
        pods.sort(key=priority_sort)
    return dict(queues)


def _hopeless(queues: Mapping[str, Sequence[Pod]], snapshot: ClusterSnapshot, policy: Policy) -> set[str]:
    """Who is beyond the limit however well all is packed: of 20,000 pods few are then planned for at all.

    What runs counts where none of those who wait is more important: else it may be preempted for its own namespace.
    """
    firm = {namespace: max(pod.priority for pod in pods) for namespace, pods in queues.items()}
    found = charges(snapshot, policy)
    stays = {pod.key for pod in snapshot.cluster.pods if pod.priority >= firm.get(pod.namespace, pod.priority)}
    standing = by_namespace((key, charge) for key, charge in found.items() if key in stays)
    held: set[str] = set()
    asked = {pod.requests for pods in queues.values() for pod in pods}  # of 20,000 pods a few templates
    of_requests = {requests: _least(requests, policy) for requests in asked}
    for namespace, pods in queues.items():
        least = {pod.key: of_requests[pod.requests] for pod in pods}
        held |= _cut(pods, least, standing.get(namespace, NamespaceCharge()), policy.limit_of(namespace))
    return held


def _beyond(
    queues: Mapping[str, Sequence[Pod]],
    held: Collection[str],
    made: Plan,
    snapshot: ClusterSnapshot,
    policy: Policy,
) -> set[str]:
    """Waiting pods that a plan has room for and that take their namespace beyond its limit."""
    found = charges(snapshot, policy, made)
    new = {pod.key for pods in queues.values() for pod in pods}
    standing = by_namespace((key, charge) for key, charge in found.items() if key not in new)
    beyond: set[str] = set()
    for namespace, pods in queues.items():
        given = [pod for pod in pods if pod.key in found and pod.key not in held]
        beyond |= _cut(given, found, standing.get(namespace, NamespaceCharge()), policy.limit_of(namespace))
    return beyond


def _halves(queues: Mapping[str, Sequence[Pod]], held: Collection[str], namespaces: Iterable[str]) -> set[str]:
    """The later half of those who are not held back yet, of some namespaces; of a single one nobody."""
    later: set[str] = set()
    for namespace in namespaces:
        left = [pod.key for pod in queues[namespace] if pod.key not in held]
        later |= set(left[(len(left) + 1) // 2 :])
    return later


def _cut(
    pods: Iterable[Pod], costs: Mapping[str, NamespaceCharge], have: NamespaceCharge, limit: NamespaceLimit | None
) -> set[str]:
    """Those of a queue for whom the limit leaves nothing; a smaller one behind a larger one may have what is left."""
    beyond = set()
    for pod in pods:
        with_it = have + costs[pod.key]
        if limit is None or limit.holds(with_it.cpu_m, with_it.nanos):
            have = with_it
        else:
            beyond.add(pod.key)
    return beyond


def _least(requests: Resources, policy: Policy) -> NamespaceCharge:
    """What a pod that asks for so much is charged at least, wherever it is put.

    Nothing where no flavour holds it, since none is bought.
    """
    holding = [flavour for flavour in policy.catalogue.flavours if requests.fits_in(flavour.allocatable)]
    prices = [
        flavour.nanos_per_hour * share(requests, flavour.allocatable) // (LEAST_PART * MILLION) for flavour in holding
    ]
    return NamespaceCharge(requests.cpu_m // LEAST_PART if holding else 0, min(prices, default=0))


def _kept_off(pod: Pod, policy: Policy) -> Pod:
    """The pod with one more demand: a node that does not bear this cluster's label, as machines that are bought do."""
    not_bought = Requirement(CLUSTER_LABEL, Operator.NOT_IN, (policy.cluster,))
    terms = pod.constraints.node_affinity
    fenced_off = (
        (NodeSelectorTerm((not_bought,)),)
        if terms is None
        else tuple(
            msgspec.structs.replace(term, expressions=(*term.expressions, not_bought))
            for term in terms
            if term != NodeSelectorTerm()  # one with neither part matches no node, and would with this one
        )
    )
    constraints: Constraints = msgspec.structs.replace(pod.constraints, node_affinity=fenced_off)
    return msgspec.structs.replace(pod, constraints=constraints)


def _told(made: Plan, held: Collection[str], snapshot: ClusterSnapshot, policy: Policy) -> Plan:
    """The plan with the reason of those held back, for whom nothing is searched either."""
    if not held:
        return made
    found = by_namespace(charges(snapshot, policy, made).items())
    unplaced = tuple(
        UnplacedPod(item.pod, Unplaced.NAMESPACE_LIMIT, _why(namespace_of(item.pod), found, policy))
        if item.pod in held and item.reason is not Unplaced.NOMINATED
        else item
        for item in made.unplaced
    )
    optimize = tuple(key for key in made.optimize if key not in held)
    return msgspec.structs.replace(made, unplaced=unplaced, optimize=optimize)


def _why(namespace: str, found: Mapping[str, NamespaceCharge], policy: Policy) -> str:
    have, limit = found.get(namespace, NamespaceCharge()), policy.limit_of(namespace)
    parts = []
    if limit is not None and limit.max_cpu_m is not None:
        parts.append(f"{have.cpu_m / 1000:g} of {limit.max_cpu_m / 1000:g} cores")
    if limit is not None and limit.max_nanos_per_hour is not None:
        most = price_text(limit.max_nanos_per_hour)
        parts.append(f"{price_text(have.nanos)} of {most} {policy.catalogue.currency}/h")
    return f"namespace {namespace} has {' and '.join(parts)} of the launched machines, and this would be more"
