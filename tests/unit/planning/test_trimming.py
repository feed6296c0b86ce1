"""Trimming a purchase: no machine is superfluous, none is larger than what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from htas.model.flavours import Flavour
from htas.model.policy import Limits
from htas.planning.place.placing import Placer
from htas.planning.provision.limits import Allowance
from htas.planning.provision.offers import offers_of
from htas.planning.provision.trimming import FilledMachine, drop_superfluous, right_size
from htas.planning.rental.new_machines import ExpectedRental
from tests.builders import make_flavour, make_pod, make_policy, make_snapshot, opened


@dataclass
class Purchase:
    """Machines of the dearest flavour, in each of its zones in turn, with so many pods of a core and a GiB on each."""

    flavours: Sequence[Flavour]
    contents: Sequence[int]
    limits: Limits = Limits()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        policy, pod = make_policy(flavours=self.flavours, limits=self.limits), make_pod("p", "1", "1Gi")
        simulated, snapshot = opened([], [pod], policy), make_snapshot([], [pod])
        self.sim, cls = simulated.sim, simulated.book.class_of(pod)
        self.offers = offers_of(self.sim, policy, snapshot, [cls])
        self.allowance, self.placer = Allowance(policy, snapshot), Placer(policy, simulated.pools)
        self.rental, self.machines = ExpectedRental(policy, [cls], snapshot.taken_at), list[FilledMachine]()
        dearest = [offer for offer in self.offers if offer.price == self.offers[-1].price]
        for number, count in enumerate(self.contents):
            offer = dearest[number % len(dearest)]
            (row,) = self.sim.add_nodes([offer.node(policy, f"m{number}")])
            self.allowance.take(offer, 1)
            self.sim.place(cls, row, count)
            self.machines.append(FilledMachine(offer, row))
            self.machines[-1].add(cls, count)

    def without_superfluous(self) -> Purchase:
        drop_superfluous(self.sim, self.machines, [], self.allowance, self.placer, self.rental)
        return self


def test_a_machine_that_turns_out_superfluous_is_no_longer_counted_as_bought() -> None:
    """Two half-full ones become one, and what a limit allows is more by one."""
    bought = Purchase([make_flavour("two", "2", "4Gi", "0.1")], (1, 1), Limits(max_nodes=2)).without_superfluous()
    assert sorted(len(machine.contents) for machine in bought.machines) == [0, 1]
    (offer,) = bought.offers
    assert (bought.allowance.nodes_of("any"), bought.allowance.bound(offer).count) == (1, 1)


@pytest.mark.parametrize(
    ("contents", "left"),
    [
        pytest.param((2, 2), [0, 4], id="two fit just beside two"),
        pytest.param((2, 3), [2, 3], id="one of two does not"),
        pytest.param((2, 3, 3), [0, 4, 4], id="one beside each of two others"),
    ],
)
def test_a_machine_goes_where_the_others_have_just_room_for_what_it_holds(
    contents: tuple[int, ...], left: list[int]
) -> None:
    bought = Purchase([make_flavour("four", "4", "64Gi", "0.40")], contents).without_superfluous()
    assert sorted(sum(count for _, count in machine.contents) for machine in bought.machines) == left


def test_machines_in_two_zones_that_hold_the_same_each_become_a_smaller_one_of_their_own() -> None:
    flavours = [
        make_flavour("small", "2", "4Gi", "0.10", zones=("a", "b")),
        make_flavour("large", "4", "64Gi", "0.40", zones=("a", "b")),
    ]
    bought = Purchase(flavours, (1, 1))
    right_size(bought.sim, bought.machines, bought.offers, bought.allowance, lambda offer: 1.0)
    assert [(machine.offer.flavour.name, machine.offer.zone) for machine in bought.machines] == [
        ("small", "a"),
        ("small", "b"),
    ]
