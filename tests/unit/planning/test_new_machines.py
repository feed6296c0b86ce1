"""What machines are expected to cost that are bought for some waiting work: price × the time they are held."""

from __future__ import annotations

import pytest

from htas.model.billing import Billing, Price
from htas.model.flavours import Catalogue
from htas.model.pods import Pod
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.simulated import open_simulation
from htas.planning.rental.new_machines import MOST_LEVELS, ExpectedRental
from tests.builders import NECTAR, NOW, batch_group, make_job, make_pod, make_policy, make_snapshot

START_S, HOUR_S = 60.0, 3600


def judged(pods: list[Pod], billing: Billing) -> tuple[ExpectedRental, dict[str, PodClass]]:
    """The rental of work that waits, and its classes by the pods' names."""
    policy = make_policy([batch_group(startup_s=START_S)], catalogue=Catalogue(NECTAR, "USD", billing))
    simulated = open_simulation(make_snapshot([], pods), policy, NOW)
    classes = {pod.name: simulated.book.class_of(pod) for pod in pods}
    return ExpectedRental(policy, classes.values(), NOW), classes


def job(name: str, runs_s: float) -> Pod:
    return make_job(name, runs_s, cpu="1", memory="1Gi")


@pytest.mark.parametrize(
    ("pods", "billing", "name", "held_s"),
    [
        pytest.param([job("a", 240)], Billing(60), "a", 300, id="a job: its start and its run"),
        pytest.param([job("a", 241)], Billing(60), "a", 360, id="by the minute begun"),
        pytest.param([job("a", 240)], Billing(3600), "a", HOUR_S, id="by the hour begun"),
        pytest.param([job("a", 240), make_pod("web")], Billing(60), "web", HOUR_S, id="a service: an hour at least"),
        pytest.param([job("a", 2 * HOUR_S), make_pod("web")], Billing(60), "web", 2 * HOUR_S + 60,
                     id="or as long as the longest job that waits with it"),
        pytest.param([make_pod("web"), make_pod("api")], Billing(60), "web", 1, id="services alone: the price an hour"),
    ],
)  # fmt: skip
def test_machines_are_held_for_their_work(pods: list[Pod], billing: Billing, name: str, held_s: int) -> None:
    rental, classes = judged(pods, billing)
    assert rental.hold(classes[name]) == held_s
    assert rental.expected(Price(7), [(classes[name], 3)]) == 7 * held_s, "of one machine, however many pods it has"


def test_a_machine_is_held_for_the_longest_of_its_pods_and_one_without_any_costs_nothing() -> None:
    rental, classes = judged([job("short", 240), job("long", 540)], Billing(60))
    assert rental.expected(Price(7), [(classes["short"], 2), (classes["long"], 1)]) == 7 * 600
    assert rental.expected(Price(7), []) == 0


@pytest.mark.parametrize("count", [MOST_LEVELS, MOST_LEVELS + 1, 4 * MOST_LEVELS + 5])
def test_of_many_lengths_neighbours_are_taken_for_the_longest_of_them(count: int) -> None:
    rental, classes = judged([job(f"j{i}", 60.0 * (i + 1)) for i in range(count)], Billing(60))
    exact = {name: 60 * (int(name[1:]) + 2) for name in classes}
    held = {name: rental.hold(cls) for name, cls in classes.items()}
    assert len(set(held.values())) <= MOST_LEVELS
    assert all(exact[name] <= held[name] for name in classes)
    assert max(held.values()) == max(exact.values())
    assert (held == exact) == (count <= MOST_LEVELS)
    assert [rental.expected(Price(1), [(classes[name], 1)]) for name in classes] == list(exact.values()), (
        "bills are exact"
    )
