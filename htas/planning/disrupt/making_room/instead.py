"""Moving instead of launching: which of the machines that are about to be bought are not, and what is done instead.

Document 000, Figure 1: two nodes of 4 GB with 2 GB running on each, and a pod of 3 GB waits. A machine for it costs its
price for as long as it is held; one move costs ten seconds of half a node. Where a small machine is cheaper than that,
or comes sooner, it is bought.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from htas.model.holds import Hold
from htas.model.money import price_text
from htas.model.pods import Pod
from htas.model.proposals import Proposal
from htas.model.reasons import ProposalReason
from htas.model.snapshot import RoomMade
from htas.planning.cluster.simulation import pods_by_row
from htas.planning.disrupt.making_room.search import RoomSearch
from htas.planning.disrupt.making_room.thrift import may_move, with_moves
from htas.planning.disrupt.making_room.worth import Avoidable, Charges, Way
from htas.planning.place.context import PlanContext
from htas.planning.provision.purchase import BoughtMachine
from htas.planning.rental.bills import Rentals

MOST_MACHINES, MOST_PODS = 3, 4
"""So many machines are looked at in a plan, the dearest to hold first; of each one so many pods at most are seated."""


@dataclass(slots=True)
class MadeRoom:
    """What is done instead of launching."""

    way: Way = field(default_factory=Way)
    avoided: list[str] = field(default_factory=list)
    """Flavours of the machines that are not bought."""
    nanos_per_hour: int = 0
    """What they would have cost together."""
    remembered: dict[str, RoomMade] = field(default_factory=dict)

    @property
    def seated(self) -> list[Pod]:
        return [seating.pod for seating in self.way.seatings]

    @property
    def leaving(self) -> list[Pod]:
        return [room.pod for _, room in self.way.moves]


def instead_of_buying(
    context: PlanContext, bought: Mapping[int, BoughtMachine], rentals: Rentals | None = None
) -> MadeRoom | None:
    """What to move so that some of the machines need not be bought; None: nothing that would be cheaper was found.

    `rentals` are those of the nodes that are there, where they have been worked out already.
    The simulation holds the purchase with all that it is for, and is left as it was.
    """
    machines = _avoidable(context, bought)
    if not machines or not _may_begin(context):
        return None
    sim, charges = context.simulated.sim, Charges(context, rentals)
    looking, found = RoomSearch(context, charges), MadeRoom()
    memory = dict(context.snapshot.memory.room_made)
    with sim.fork():
        sim.close(*bought)
        for machine in sorted(machines, key=lambda each: (-charges.saved(each), each.offer.flavour.name))[
            :MOST_MACHINES
        ]:
            with sim.fork() as branch:
                way = looking.way(machine.pods)
                made = _paid_for(context, charges, machine, way, memory) if way is not None else None
                if way is None or made is None or looking.ledger.try_spend([room.pod for _, room in way.moves]):
                    looking.forget()
                    continue
                branch.commit()
            memory |= made
            found.remembered |= made
            found.way += way
            found.avoided.append(machine.offer.flavour.name)
            found.nanos_per_hour += machine.offer.price
    return found if found.avoided else None


def _may_begin(context: PlanContext) -> bool:
    """One rearrangement at a time, and none that could not be journalled."""
    snapshot = context.snapshot
    return snapshot.rearrangement is None and not snapshot.search.is_under_way and not snapshot.store_problem


def _avoidable(context: PlanContext, bought: Mapping[int, BoughtMachine]) -> list[Avoidable]:
    """Machines for a few waiting pods of ours.

    Who has waited for `maxWaitForCapacity` is bought for: a move that could not be made is no reason to wait again.
    """
    policy, book, sim = context.policy, context.simulated.book, context.simulated.sim
    counts = Counter[int]()
    for _, row, count in sim.assignments():
        counts[row] += count
    few = {row for row in bought if 0 < counts[row] <= MOST_PODS}
    if not few:  # as in most purchases: nobody is told apart
        return []
    overdue = policy.overdue(context.now) if context.snapshot.expects_more else float("-inf")
    found = []
    for row, pods in pods_by_row(sim.assignments()).items():
        if row in few and all(pod.scheduler == policy.scheduler_name and pod.created_at > overdue for pod in pods):
            found.append(Avoidable(bought[row].offer, [(pod, book.class_of(pod)) for pod in pods]))
    return found


def _paid_for(
    context: PlanContext, charges: Charges, machine: Avoidable, way: Way, memory: Mapping[str, RoomMade]
) -> dict[str, RoomMade] | None:
    """What is remembered of the machines that pods move off; None: it costs more than it saves, or takes longer."""
    cost, saving = charges.of(way), charges.saved(machine)
    if not way.moves or cost >= saving or charges.ready_in_s(way) > charges.start_s(machine.offer):
        return None
    sources = {move.source for move, _ in way.moves}
    if not all(may_move(memory.get(name), cost, saving, context.now) for name in sources):
        return None
    held_s = charges.held_s(machine)
    return {
        name: with_moves(memory.get(name), cost, machine.offer.price, held_s, context.now) for name in sorted(sources)
    }


def in_words(made: MadeRoom, context: PlanContext) -> str:
    """What is moved instead of what, and what that saves."""
    moved = [f"{move.pod} from {move.source} to {move.target}" for move, _ in made.way.moves]
    price, currency = price_text(made.nanos_per_hour), context.policy.catalogue.currency
    instead = f"to make room instead of launching {_listed(made.avoided)}"
    return f"moves {_listed(moved)} {instead}: saves {price} {currency} an hour"


def holds(made: MadeRoom, context: PlanContext) -> list[Hold]:
    names, why = context.simulated.sim.table.nodes, in_words(made, context)
    return [Hold(each.pod.key, names[each.row].name, each.reason, why) for each in made.way.seatings]


def proposal(made: MadeRoom, context: PlanContext) -> Proposal:
    """What is to be begun."""
    reason = ProposalReason.INSTEAD_OF_LAUNCH
    moves, seats = tuple(move for move, _ in made.way.moves), made.way.seats(context.simulated.sim)
    return Proposal(reason, moves, seats=seats, value=made.nanos_per_hour, message=in_words(made, context))


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else items[0]
