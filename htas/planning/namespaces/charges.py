"""Who is charged for a bought machine: the pods on it, each by its share of what is used.

A machine of 8 cores and 0.40 an hour that holds pods of 4 cores and of 1: they are charged 0.32 and 0.08.
Nothing is left over, so that a pod of a millicore that keeps all others off its machine is charged the whole of it; a
share of what it asks for would be a thousandth, and a hundred such pods would cost others a hundred machines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.resources import Resources, share_millionths
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.machines import nanos_paid
from htas.planning.cluster.whereabouts import node_of


@dataclass(frozen=True, slots=True)
class NamespaceCharge:
    """Cores of bought machines in millicores, and their price in billionths an hour."""

    cpu_m: int = 0
    nanos: int = 0

    def __add__(self, other: NamespaceCharge) -> NamespaceCharge:
        return NamespaceCharge(self.cpu_m + other.cpu_m, self.nanos + other.nanos)


@dataclass(slots=True)
class ChargedMachine:
    """A machine that was bought, is on its way or is about to be bought, and the pods it is for."""

    capacity: Resources
    nanos: int
    pods: list[Pod] = field(default_factory=list)

    def charges(self) -> Iterator[tuple[Pod, NamespaceCharge]]:
        """What each of its pods is charged; DaemonSets' and static pods, which are on every node, nothing."""
        charged = [pod for pod in self.pods if is_charged(pod)]
        shares = [share(pod.requests, self.capacity) for pod in charged]
        whole = sum(shares)
        for pod, part in zip(charged, shares, strict=True):
            yield pod, NamespaceCharge(self.capacity.cpu_m * part // whole, self.nanos * part // whole)


def is_charged(pod: Pod) -> bool:
    """Whether it is work. An owner is believed where there is such a DaemonSet; an annotation is anybody's to write."""
    return not pod.is_mirror and not (pod.owner is not None and pod.owner.kind == "DaemonSet")


def share(asked: Resources, capacity: Resources) -> int:
    """The greatest share of any resource that is asked for, in millionths; one at least."""
    return max(1, share_millionths(asked, capacity))


def charges(snapshot: ClusterSnapshot, policy: Policy, plan: Plan | None = None) -> dict[str, NamespaceCharge]:
    """What each pod (by key) on a bought machine is charged, those included that a plan puts on one or buys one for."""
    there = _there(snapshot, policy)
    pods = {pod.key: pod for pod in snapshot.cluster.pods}
    leaving = {item.pod for item in plan.preempt} if plan is not None else ()
    for pod in snapshot.cluster.pods:
        if pod.key in leaving:
            continue
        name = node_of(pod, snapshot)
        if name in there:
            there[name].pods.append(pod)
    machines = list(there.values())
    if plan is not None:
        for key, name in _placed(plan, snapshot):
            if name in there and key in pods:
                there[name].pods.append(pods[key])
        machines += _launched(plan, policy, pods)
    found: dict[str, NamespaceCharge] = defaultdict(NamespaceCharge)
    for machine in machines:
        for pod, charge in machine.charges():
            found[pod.key] += charge  # a pod that is preempted for may have two nodes in sight
    return dict(found)


def by_namespace(found: Iterable[tuple[str, NamespaceCharge]]) -> dict[str, NamespaceCharge]:
    """The sums of pods' charges (by key) over their namespaces; nothing for those that have none."""
    sums: dict[str, NamespaceCharge] = defaultdict(NamespaceCharge)
    for key, charge in found:
        sums[namespace_of(key)] += charge
    return sums


def namespace_of(key: str) -> str:
    return key.partition("/")[0]


def _there(snapshot: ClusterSnapshot, policy: Policy) -> dict[str, ChargedMachine]:
    """Machines of ours by the name of their node, those on their way by their claim's id."""
    claims = {claim.id: claim for claim in snapshot.claims}
    found: dict[str, ChargedMachine] = {}
    for node in snapshot.cluster.nodes:
        if node.cluster == policy.cluster and not policy.is_given(node):
            found[node.name] = ChargedMachine(node.allocatable, nanos_paid(node, claims.get(node.claim or ""), policy))
    for claim in claims.values():
        flavour = policy.catalogue.named(claim.flavour)
        if claim.is_coming and flavour is not None:
            nanos = claim.nanos_per_hour or flavour.nanos_in(claim.zone)
            found.setdefault(claim.id, ChargedMachine(flavour.allocatable, nanos))
    return found


def _placed(plan: Plan, snapshot: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    """Waiting pods (by key) and where a plan, or a rearrangement under way, has room for them."""
    yield from ((bind.pod, bind.node) for bind in plan.bind)
    yield from ((item.pod, item.node) for item in plan.nominate)
    yield from {(item.beneficiary, item.source) for item in plan.preempt}
    if snapshot.rearrangement is not None:
        yield from ((slot.pod.key, slot.node) for slot in snapshot.rearrangement.slots if slot.source is None)


def _launched(plan: Plan, policy: Policy, pods: Mapping[str, Pod]) -> Iterable[ChargedMachine]:
    for item in plan.launches:
        flavour = policy.catalogue.named(item.flavour)
        if flavour is not None:
            yield ChargedMachine(
                flavour.allocatable, item.nanos_per_hour, [pods[key] for key in item.pods if key in pods]
            )
