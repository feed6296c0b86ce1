"""A plan being drafted: the present as a simulation, and what has been decided so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from htas.model.holds import HoldReason, hold
from htas.model.plan import Bind, Cost, Plan, UnplacedPod
from htas.model.pods import Pod, priority_sort
from htas.model.policy import Policy
from htas.model.proposals import Launch, Proposal
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.model.stages import Stage
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.simulated import open_simulation
from htas.planning.place.placing import Order
from htas.planning.planner import Planner
from htas.planning.provision.limits import Allowance
from htas.planning.provision.offers import Offer, claim_id, offers_of


class Draft:
    """Collects binds, purchases and removals; every one of them changes the simulation, so that the next sees it."""

    def __init__(self, snapshot: ClusterSnapshot, policy: Policy, now: float) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.now = now
        self.opening = open_simulation(snapshot, policy, now)
        self.sim = self.opening.sim
        self.book = self.opening.book
        self.proposals: list[Proposal] = []
        self._placed: list[tuple[Pod, int]] = []
        self._bought: dict[int, tuple[str, Offer, str]] = {}
        self._unplaced: list[Pod] = []
        self._offers: list[Offer] | None = None
        nodes = self.sim.table.nodes
        self._is_there = np.array([node.name not in self.opening.coming for node in nodes], dtype=np.bool_)

    @cached_property
    def allowance(self) -> Allowance:
        """What may still be bought; counted when it is first asked for, since most plans buy nothing."""
        return Allowance(self.policy, self.snapshot)

    @property
    def is_first(self) -> bool:
        """Whether this is the first plan of all: the cluster starts with the workers it brings."""
        return self.snapshot.generation == 1

    @property
    def waiting(self) -> list[Pod]:
        """The scheduling queue: higher priority first, then who came first."""
        return sorted(self.opening.waiting, key=priority_sort)

    @property
    def there(self) -> Bools:
        """Rows of nodes that run, over all rows."""
        return self._over_rows(self._is_there)

    @property
    def coming(self) -> Bools:
        """Rows of machines on their way, those bought by this draft too, over all rows."""
        return ~self.there

    def _over_rows(self, marks: Bools) -> Bools:
        whole = np.zeros(len(self.sim.table), dtype=np.bool_)
        whole[: len(marks)] = marks
        return whole

    def place(self, pods: Iterable[Pod], rows: Bools, order: Order) -> list[Pod]:
        """Place pods one by one on the best of the rows marked; returns those that found no room."""
        left: list[Pod] = []
        hopeless: set[int] = set()
        for pod in pods:
            cls = self.book.class_of(pod)
            row = None if id(cls) in hopeless else self.best_row(cls, rows, order)
            if row is None:
                left.append(pod)
                if not cls.is_dynamic:
                    hopeless.add(id(cls))
            else:
                self.put(pod, row)
        return left

    def best_row(self, cls: PodClass, rows: Bools, order: Order) -> int | None:
        """The row of those marked that an order likes best for one pod; None: it fits none."""
        here = (self.sim.feasible(cls) & rows).nonzero()[0]
        if not len(here):
            return None
        return int(here[np.lexsort(order.keys(self.sim, cls, here)[::-1])[0]])

    def put(self, pod: Pod, row: int) -> None:
        self.sim.place(self.book.class_of(pod), row)
        self.placed(pod, row)

    def placed(self, pod: Pod, row: int) -> None:
        """Note a pod that has been placed in the simulation."""
        self._placed.append((pod, row))

    @property
    def offers(self) -> list[Offer]:
        """What is for sale, cheapest first, judged for the pods that wait and those that run."""
        if self._offers is None:
            pods = [*self.opening.waiting, *(pod for pods in self.opening.running.values() for pod in pods)]
            classes = {id(cls): cls for cls in map(self.book.class_of, pods)}
            self._offers = offers_of(self.sim, self.policy, self.snapshot, classes.values())
        return self._offers

    def may_buy(self, offer: Offer, count: int = 1) -> bool:
        return self.allowance.bound(offer).count >= count

    def buy(self, offer: Offer, pods: Sequence[Pod] = (), why: str = "") -> int:
        """Buy a machine and put pods on it, which the caller knows to fit; returns its row."""
        claim = claim_id(self.policy, self.snapshot, offer.group.name, len(self._bought))
        row = self.sim.add_nodes([offer.node(self.policy, claim)]).start
        self.allowance.take(offer, 1)
        self._bought[row] = claim, offer, why
        for pod in pods:
            self.put(pod, row)
        return row

    def leave(self, pods: Iterable[Pod]) -> None:
        """These wait on."""
        self._unplaced += pods

    def written(self, memory: Memory) -> Plan:
        """The plan: pods on nodes that run are bound, others wait for their machine."""
        bind, nominate, on_bought = [], [], dict[int, list[str]]()
        for pod, row in self._placed:
            name = self.sim.table.nodes[row].name
            if row in self._bought:
                on_bought.setdefault(row, []).append(pod.key)
            elif name in self.opening.coming:
                nominate.append(hold(pod.key, name, HoldReason.MACHINE_STARTING))
            elif self.snapshot.held_back.get(pod.key, 0.0) <= self.now:
                bind.append(Bind(pod.key, name))
        launch = tuple(
            Launch(
                claim, offer.group.name, offer.flavour.name, offer.zone, offer.price, tuple(on_bought.get(row, ())), why
            )
            for row, (claim, offer, why) in self._bought.items()
        )
        unplaced = (UnplacedPod(pod.key, Unplaced.AUTOSCALING_NOT_DUE, "finds no room") for pod in self._unplaced)
        return Plan(
            taken_at=self.snapshot.taken_at,
            cost=Cost(self.policy.catalogue.currency),
            bind=tuple(bind),
            nominate=tuple(nominate),
            launch=launch,
            proposals=tuple(self.proposals),
            unplaced=tuple(unplaced),
            memory=memory,
        )


def placing_by(order: Order) -> Planner:
    """A planner that places what waits, one by one and at once, by an order; nothing is bought, moved or removed."""

    def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
        draft = Draft(snapshot, policy, now)
        draft.leave(draft.place(draft.waiting, draft.there, order))
        return draft.written(Memory())

    return plan


def fits_together(draft: Draft, offer: Offer, pods: Sequence[Pod]) -> list[Pod]:
    """The first pods, in their order, that one machine of an offer would hold together; others are passed over.

    Counts resources, and classes that keep to themselves; what else pods want of each other shows when they are placed.
    """
    free, full, taken = offer.free.copy(), set[int](), list[Pod]()
    for pod in pods:
        cls = draft.book.class_of(pod)
        if id(cls) in full:
            continue
        if not offer.would_take(cls) or not fits(free[:, None], cls)[0]:
            full.add(id(cls))  # room only gets less
            continue
        free -= cls.requests
        taken.append(pod)
        if cls.most_per_node is not None:
            full.add(id(cls))
    return taken
