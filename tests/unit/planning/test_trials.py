"""Trial fillings are remembered: the answer is the one that a first trial would give."""

from __future__ import annotations

from random import Random

import pytest

from htas.planning.cluster.simulated import open_simulation
from htas.planning.place.demand import Demand
from htas.planning.provision.cost_efficiency import SAMPLE, Trials
from htas.planning.provision.offers import Offer, offers_of
from tests.builders import make_pod, make_policy, make_snapshot


def drawn(random: Random, kinds: int) -> tuple[list[Demand], list[Offer]]:
    pods = [
        make_pod(f"p{i}", f"{random.randint(1, 40) * 50}m", f"{random.randint(1, 60) * 64}Mi") for i in range(kinds)
    ]
    policy, snapshot = make_policy(), make_snapshot([], pods)
    simulated = open_simulation(snapshot, policy, 0.0)
    demands = [Demand(simulated.book.class_of(pod), random.randint(1, 40)) for pod in pods]
    return demands, offers_of(simulated.sim, policy, snapshot, [demand.cls for demand in demands])


@pytest.mark.parametrize("kinds", [3, 40, SAMPLE + 44], ids=["few", "many", "so many that every second is tried"])
@pytest.mark.parametrize("rises", [True, False], ids=["they rise, too", "they only fall"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_remembered_is_what_a_first_trial_finds(seed: int, kinds: int, *, rises: bool) -> None:
    """Counts fall as machines are bought, and rise where a purchase is taken back or pods are levelled."""
    random = Random(seed)
    demands, offers = drawn(random, kinds)
    trials = Trials(demands)
    for _ in range(60):
        for demand in random.sample(demands, max(1, kinds // 20)):
            by = random.choice((-demand.count, -3, -2, -1, -1, 2, 4) if rises else (-demand.count, -1))
            demand.count = max(0, demand.count + by)
        left = [demand for demand in demands if demand.count]
        trials.update(left)
        for offer in random.sample(offers, 3):
            assert trials.use(offer) == Trials(left).use(offer)
