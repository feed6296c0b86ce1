"""The edge experiment played: KubeDSM keeps more near than its baselines, and the same seed gives the same bytes."""

from __future__ import annotations

import msgspec
import pytest

from tools.lab.edge.contenders import BASELINES, KUBEDSM, edge_contenders
from tools.lab.edge.results import EdgeRun
from tools.lab.edge.scenarios import SCENARIOS, SERVICES, workload
from tools.lab.trials.edge import run

CONTENDERS = edge_contenders()


def played(name: str, scenario: str = "1.5_0.4", seed: int = 1) -> EdgeRun:
    made, timing = run(CONTENDERS[name], scenario, workload(SCENARIOS[scenario], seed), seed)
    assert timing.cycles > 0
    return made


@pytest.mark.parametrize("name", CONTENDERS)
def test_no_contender_keeps_more_near_than_is_possible(name: str) -> None:
    made = played(name, "1.1_0.4")
    assert 0 < made.pod_ratio <= made.pod_bound <= 1
    assert 0 < made.mean_ratio <= made.mean_bound <= 1
    assert [service.name for service in made.services] == list(SERVICES)
    assert made.deviation < 0.5


@pytest.mark.parametrize("seed", [1, 2])
def test_kubedsm_comes_near_the_bound_and_ahead_of_every_baseline(seed: int) -> None:
    ours = played(KUBEDSM, seed=seed)
    assert ours.mean_ratio > 0.97 * ours.mean_bound
    assert ours.moves > 0
    for name in BASELINES:
        theirs = played(name, seed=seed)
        assert theirs.moves == 0
        assert theirs.mean_ratio < ours.mean_ratio, name


def test_without_moves_to_the_edge_less_is_near() -> None:
    assert played("kubedsm/no-cloud-offload").mean_ratio < played(KUBEDSM).mean_ratio


def test_a_service_with_a_target_above_the_others_is_kept_near() -> None:
    by_default, preferred = played(KUBEDSM), played("kubedsm/c-over-a")
    assert [service.target for service in preferred.services] == [0.5, 0.1, 1.0, 0.1]
    assert preferred.ratio_of("c") > max(by_default.ratio_of("c"), preferred.ratio_of("a"))


@pytest.mark.parametrize("name", [KUBEDSM, "random"])
def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    first, again = (msgspec.json.encode(played(name, seed=3)) for _ in range(2))
    assert first == again
