"""Initializing: what registered nodes lack to be initialized, and what initialized ones teach about their flavours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from htas.execution.claim_life import NOTHING, Lacks
from htas.execution.ports import Ports
from htas.model.claims import ClaimState, NodeClaim
from htas.model.flavours import Learned
from htas.model.nodes import Node
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Policy
from htas.model.reasons import OutcomeReason
from htas.model.resources import Resources
from htas.model.snapshot import ClusterView
from htas.planning.cluster.initialization import is_unusable, still_awaited
from htas.planning.cluster.offered import capped, is_as_good_as_none, learned_from, shortfall, valid


@dataclass(slots=True)
class Initializing:
    """Judges the nodes of claims by one view of the cluster."""

    ports: Ports
    policy: Policy
    view: ClusterView
    claims: Mapping[str, NodeClaim]
    nodes: Mapping[str, Node]
    """By claim."""
    _learned: dict[str, Resources] | None = None
    _at_work: frozenset[str] | None = field(default=None)

    def lacks(self, claim: NodeClaim, node: Node | None) -> Lacks:
        """What a claim's node lacks, and whether its machine may fail for it."""
        if node is None or claim.ready_at is not None or not claim.is_coming:
            return NOTHING
        awaited = still_awaited(claim, node, self.policy, self.learned)
        return Lacks(awaited, (bool(awaited) or not node.is_ready) and self._may_fail(claim, node))

    def _may_fail(self, claim: NodeClaim, node: Node) -> bool:
        if claim.is_adopted or node.held_by is not None or node.name in self.at_work:
            return False
        group, flavour = self.policy.group(claim.group), self.policy.catalogue.named(claim.flavour)
        return not node.is_ready or is_unusable(node, group, flavour)

    @property
    def learned(self) -> dict[str, Resources]:
        """What each flavour offers, as far as it was learned from machines of today's price file."""
        if self._learned is None:
            self._learned = valid(self.ports.store.learned(), self.policy.catalogue)
        return self._learned

    @property
    def at_work(self) -> frozenset[str]:
        """Nodes with pods that are not a DaemonSet's, or with pods that cannot be read."""
        if self._at_work is None:
            working = {pod.node for pod in self.view.pods if pod.node is not None and pod.is_work}
            self._at_work = frozenset(working | self.view.unread.keys())
        return self._at_work

    def learn(self, claim: NodeClaim, node: Node) -> list[Outcome]:
        """Write down what a node offers that was initialized, or had its time; reported where it is news."""
        flavour = self.policy.catalogue.named(claim.flavour)
        if flavour is None or is_as_good_as_none(node.allocatable, flavour):
            return []
        known = self.learned.get(flavour.name)
        offered = learned_from(
            capped(node.allocatable, flavour, self.policy.catalogue), flavour, known, self._like(claim)
        )
        if offered == known:
            return []
        written = Learned(*offered.parts, promised=flavour.allocatable)
        self.ports.store.put_learned(flavour.name, written)
        self.learned[flavour.name] = offered
        news = shortfall(offered, flavour.allocatable)
        if not news or (known is not None and news == shortfall(known, flavour.allocatable)):
            return []
        message = f"node {node.name} offers {news}; new machines of the flavour are planned with this"
        return [Outcome(Action.MEASURE, flavour.name, OutcomeStatus.DONE, message)]

    def _like(self, claim: NodeClaim) -> list[Resources]:
        """What other initialized nodes of a claim's flavour offer."""
        return [
            self.nodes[other.id].allocatable
            for other in self.claims.values()
            if other.flavour == claim.flavour
            and other.state is ClaimState.READY
            and other.id != claim.id
            and other.id in self.nodes
        ]


def ended(claim: NodeClaim) -> list[Outcome]:
    """What is reported of a machine that was not initialized in time."""
    status = OutcomeStatus.FAILED if claim.state is ClaimState.FAILED else OutcomeStatus.DONE
    return [Outcome(Action.INITIALIZE, claim.id, status, claim.message, OutcomeReason.NOT_INITIALIZED)]
