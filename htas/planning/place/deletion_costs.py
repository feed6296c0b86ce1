"""Which pods of a ReplicaSet go first when it shrinks: those on the machines that came last.

Of two pods that are Ready Kubernetes deletes the one with the lower `controller.kubernetes.io/pod-deletion-cost`, and,
where none is stated, one of those that share their node with the most others: three machines of three replicas each
have two each when six are left, and none can be given back. HTAS evicts no service that has not opted in, so that it
has to be the ReplicaSet that empties a machine. With costs that fall with the machine's age the last machine empties
first, which is 0.87 to 0.96 of the bill where services flap, and 0.93 by day and night (docs/benchmarks.md).

The cost goes with the binding, whose annotations become the pod's (Kubernetes, pkg/registry/core/pod/storage,
`setPodHostAndAnnotations`): it takes no call more and no right more, and is never changed. Karpenter has the same as an
alpha feature, by a controller that patches pods and ranks them anew (kubernetes-sigs/karpenter#2935).

Nothing is written on a pod that states a cost itself, or whose service has or had pods that do, over its ReplicaSets
(their application says which are idle); on one that would rather be spread; on nodes that HTAS did not buy or that
somebody holds (unstated counts as 0: what is there anyway keeps its pods); or where the group's
`cleaning.podDeletionCost` is false.
"""

from __future__ import annotations

from functools import cached_property

from htas.model.deletion_costs import cost_on, is_ours
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot


class DeletionCosts:
    """The costs that pods get as they are bound."""

    def __init__(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        self._snapshot, self._policy = snapshot, policy
        self.stating = services_that_state_costs(snapshot)

    def of(self, pod: Pod, node: str) -> int | None:
        """What is written on a pod that is bound to that node; None: nothing."""
        if pod.owner is None or pod.owner.kind != "ReplicaSet":  # Jobs and StatefulSets do not look at it
            return None
        if pod.deletion_cost is not None or pod.prefers_apart or pod.constraints.spread or pod.service in self.stating:
            return None
        there = self._nodes.get(node)
        return cost_on(there) if there is not None and self._may_go(there) else None

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self._snapshot.cluster.nodes}

    def _may_go(self, node: Node) -> bool:
        group = self._policy.group(node.group)
        if group is None or node.claim is None or node.held_by is not None or not group.is_elastic:
            return False
        return group.cleaning.enabled and group.cleaning.sets_deletion_costs


def services_that_state_costs(snapshot: ClusterSnapshot) -> frozenset[str]:
    """Services whose pods have had costs that are not HTAS's, as far as it was seen, while they have pods at all.

    A pod that its application marks is deleted a moment later, and its like are bound long after.
    """
    pods, known = snapshot.cluster.pods, frozenset(snapshot.memory.states_costs)
    now = {pod.service for pod in pods if pod.deletion_cost is not None and not is_ours(pod.deletion_cost)}
    before = {pod.service for pod in pods if pod.service in known} if known else set[str]()
    return frozenset(service for service in now | before if service is not None)
