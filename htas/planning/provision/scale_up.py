"""Of `schedule`, then: who waits for room about to free, what is bought for others, and why the rest gets nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from htas.model.plan import UnplacedPod
from htas.model.pods import Pod, WorkKind
from htas.model.reasons import Unplaced
from htas.model.search_failures import OptionalSearch
from htas.planning.cluster.closed_nodes import ClosedNodes
from htas.planning.cluster.feasibility.message import summary
from htas.planning.cluster.many_classes import may_have_room
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.provision.arrivals import Arrivals
from htas.planning.provision.batch import wait_for_zero_bin
from htas.planning.provision.look_ahead import Ahead, look_ahead
from htas.planning.provision.namespace_limits import limited_namespaces
from htas.planning.provision.purchase import BoughtMachine, Purchase, explain_shortage, purchase
from htas.planning.provision.steady import NOT_STEADY, steady_work
from htas.planning.rental.lengthening import NO_BARGAIN, Lengthening, in_words


@dataclass(slots=True)
class ScaleUp:
    """What buying came to. `kept` are nodes with room for work that is expected, by name."""

    purchase: Purchase | None = None
    unplaced: list[UnplacedPod] = field(default_factory=list)
    kept: frozenset[str] = frozenset()
    is_for_more: bool = False
    """Machines were chosen for work that is still to come, too."""

    @property
    def bought(self) -> dict[int, BoughtMachine]:
        """What is to be launched, by its row."""
        return {} if self.purchase is None else {item.row: item for item in self.purchase.bought}


def buy(
    context: PlanContext,
    demands: Sequence[Demand],
    lengthening: Lengthening | None = None,
    small_groups: Collection[str] = (),
    *,
    is_due: bool,
) -> ScaleUp:
    """Leave to wait what will have room, buy for the rest (or for later, when not due), explain what gets nothing.

    `small_groups` are brought up to their minimum size.
    """
    simulated, snapshot, policy = context.simulated, context.snapshot, context.policy
    arrivals = Arrivals.of(snapshot, policy, context.now, limited_namespaces(simulated.sim))
    ahead = context.attempt(OptionalSearch.HEADROOM, lambda: _ahead(context, arrivals, demands), Ahead)
    scale_up = ScaleUp(kept=ahead.kept)
    if not is_due:
        scale_up.unplaced = _not_due(context, demands, lengthening)
        return scale_up
    scale_up.unplaced = _patient(context, ahead)
    there = simulated.sim.all_rows  # the machines bought next are no nodes that could have refused
    has_need = ahead.is_worth_buying or any(demand.count for demand in demands)
    ahead_of_need = ahead.short if has_need else ()
    steady = steady_work(simulated.book, policy, arrivals) if has_need else NOT_STEADY
    scale_up.is_for_more = bool(ahead_of_need or steady)
    closed = ClosedNodes(simulated)
    with simulated.sim.defaults.counted(simulated.sim.table):
        scale_up.purchase = purchase(
            simulated.sim,
            policy,
            snapshot,
            demands,
            context.placer,
            ahead_of_need,
            steady,
            context.searches,
            small_groups,
        )
    for demand in demands:
        if demand.count and demand.cls.kind is WorkKind.BATCH:  # no room is refused to what nothing is bought for
            demand.count -= context.placer.anywhere().place(simulated.sim, demand.cls, demand.count)
        if demand.count:
            refusals, nodes = closed.refusals(demand.cls, there)
            with simulated.sim.defaults.counted(simulated.sim.table):
                reason, message = explain_shortage(
                    simulated.sim, policy, demand.cls, scale_up.purchase, refusals, nodes
                )
            scale_up.unplaced += _told(demand.youngest(demand.count), reason, message, refusals)
    return scale_up


def _ahead(context: PlanContext, arrivals: Arrivals, demands: Sequence[Demand]) -> Ahead:
    """What room is about to free, and what work is about to come."""
    simulated, policy = context.simulated, context.policy
    sim, book, placer, running = simulated.sim, simulated.book, context.placer, simulated.running
    if policy.look_ahead_s > 0:
        return look_ahead(sim, book, placer, policy, arrivals, running, demands)
    return Ahead(tuple(wait_for_zero_bin(sim, book, placer, policy, running, demands)))


def _patient(context: PlanContext, ahead: Ahead) -> list[UnplacedPod]:
    """Take those that can wait for room about to free out of their demands; they are told so."""
    policy, told = context.policy, list[UnplacedPod]()
    within_s = policy.look_ahead_s or policy.cycles.autoscaling_s
    message = f"batch work ends within {within_s:g} s where it fits, sooner than a new machine"
    for wait in ahead.waits:
        pods = wait.demand.youngest(wait.count)
        told += _told(pods, Unplaced.CAPACITY_FREES_SOON, message, {})
        wait.demand.leave_out(context.simulated.sim, pods)
    return told


def _not_due(context: PlanContext, demands: Sequence[Demand], lengthening: Lengthening | None) -> list[UnplacedPod]:
    refusals, nodes = ClosedNodes(context.simulated).refusals_of_each([demand.cls for demand in demands])
    messages = [f"waits for the next cycle; {summary(each, nodes)}" for each in refusals]
    return _waiting(context, demands, lengthening, Unplaced.AUTOSCALING_NOT_DUE, messages, refusals)


def _waiting(
    context: PlanContext,
    demands: Sequence[Demand],
    lengthening: Lengthening | None,
    reason: Unplaced,
    messages: Sequence[str],
    refusals: Sequence[dict[str, int]],
) -> list[UnplacedPod]:
    """Those that wait to be bought for; where a node has room that would be rented too long, they are told that."""
    told, has_hope = list[UnplacedPod](), [False] * len(demands)
    if lengthening is not None:
        has_hope = may_have_room(context.simulated.sim, [demand.cls for demand in demands])
    for demand, message, refused, may in zip(demands, messages, refusals, has_hope, strict=True):
        bargain = lengthening.best_refused(demand.cls) if lengthening is not None and may else None
        if lengthening is not None and bargain is not None:
            refused = {**refused, NO_BARGAIN: lengthening.refused(demand.cls)}
            message = f"{in_words(bargain, context.policy)}; {message}"
            told += _told(demand.youngest(demand.count), Unplaced.OWN_MACHINE_CHEAPER, message, refused)
        else:
            told += _told(demand.youngest(demand.count), reason, message, refused)
    return told


def _told(pods: Iterable[Pod], reason: Unplaced, message: str, refusals: dict[str, int]) -> list[UnplacedPod]:
    return [UnplacedPod(pod.key, reason, message, refusals) for pod in pods]
