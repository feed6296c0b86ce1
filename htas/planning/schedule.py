"""Scheduling: room for the pods that wait, on nodes, on machines to buy, or where less important pods leave.

First, pods of a priority below `fallback.preemptBelow` give way at once (`disrupt/at_once.py`). Then, nearly always,
everybody is placed, then bought for, and then preempted for. But where somebody is to be preempted for
and less important work has just been given room, that is taken back, and each priority has its turn, as in
kube-scheduler: its pods are placed, and those for whom nothing would be bought preempt, before anybody less important
is placed.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from htas.model.plan import UnplacedPod
from htas.model.search_failures import OptionalSearch
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.feasibility import NEIGHBOUR_FILTERS
from htas.planning.cluster.feasibility.filter_context import accepted
from htas.planning.cluster.simulation import Simulation, pods_by_row
from htas.planning.disrupt.at_once import Preempted, preempt_at_once
from htas.planning.disrupt.fallback import Fallback, Outlook, Preemptions
from htas.planning.disrupt.making_room.instead import MadeRoom, instead_of_buying
from htas.planning.disrupt.search_request import Waiting
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.place.queue import SchedulingQueue
from htas.planning.provision.launch_limits import limit_launches, small_groups
from htas.planning.provision.namespace_limits import hold_back_beyond_limits
from htas.planning.provision.offers import Offer, offers_of
from htas.planning.provision.refusing import refused_by_all
from htas.planning.provision.scale_up import ScaleUp, buy
from htas.planning.provision.unused_launches import LaunchesSoFar, launches_so_far
from htas.planning.rental.lengthening import Lengthening


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What was decided for the pods that wait; their places are in the simulation."""

    scale_up: ScaleUp
    preemptions: Preemptions
    placed_at_first: Set[str]
    """Pods that found room before anything was bought, by key."""
    work_is_waiting: bool
    """Somebody waits whom a node or a machine on offer would take."""
    room: MadeRoom | None = None
    """What is moved instead of launching more."""
    launches: LaunchesSoFar = field(default_factory=LaunchesSoFar)
    """What became of earlier launches."""


def schedule(context: PlanContext, lengthening: Lengthening | None, *, is_buying_due: bool) -> Scheduled:
    """Place, buy and preempt for the pods that wait."""
    queue = SchedulingQueue(context)
    scheduling = _Scheduling(context, queue, preempt_at_once(context, queue), lengthening, is_buying_due)
    made = scheduling.all_at_once()
    if isinstance(made, Scheduled):
        return made
    outlook = made
    return context.attempt(
        OptionalSearch.PREEMPTION, lambda: scheduling.in_turn(outlook), scheduling.without_preempting
    )


@dataclass(frozen=True, slots=True)
class _Scheduling:
    context: PlanContext
    queue: SchedulingQueue
    at_once: Preempted
    """Who is preempted for before anything is launched."""
    lengthening: Lengthening | None
    is_buying_due: bool

    @property
    def sim(self) -> Simulation:
        return self.context.simulated.sim

    def all_at_once(self) -> Scheduled | Outlook:
        """Everybody is placed, then bought for, then preempted for; or what to expect where less important work has to
        give way first."""
        fallback = Fallback(self.context, self.at_once)
        with self.sim.fork() as branch:
            demands = self.queue.place()
            copies = _copies(demands)
            made = self._bought(demands)
            waiting: Waiting = self.context.attempt(
                OptionalSearch.PREEMPTION, lambda: fallback.waiting(made.scale_up.unplaced), Waiting
            )
            if fallback.is_outranked(waiting):
                return Outlook(waiting, copies, made.scale_up.unplaced, self._shortage)
            branch.commit()
        preemptions = self.context.attempt(
            OptionalSearch.PREEMPTION,
            lambda: self._preempted(fallback, waiting, made),
            lambda: self._at_once_alone(made),
        )
        return replace(made, preemptions=preemptions)

    def _preempted(self, fallback: Fallback, waiting: Waiting, made: Scheduled) -> Preemptions:
        """Preempt, unless moves for the edge's sake have to be given up first."""
        with self.sim.fork() as branch:
            fallback.preempt(waiting)
            if fallback.acts_against_a_suggestion:
                return fallback.suggestion_given_up(made.scale_up.unplaced)
            branch.commit()
        return fallback.result(made.scale_up.unplaced)

    def in_turn(self, outlook: Outlook) -> Scheduled:
        """Each priority is placed and preempted for before the next one; then all are bought for."""
        fallback = Fallback(self.context, self.at_once, outlook)
        with self.sim.fork() as branch:
            made = self._bought(self.queue.place(fallback.preempt_in_turn))
            if not fallback.acts_against_a_suggestion:
                branch.commit()
                return replace(made, preemptions=fallback.result(made.scale_up.unplaced))
        made = self._bought(self.queue.place())
        return replace(made, preemptions=fallback.suggestion_given_up(made.scale_up.unplaced))

    def without_preempting(self) -> Scheduled:
        """Everybody is placed and bought for, and nobody more is preempted for than at once."""
        made = self._bought(self.queue.place())
        return replace(made, preemptions=self._at_once_alone(made))

    def _at_once_alone(self, made: Scheduled) -> Preemptions:
        """What was decided at once, and nothing more: those pods have left the queue."""
        return Fallback(self.context, self.at_once).result(made.scale_up.unplaced)

    def _bought(self, demands: Sequence[Demand]) -> Scheduled:
        """Machines bought for what found no room."""
        placements = pods_by_row(self.sim.assignments())
        placed = {pod.key for pods in placements.values() for pod in pods}
        so_far = launches_so_far(self.context, placements)
        demands, held_back = self._launchable(demands, so_far)
        work_is_waiting = _is_satisfiable(self.context, demands) or bool(self.sim.nominees)
        copies = _copies(demands)
        with self.sim.fork() as branch:
            scale_up = self._buy(demands, held_back, so_far)
            room = self._room_made(scale_up)
            if room is None:
                branch.commit()
                return Scheduled(scale_up, Preemptions(), placed, work_is_waiting, launches=so_far)
        with self.sim.fork() as branch:
            less = self._less_bought(_copies(copies), room, held_back, so_far)
            if _price(less) + room.nanos_per_hour <= _price(scale_up):
                branch.commit()
                return Scheduled(less, Preemptions(), placed, work_is_waiting, room, so_far)
        return Scheduled(self._buy(copies, held_back, so_far), Preemptions(), placed, work_is_waiting, launches=so_far)

    def _launchable(self, demands: Sequence[Demand], so_far: LaunchesSoFar) -> tuple[list[Demand], list[UnplacedPod]]:
        """(what may be launched for; what is held back by limits of namespaces or of launches, with the reason)."""
        affordable, beyond = hold_back_beyond_limits(self.context, demands)
        left, held_back = limit_launches(self.context, affordable, so_far)
        return left, [*beyond, *held_back]

    def _buy(self, demands: Sequence[Demand], held_back: Sequence[UnplacedPod], so_far: LaunchesSoFar) -> ScaleUp:
        groups = small_groups(self.context, so_far)
        scale_up = buy(self.context, demands, self.lengthening, groups, is_due=self.is_buying_due)
        scale_up.unplaced += held_back
        return scale_up

    def _room_made(self, scale_up: ScaleUp) -> MadeRoom | None:
        """Moves that cost less than some of the machines; where more work is to come, these would soon be in use."""
        if not self.context.policy.moves_instead_of_buying or not scale_up.bought or scale_up.is_for_more:
            return None
        rentals = self.lengthening.rentals if self.lengthening is not None else None
        return self.context.attempt(
            OptionalSearch.MAKING_ROOM,
            lambda: instead_of_buying(self.context, scale_up.bought, rentals),
            lambda: None,
        )

    def _less_bought(
        self, demands: Sequence[Demand], room: MadeRoom, held_back: Sequence[UnplacedPod], so_far: LaunchesSoFar
    ) -> ScaleUp:
        """What is bought for the others once room is made for some."""
        seated = {pod.key for pod in room.seated}
        for demand in demands:
            demand.leave_out(self.sim, [pod for pod in demand.youngest(demand.count) if pod.key in seated])
        self.sim.keep_room(*room.way.arrivals())
        return self._buy(demands, held_back, so_far)

    def _shortage(self, demands: Sequence[Demand]) -> Sequence[UnplacedPod]:
        """Pods that nothing would be bought for, and why: a what-if."""
        with self.sim.fork():
            so_far = launches_so_far(self.context, pods_by_row(self.sim.assignments()))
            copies, held_back = self._launchable(_copies(demands), so_far)
            return self._buy(copies, held_back, so_far).unplaced


def _price(scale_up: ScaleUp) -> int:
    return sum(item.offer.price for item in scale_up.bought.values())


def _copies(demands: Sequence[Demand]) -> list[Demand]:
    return [Demand(demand.cls, demand.count) for demand in demands]


# Whether there is hope for what waits: only work that somebody may yet have room for holds back emptying.


def _is_satisfiable(context: PlanContext, demands: Sequence[Demand]) -> bool:
    """Whether some node would take a pod of some demand if it had room, or some machine on offer would.

    A pod of 64 cores where the largest machine has 32 waits for ever, and so does one with a selector that no node and
    no flavour meets, or with a required affinity to pods that nobody runs: were they counted as a queue, one such pod
    would keep every half-empty node of the cluster. Whether a limit or a quota allows a machine is not asked: that may
    change at any time. Nor is whether buying is due, so that the answer does not change from cycle to cycle.
    """
    sim = context.simulated.sim
    if any(_would_take_with_room(sim, demand.cls).any() for demand in demands):
        return True
    bought_for = [demand for demand in demands if demand.count]  # nothing is launched for the others now
    if not bought_for:
        return False
    with sim.defaults.counted(sim.table):  # as where machines are chosen
        offers = offers_of(sim, context.policy, context.snapshot, [demand.cls for demand in bought_for])
        return any(_is_on_sale(context, demand.cls, offers) for demand in bought_for)


def _would_take_with_room(sim: Simulation, cls: PodClass) -> Bools:
    """Rows that lack nothing but room for a pod of a class; its neighbours, near and far, are those of now."""
    rows = sim.could_hold(cls)
    if cls.is_dynamic and rows.any():
        rows &= accepted(sim.filter_context, NEIGHBOUR_FILTERS, cls, sim.all_rows)
    return rows


def _is_on_sale(context: PlanContext, cls: PodClass, offers: Sequence[Offer]) -> bool:
    """Whether a new machine would let a pod of a class in: the question that its NoFlavourFits answers."""
    holding = [offer for offer in offers if offer.could_hold(cls)]
    if not cls.is_dynamic or not holding:
        return bool(holding)
    return not refused_by_all(context.simulated.sim, context.policy, holding, cls)
