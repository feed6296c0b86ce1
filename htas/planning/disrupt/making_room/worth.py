"""Ways to make room: who moves where, what that costs, and what a machine that is not bought for it saves.

Price an hour × seconds, exact:

    moving = Σ price × (billed with what comes − billed without), over the rows that pods go to
           + Σ price × share × (seconds of the move + work repeated), over the pods that move
    saved  = price × billed(start + longest run), of the machine that is not bought

A service has no end: it is taken to hold its machine for an hour, bought or not. A job of 2 h that is evicted after 10
minutes to a node of 0.10 an hour, half of which it takes, repeats 600 s of that half: 0.0083 beside what its node is
rented longer for it. Source: issue "Every decision by what it adds to the bill", item 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from htas.model.moves import MigrationMethod, Move
from htas.model.pods import Pod, WorkKind
from htas.model.policy import CleaningRules, grace_of
from htas.model.proposals import Seat
from htas.model.resources import dominant_share
from htas.planning.cluster.classes import Ints, PodClass
from htas.planning.cluster.machines import nanos_paid
from htas.planning.cluster.simulation import KeptRoom, Simulation
from htas.planning.place.context import PlanContext
from htas.planning.provision.offers import Offer
from htas.planning.rental.bills import Floats, Rentals
from htas.planning.rental.new_machines import HOUR_S

_NO_GROUP = CleaningRules()


@dataclass(frozen=True, slots=True)
class Way:
    """All that it takes to seat some waiting pods."""

    seatings: tuple[KeptRoom, ...] = ()
    moves: tuple[tuple[Move, KeptRoom], ...] = ()
    """Of running pods, each with the room that it has at its target: as what it is there, with what is left to run."""

    def __add__(self, other: Way) -> Way:
        return Way(self.seatings + other.seatings, self.moves + other.moves)

    def arrivals(self) -> tuple[KeptRoom, ...]:
        """What comes to which row."""
        return (*self.seatings, *(room for _, room in self.moves))

    def nodes(self, sim: Simulation) -> set[str]:
        """Every node that it fills or empties."""
        filled = {sim.table.nodes[room.row].name for room in self.arrivals()}
        return filled | {move.source for move, _ in self.moves}

    def seats(self, sim: Simulation) -> tuple[Seat, ...]:
        names = sim.table.nodes
        return tuple(Seat(each.pod.key, each.pod.uid, names[each.row].name) for each in self.seatings)


@dataclass(frozen=True, slots=True)
class Avoidable:
    """A machine that is about to be bought, and the waiting pods that it is bought for."""

    offer: Offer
    pods: Sequence[tuple[Pod, PodClass]]


class Charges:
    """Prices ways in a simulation whose rows have the work that runs, and what this plan has placed."""

    def __init__(self, context: PlanContext, rentals: Rentals | None = None) -> None:
        self._sim = context.simulated.sim
        self._policy = context.policy
        self._snapshot = context.snapshot
        self._now = context.now
        self._billing = context.policy.catalogue.billing
        self._rentals = rentals or Rentals.of(
            self._sim.table.nodes, context.snapshot, context.policy, context.simulated.running
        )
        self._claims = {claim.id: claim for claim in context.snapshot.claims}

    def saved(self, machine: Avoidable) -> int:
        """The expected bill of a machine that is not bought."""
        return machine.offer.price * self._billing.seconds(self._now, self.held_s(machine))

    def held_s(self, machine: Avoidable) -> float:
        """From its order until the last of its pods has ended."""
        return self.start_s(machine.offer) + max(hold_s(cls) for _, cls in machine.pods)

    def start_s(self, offer: Offer) -> float:
        """How long its pods would wait for a machine."""
        return self._snapshot.machine_times.start_s(offer.group.startup_s)

    def of(self, way: Way) -> int:
        """What a way adds to the bill."""
        return self._longer(way.arrivals()) + sum(self._disturbed(move, room) for move, room in way.moves)

    def ready_in_s(self, way: Way) -> float:
        """Until the last of the seats is free: moves go several at once, evicted pods are given their grace."""
        return max((self._gone_in_s(move, room.pod) for move, room in way.moves), default=0.0) * self._turns(way)

    def added(self, cls: PodClass, rows: Ints) -> Floats:
        """What a pod of a class adds to the rental of each row, to choose by."""
        return self._rentals.added_by(hold_s(cls), rows, self._sim.table.run_until, self._now)

    def _longer(self, arrivals: Iterable[KeptRoom]) -> int:
        before, rows = self._sim.table.run_until, set[int]()
        after = before.copy()
        for room in arrivals:
            after[room.row] = max(float(after[room.row]), self._now + hold_s(room.cls))
            rows.add(room.row)
        return self._rentals.added(sorted(rows), before, after, self._now)

    def _disturbed(self, move: Move, room: KeptRoom) -> int:
        """What a pod's room costs for as long as it makes no progress there."""
        pod, repeated_s = room.pod, 0.0
        if pod.kind is WorkKind.BATCH and not move.method.keeps_progress and pod.started_at is not None:
            repeated_s = max(0.0, self._now - pod.started_at)
        return -int(-self._rate(room) * Fraction(self._gone_in_s(move, pod) + repeated_s) // 1)

    def _rate(self, room: KeptRoom) -> Fraction:
        """Its share of the node's price; where that has none, the least that any flavour asks for it."""
        node, asked = self._sim.table.nodes[room.row], room.pod.requests
        price = nanos_paid(node, self._claims.get(node.claim or ""), self._policy)
        if price:
            return price * dominant_share(asked, node.allocatable)
        flavours = self._policy.catalogue.flavours
        holding = [each for each in flavours if asked.fits_in(each.allocatable)]
        rates = (each.nanos_per_hour * dominant_share(asked, each.allocatable) for each in holding)
        dearest = max((each.nanos_per_hour for each in flavours), default=0)
        return min(rates, default=Fraction(dearest))

    def _gone_in_s(self, move: Move, pod: Pod) -> float:
        """From the decision until a pod has left its node, as measured of the method, else as configured."""
        group = self._policy.group(self._sim.table.nodes[self._sim.table.row_of[move.source]].group)
        if move.method is MigrationMethod.EVICT:
            return grace_of(pod, group)
        times = self._snapshot.move_times.get(move.method.value)
        if times is not None and times.are_known:
            return times.expected_s(pod.requests.memory_bytes)
        return (group.cleaning if group is not None else _NO_GROUP).migration_seconds

    def _turns(self, way: Way) -> int:
        twins = sum(move.method.makes_twin for move, _ in way.moves)
        return max(1, -(-twins // self._policy.migration.at_once))


def hold_s(cls: PodClass) -> float:
    """How long a pod of a class holds a machine: its run; an hour where it has no end."""
    return cls.run_length_s if cls.kind is WorkKind.BATCH else float(HOUR_S)
