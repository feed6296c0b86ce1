"""The planner: snapshot in, plan out. Its stages, in order, are its table of contents (DESIGN 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from htas.model.nodes import Node
from htas.model.plan import Bind, Launch, Nomination, Plan, UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.classes import PodClass
from htas.planning.cleaning.cleaner import Cleaning, clean
from htas.planning.costing import cost_of
from htas.planning.feasibility.message import summary
from htas.planning.opening import Opening, open_simulation
from htas.planning.packing.bundling import bundle
from htas.planning.scaling.batch import wait_for_zero_bin
from htas.planning.scaling.cost_efficiency import Demand
from htas.planning.scaling.purchase import Bought, Purchase, explain_shortage, purchase
from htas.planning.simulation import pods_by_row


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage] = ALL_STAGES) -> Plan:
    """What to do about a snapshot. Reads nothing but its arguments and changes none of them.

    `stages` are the cycles that are due: placing always is, buying and cleaning have cycles of their own.
    """
    opening = open_simulation(snapshot, policy, now)
    demands = _place(opening)
    now_placed = {pod.key for pods in pods_by_row(opening.sim.assignments()).values() for pod in pods}
    buying = _buy(opening, snapshot, policy, demands, Stage.AUTOSCALING in stages)
    placements = pods_by_row(opening.sim.assignments())
    cleaning = _clean(opening, snapshot, policy, now, demands, placements, Stage.CLEANING in stages)
    return _written(opening, snapshot, policy, buying, placements, now_placed, cleaning)


@dataclass(slots=True)
class _Buying:
    """What the buying stage came to."""

    purchase: Purchase | None
    unplaced: list[UnplacedPod] = field(default_factory=list)


def _place(opening: Opening) -> list[Demand]:
    """Stages 1 and 2: bundle the waiting pods and place them; what is left has no room."""
    demands = []
    for cls in bundle(opening.waiting, opening.book):
        left = len(cls.pods) - opening.placer.place(opening.sim, cls, len(cls.pods))
        if left:
            demands.append(Demand(cls, left))
    return demands


def _buy(
    opening: Opening, snapshot: ClusterSnapshot, policy: Policy, demands: Sequence[Demand], is_due: bool
) -> _Buying:
    """Stages 3 and 4: leave to wait what the 0-bin will hold, buy for the rest, explain what cannot be bought for."""
    if not is_due:
        return _Buying(None, _explained(opening, demands, Unplaced.AUTOSCALING_NOT_DUE, "waits for the next cycle"))
    buying = _Buying(None)
    for wait in wait_for_zero_bin(opening.sim, opening.book, opening.placer, policy, opening.running, demands):
        wait.demand.count -= wait.count
        # The youngest wait: pods of a class are handed out oldest first.
        cls = wait.demand.cls
        message = f"a node ends its batch work within {policy.cycles.autoscaling_s:g} s, sooner than a purchase"
        buying.unplaced += _told(cls, cls.pods[len(cls.pods) - wait.count :], Unplaced.CAPACITY_FREES_SOON, message, {})
        del cls.pods[len(cls.pods) - wait.count :]
    there = opening.sim.all_rows  # the machines bought next are no nodes that could have refused
    buying.purchase = purchase(opening.sim, policy, snapshot, demands, opening.placer)
    for demand in demands:
        if demand.count:
            refusals, nodes = opening.sim.diagnose(demand.cls, there), opening.sim.open_rows(there)
            reason, message = explain_shortage(opening.sim, policy, demand.cls, buying.purchase, refusals, nodes)
            left = demand.cls.pods[len(demand.cls.pods) - demand.count :]
            buying.unplaced += _told(demand.cls, left, reason, message, refusals)
    return buying


def _explained(opening: Opening, demands: Iterable[Demand], reason: Unplaced, message: str) -> list[UnplacedPod]:
    told: list[UnplacedPod] = []
    for demand in demands:
        refusals = opening.sim.diagnose(demand.cls)
        left = demand.cls.pods[len(demand.cls.pods) - demand.count :]
        told += _told(demand.cls, left, reason, f"{message}; {summary(refusals, opening.sim.open_rows())}", refusals)
    return told


def _told(
    cls: PodClass, pods: Iterable[Pod], reason: Unplaced, message: str, refusals: dict[str, int]
) -> list[UnplacedPod]:
    return [UnplacedPod(pod.key, reason, message, refusals) for pod in pods]


def _clean(
    opening: Opening,
    snapshot: ClusterSnapshot,
    policy: Policy,
    now: float,
    demands: Sequence[Demand],
    placements: dict[int, list[Pod]],
    is_due: bool,
) -> Cleaning:
    """Stage 6: empty and release what is not worth its price."""
    names = opening.sim.table.nodes
    needed = {names[row].name for row in placements} | {pod.nominated_node or "" for pod in opening.nominated}
    return clean(
        opening.sim,
        opening.book,
        opening.placer,
        snapshot,
        policy,
        now,
        is_due=is_due,
        work_is_waiting=bool(demands) or any(names[row].name in opening.coming for row in placements),
        needed=frozenset(needed),
    )


def _written(
    opening: Opening,
    snapshot: ClusterSnapshot,
    policy: Policy,
    buying: _Buying,
    placements: dict[int, list[Pod]],
    now_placed: set[str],
    cleaning: Cleaning,
) -> Plan:
    bought = {} if buying.purchase is None else {item.row: item for item in buying.purchase.bought}
    bind, nominate = _binds(opening, snapshot, policy, placements, now_placed, set(bought))
    launch = tuple(_launch(item, placements.get(item.row, [])) for item in bought.values())
    unplaced = [
        *buying.unplaced,
        *(UnplacedPod(p.key, Unplaced.SCHEDULING_GATED, f"has gates: {', '.join(p.gates)}") for p in opening.gated),
        *(UnplacedPod(p.key, Unplaced.SURPLUS, "its controller has all it wants; it will go") for p in opening.surplus),
        *(UnplacedPod(p.key, Unplaced.NOMINATED, f"nominated to {p.nominated_node}") for p in opening.nominated),
    ]
    return Plan(
        taken_at=snapshot.taken_at,
        cost=cost_of(opening, snapshot, policy, launch, cleaning.remove, placements),
        bind=tuple(sorted(bind, key=lambda bind: (bind.node, bind.pod))),
        nominate=tuple(sorted(nominate, key=lambda nomination: (nomination.node, nomination.pod))),
        launch=launch,
        migrate=cleaning.migrate,
        remove=cleaning.remove,
        unplaced=tuple(sorted(unplaced, key=lambda unplaced: unplaced.pod)),
        kept=cleaning.kept,
        memory=cleaning.memory,
    )


def _binds(
    opening: Opening,
    snapshot: ClusterSnapshot,
    policy: Policy,
    placements: dict[int, list[Pod]],
    now_placed: set[str],
    bought: set[int],
) -> tuple[list[Bind], list[Nomination]]:
    bind: list[Bind] = []
    nominate: list[Nomination] = []
    nodes: list[Node] = opening.sim.table.nodes
    for row, pods in placements.items():
        if row in bought:
            continue
        name = nodes[row].name
        for pod in pods:
            if name in opening.coming:
                nominate.append(Nomination(pod.key, name, "the machine is on its way"))
            elif pod.key not in now_placed:
                nominate.append(Nomination(pod.key, name, "once the machines bought by this plan have taken theirs"))
            elif snapshot.held_back.get(pod.key, 0.0) > snapshot.taken_at:
                nominate.append(Nomination(pod.key, name, "its last bind failed; it is tried again in a moment"))
            elif pod.scheduler == policy.scheduler_name:
                bind.append(Bind(pod.key, name))
            else:
                nominate.append(Nomination(pod.key, name, f"bound by {pod.scheduler}"))
    return bind, nominate


def _launch(item: Bought, pods: Sequence[Pod]) -> Launch:
    offer = item.offer
    why = "" if pods else f"brings group {offer.group.name} to its minimum of {offer.group.min_nodes}"
    return Launch(
        claim=item.claim,
        group=offer.group.name,
        flavour=offer.flavour.name,
        zone=offer.zone,
        nanos_per_hour=offer.price,
        pods=tuple(sorted(pod.key for pod in pods)),
        why=why,
    )
