"""Pods without requests: machines launched for them by the default stay, and none is launched twice."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.policy import CleaningRules, Consolidation, NodeGroup, Policy
from htas.model.resources import DefaultRequests, Resources
from htas.sandbox.workload import Arrival
from tests.builders import make_flavour, make_policy
from tests.stories.play import GIB, Story, job, service

SMALL, LARGE = make_flavour("small", "2", "4Gi", "0.10"), make_flavour("large", "8", "16Gi", "0.40")
NONE = Resources(0, 0, 0, 1)
MOVES = {"htas.io/migrate": "true"}


def policy(**how: Any) -> Policy:
    """Everything that could drain a node is eager."""
    rules = CleaningRules(
        underutilized_for_s=60,
        queue_empty_for_s=60,
        utilization_threshold=0.9,
        consolidation=Consolidation(enabled=True, after_s=300.0, cool_down_s=300.0),
    )
    return make_policy([NodeGroup("any", cleaning=rules)], (SMALL, LARGE), **how)


def services(replicas: int) -> tuple[Arrival, ...]:
    return (service("web", replicas, requests=NONE, disruption=MOVES),)


def batch(count: int) -> tuple[Arrival, ...]:
    return tuple(job(f"job-{i:02d}", runs_s=3000.0, cpu_m=0, gib=0) for i in range(count))


@pytest.mark.parametrize(
    ("arrivals", "cores"),
    [
        pytest.param(services(60), 6, id="services"),
        pytest.param(batch(60), 6, id="batch"),
        pytest.param((*services(30), *batch(30)), 6, id="both"),
    ],
)
def test_what_was_launched_by_default_requests_is_not_drained_again(arrivals: tuple[Arrival, ...], cores: int) -> None:
    """60 pods take 6 cores and 12 GiB by default; by what they state one small machine would do."""
    story = Story(policy(), *arrivals).play(2400)
    flavours = [node.flavour for node in story.world.cluster.observe().nodes]
    assert 2 * flavours.count("small") + 8 * flavours.count("large") >= cores
    pods = [pod for pod in story.world.cluster.observe().pods if pod.node is not None]
    assert len(pods) == 60
    assert story.verbs["drain", "done"] == story.verbs["delete", "done"] == 0
    assert story.world.ledger.evictions == 0
    assert story.verbs["launch", "done"] == len(flavours)
    story.assert_whole()


def test_with_zero_they_are_packed_by_what_they_state() -> None:
    story = Story(policy(default_requests=DefaultRequests(0, 0)), *services(60)).play(1200)
    assert [node.flavour for node in story.world.cluster.observe().nodes] == ["small"]


def test_later_pods_fill_what_is_there_by_what_they_state() -> None:
    """kube-scheduler would let them in at once: nothing is launched for them."""
    late = service("late", 10, at_s=1200, requests=NONE, disruption=MOVES)
    story = Story(policy(), service("full", 4, requests=Resources(400, GIB // 2, 0, 1)), *services(1), late).play(2400)
    pods = story.world.cluster.observe().pods
    assert all(pod.node is not None for pod in pods)
    assert story.verbs["launch", "done"] == 1
