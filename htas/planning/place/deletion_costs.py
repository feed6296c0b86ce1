"""Which pods of a ReplicaSet go first when it shrinks: those on the machines that came last.

Of two pods that are Ready Kubernetes deletes the one with the lower `controller.kubernetes.io/pod-deletion-cost`, and,
where none is stated, one of those that share their node with the most others: three machines of three replicas each
have two each when six are left, and none can be given back. HTAS evicts no service that has not opted in, so that it
has to be the ReplicaSet that empties a machine. With costs that fall with the machine's age the last machine empties
first, which is 0.87 to 0.96 of the bill where services flap, and 0.93 by day and night (docs/benchmarks.md).

The cost goes with the binding, whose annotations become the pod's (Kubernetes, pkg/registry/core/pod/storage,
`setPodHostAndAnnotations`): it takes no call more and no right more, and is never changed. Karpenter has proposed the
same by a controller that patches pods (kubernetes-sigs/karpenter#2935).

Nothing is written on a pod that states a cost itself or whose ReplicaSet has pods that do (their application says
which are idle), on one that would rather be spread, on nodes that HTAS did not buy (unstated counts as 0: what is there
anyway keeps its pods), or where the group's `cleaning.podDeletionCost` is false.
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

    def of(self, pod: Pod, node: str) -> int | None:
        """What is written on a pod that is bound to that node; None: nothing."""
        owner = pod.owner
        if owner is None or owner.kind != "ReplicaSet":  # nobody else looks at the cost
            return None
        if pod.prefers_apart or pod.constraints.spread or owner.uid in self._stating:
            return None
        there = self._nodes.get(node)
        return cost_on(there) if there is not None and self._may_go(there) else None

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self._snapshot.cluster.nodes}

    @cached_property
    def _stating(self) -> set[str]:
        """ReplicaSets, by uid, whose pods have costs that are not HTAS's."""
        pods = self._snapshot.cluster.pods
        return {each.owner.uid for each in pods if each.owner is not None and _states_its_own(each)}

    def _may_go(self, node: Node) -> bool:
        group = self._policy.group(node.group)
        if group is None or node.claim is None or not group.is_elastic:
            return False
        return group.cleaning.enabled and group.cleaning.sets_deletion_costs


def _states_its_own(pod: Pod) -> bool:
    return pod.deletion_cost is not None and not is_ours(pod.deletion_cost)
