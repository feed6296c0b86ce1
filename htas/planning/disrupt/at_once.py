"""Preemption before anything is launched: pods whose priority is below `fallback.preemptBelow` give way at once.

Such pods hold room for others, as the pause pods of overprovisioning do. kube-scheduler preempts whenever that helps,
and so does HTAS here: the evicted pod is pending then, and a later plan launches a machine for it. kube-scheduler knows
no machines that are still to come, so a pod that would wait for one preempts. All other running work is preempted only
where nothing can be launched (`fallback.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htas.model.holds import HoldReason
from htas.model.pods import Pod
from htas.model.policy import FallbackMode
from htas.model.search_failures import OptionalSearch
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.ending import ends_soon
from htas.planning.cluster.simulation import KeptRoom
from htas.planning.disrupt.preemption.candidates import PreemptionCandidate
from htas.planning.disrupt.preemption.preemptor import Preemptor
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.place.queue import SchedulingQueue

MOST_AT_ONCE = 100
"""A plan preempts for so many pods, the most important ones; the next plan goes on from there."""

Preempted = Sequence[tuple[Pod, PreemptionCandidate]]
"""Pods that are preempted for, with their nodes and victims."""


def preempt_at_once(context: PlanContext, queue: SchedulingQueue) -> Preempted:
    """Preempt for waiting pods that have no room on a node that is there, each priority in its turn.

    In the simulation room is kept for those pods; they leave the queue.
    """
    found: Preempted = context.attempt(OptionalSearch.PREEMPTION, lambda: _found(context, queue), lambda: ())
    queue.leave_out([pod for pod, _ in found])
    context.simulated.sim.keep_room(*_rooms(found, context.simulated.book))
    return found


def _found(context: PlanContext, queue: SchedulingQueue) -> Preempted:
    """Whom to preempt for. What is placed for that is taken back."""
    if not _is_possible(context):
        return ()
    sim, row_of = context.simulated.sim, context.simulated.sim.table.row_of
    at_once = _AtOnce(context)
    with sim.fork(), sim.closed([row_of[name] for name in context.simulated.coming if name in row_of]):
        queue.place(at_once.preempt_in_turn)
    return at_once.found


def _is_possible(context: PlanContext) -> bool:
    """Whether some running pod gives way at once to some waiting one."""
    policy, simulated = context.policy, context.simulated
    ours = [pod.priority for pod in simulated.waiting if pod.preempts and pod.scheduler == policy.scheduler_name]
    if not ours or policy.fallback.mode is FallbackMode.OFF:
        return False
    below, running = min(policy.fallback.preempt_below, max(ours)), simulated.running.values()
    return any(
        pod.priority < below and pod.is_work and not ends_soon(pod, context.now) for pods in running for pod in pods
    )


def _rooms(found: Preempted, book: ClassBook) -> list[KeptRoom]:
    return [KeptRoom(pod, book.class_of(pod), each.row, HoldReason.NOMINATED) for pod, each in found]


@dataclass(slots=True)
class _AtOnce:
    """Preempts for the pods of a priority that no node has room for, and collects what was decided."""

    context: PlanContext
    preemptor: Preemptor
    found: list[tuple[Pod, PreemptionCandidate]]

    def __init__(self, context: PlanContext) -> None:
        self.context, self.found = context, []
        below = context.policy.fallback.preempt_below
        self.preemptor = Preemptor(context.simulated, context.snapshot, context.policy, context.now, below)

    def preempt_in_turn(self, demands: Sequence[Demand], priority: int) -> None:
        """Preempt for those of the demands that are of a priority; they leave their demands."""
        due = [demand for demand in demands if demand.cls.priority == priority and demand.cls.is_ours]
        with self.preemptor.victims_gone():
            for at, demand in enumerate(due):
                helped = self._helped(demand, len(due) - at)
                demand.leave_out(self.context.simulated.sim, helped)

    def _helped(self, demand: Demand, classes_left: int) -> list[Pod]:
        helped: list[Pod] = []
        for pod in demand.youngest(demand.count):
            if len(self.found) == MOST_AT_ONCE or self.preemptor.looks_left <= 0:
                break
            chosen = self.preemptor.preempt(pod, classes_left)
            if isinstance(chosen, str):
                break  # nor is there a way for the next pod of this class
            self.found.append((pod, chosen))
            helped.append(pod)
        return helped
