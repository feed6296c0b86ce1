"""What namespaces are charged of launched machines: each pod on one, by its share of what is used.

A machine of 8 cores and 0.40 an hour that holds pods of 4 cores and of 1: they are charged 0.32 and 0.08. Nothing is
left over, so a pod of a millicore that keeps all others off its machine is charged all of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.resources import Resources, share_millionths
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.machines import nanos_paid
from htas.planning.cluster.whereabouts import node_of


@dataclass(frozen=True, slots=True)
class NamespaceCharge:
    """Cores of launched machines in millicores, and their price in billionths an hour."""

    cpu_m: int = 0
    nanos: int = 0

    def __add__(self, other: NamespaceCharge) -> NamespaceCharge:
        return NamespaceCharge(self.cpu_m + other.cpu_m, self.nanos + other.nanos)


@dataclass(slots=True)
class ChargedMachine:
    """A launched machine and the pods on it."""

    capacity: Resources
    nanos: int
    pods: list[Pod] = field(default_factory=list)

    def charges(self) -> Iterator[tuple[Pod, NamespaceCharge]]:
        """What each of its pods is charged; DaemonSets' and static pods, which are on every node, nothing."""
        charged = [pod for pod in self.pods if pod.is_charged]
        shares = [max(1, share_millionths(pod.requests, self.capacity)) for pod in charged]
        whole = sum(shares)
        for pod, part in zip(charged, shares, strict=True):
            yield pod, NamespaceCharge(self.capacity.cpu_m * part // whole, self.nanos * part // whole)


def charges(snapshot: ClusterSnapshot, policy: Policy) -> dict[str, NamespaceCharge]:
    """What each pod (by key) on a launched machine is charged."""
    claims = {claim.id: claim for claim in snapshot.claims}
    there = {
        node.name: ChargedMachine(node.allocatable, nanos_paid(node, claims.get(node.claim or ""), policy))
        for node in snapshot.cluster.nodes
        if node.cluster == policy.cluster and not policy.is_given(node)
    }
    for pod in snapshot.cluster.pods:
        name = node_of(pod, snapshot)
        if name in there:
            there[name].pods.append(pod)
    return {pod.key: charge for machine in there.values() for pod, charge in machine.charges()}


def by_namespace(found: Iterable[tuple[str, NamespaceCharge]]) -> dict[str, NamespaceCharge]:
    """The sums of pods' charges (by key) over their namespaces."""
    sums: dict[str, NamespaceCharge] = defaultdict(NamespaceCharge)
    for key, charge in found:
        sums[key.partition("/")[0]] += charge
    return sums
