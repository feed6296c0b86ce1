"""Emptying nodes: which may be emptied, where their pods would go, and the move itself.

What holds a pod on its node are Cluster Autoscaler's own rules (`planning.eligibility.drain_rules`), which every
baseline keeps: a drain that breaks one would be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from htas.model.claims import ClaimState, NodeClaim
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.nodes import Node
from htas.model.pods import Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import NodeGroup
from htas.model.proposals import Proposal, Release
from htas.model.reasons import ProposalReason
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.run_length import remaining_s
from htas.planning.disrupt.cleaning.utilization import is_empty, utilization
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.eligibility.drain_rules import Context
from htas.planning.place.placing import Order
from tools.lab.baselines.draft import Draft


@dataclass(frozen=True, slots=True)
class Occupied:
    """A node that could be given back, with all that runs on it."""

    node: Node
    row: int
    claim: NodeClaim
    group: NodeGroup
    pods: tuple[Pod, ...]
    utilization: float
    is_empty: bool
    price: int


class Emptying:
    """Empties nodes of a draft, one after another: pods moved count where they go, and nodes drained take none."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        snapshot = draft.snapshot
        self._ledger = BudgetLedger(snapshot.cluster.budgets)
        self._receiving = {move.target for move in snapshot.moves if move.target}
        self._receiving |= {move.target for drain in snapshot.drains for move in drain.moves if move.target}
        self._claims = {claim.id: claim for claim in snapshot.claims}
        self._needed = {bind.node for bind in draft.written(snapshot.memory).bind}

    def nodes(self) -> list[Occupied]:
        """Nodes of ours that run and that nothing is on its way to, by name."""
        draft, found = self.draft, []
        draining = {drain.node for drain in draft.snapshot.drains}
        for node in sorted(draft.snapshot.cluster.nodes, key=lambda node: node.name):
            claim, group = self._claims.get(node.claim or ""), draft.policy.group(node.group)
            if claim is None or group is None or claim.state is not ClaimState.READY or not node.is_ready:
                continue
            if node.is_draining or node.name in draining or node.held_by is not None:
                continue
            if node.name in self._needed or node.name in self._receiving:
                continue
            row = draft.sim.table.row_of[node.name]
            pods = tuple(draft.opening.running.get(row, ()))
            share = utilization(node, pods, group.cleaning, draft.now)
            price = draft.policy.catalogue.price(node.flavour, node.zone) or claim.price
            nanos = price.nanos_per_hour
            found.append(Occupied(node, row, claim, group, pods, share, is_empty(pods, draft.now), nanos))
        return found

    def targets(self, sources: Sequence[Occupied]) -> Bools:
        """Rows that pods may be moved to: nodes that run, other than the sources and those given back."""
        rows = self.draft.there
        rows[[source.row for source in sources]] = False
        return rows

    def movable(self, source: Occupied) -> list[Pod] | None:
        """The pods that have to leave, largest first; None: a rule holds one of them."""
        context, pods = Context(source.group.cleaning, self._ledger, self.draft.now), []
        for pod in source.pods:
            verdict = drain_rules.judge(pod, context)
            if verdict.blocked is not None or verdict.waits or (pod.is_terminating and not verdict.stays):
                return None
            if not verdict.stays:
                pods.append(pod)
        return sorted(pods, key=lambda pod: (-pod.requests.cpu_m, -pod.requests.memory_bytes, pod.key))

    def rehouse(self, source: Occupied, order: Order, rows: Bools) -> bool:
        """Place the pods of a node on the rows marked, in the simulation alone: all of them, or nothing is changed."""
        with self.draft.sim.fork() as branch:
            if self._rehoused(source, order, rows) is None:
                return False
            branch.commit()
        return True

    def empty(self, source: Occupied, order: Order) -> bool:
        """Move what runs on a node elsewhere and give it back; False, and nothing changed, where that cannot be."""
        draft = self.draft
        with draft.sim.fork() as branch:
            moves = self._rehoused(source, order, self.targets([source]))
            if moves is None:
                return False
            branch.commit()
        self.give_back(source, moves)
        return True

    def give_back(self, source: Occupied, moves: Sequence[Move]) -> None:
        """Note that a node is given back once its pods have moved, for which they have been placed."""
        draft = self.draft
        draft.sim.close(source.row)
        reason = ProposalReason.EMPTY if source.is_empty else ProposalReason.UNDERUTILIZED
        release = Release(source.node.name, source.claim.id)
        draft.proposals.append(Proposal(reason, tuple(moves), (), (release,), value=source.price))
        self._receiving |= {move.target for move in moves if move.target}

    @property
    def receiving(self) -> frozenset[str]:
        """Nodes that pods move to, by this draft or an earlier plan."""
        return frozenset(self._receiving)

    def _rehoused(self, source: Occupied, order: Order, rows: Bools) -> list[Move] | None:
        """Place the pods of a node on the rows marked: all of them, or None."""
        draft, pods, moves = self.draft, self.movable(source), list[Move]()
        if pods is None or self._ledger.try_spend(pods) is not None:
            return None
        self._ledger.refund(pods)  # asked for now; the Eviction API has the last word
        for pod in pods:
            cls = self.moved(pod, source.group.cleaning.migration)
            row = draft.best_row(cls, rows, order)
            if row is None:
                return None
            draft.sim.place(cls, row)
            target, method = draft.sim.table.nodes[row].name, source.group.cleaning.migration
            moves.append(Move(pod.key, pod.uid, source.node.name, target, method, MoveReason.NODE_DRAINED))
        return moves

    def moved(self, pod: Pod, method: MigrationMethod) -> PodClass:
        """The class of a pod where it goes: with what is left of its run, or all of it when it starts again."""
        if pod.kind is WorkKind.BATCH and method is MigrationMethod.CHECKPOINT:
            left = RunLength(remaining_s(pod, self.draft.policy, self.draft.now), RunLengthSource.ANNOTATION)
            pod = msgspec.structs.replace(pod, run_length=left)
        return self.draft.book.class_of(pod)


def youngest_s(draft: Draft) -> float:
    """How long ago a machine was last asked for, in seconds; infinite where there is none."""
    asked = [claim.created_at for claim in draft.snapshot.claims]
    return draft.now - max(asked) if asked else float(np.inf)
