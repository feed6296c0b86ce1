"""The instances of document 000's grid: our kube-scheduler against the recorded real one, and what answers count as."""

from __future__ import annotations

import pytest

from tools.bench.priority_categories import (
    BETTER,
    BETTER_OPTIMAL,
    DEFAULT_OPTIMAL,
    FAILURE,
    NO_CALL,
    NO_GAIN,
    category,
)
from tools.bench.priority_instances import Cell, generate, instances
from tools.bench.priority_placements import AS_IS, IN_ORDER, alike, is_at_rest, placed_as, recorded


def test_our_kube_scheduler_puts_every_pod_where_the_real_one_did() -> None:
    """Recorded from kube-scheduler 1.36.3 that takes equal nodes by name: up to 16 nodes, as the larger take seconds."""
    real = {key: placement for key, placement in recorded().items() if key[2] == IN_ORDER and key[0].nodes <= 16}
    assert len(real) >= 72, "an instance of each kind, else the record is not there"
    for (cell, seed, _), placement in real.items():
        instance = generate(cell, seed)
        assert alike(instance, placement, instance.node_of), (cell, seed)


def test_recorded_placements_are_what_kube_scheduler_leaves_when_it_has_come_to_rest() -> None:
    """No node over-full; no pending pod fits, and none could preempt: else it was read off too early."""
    small = {key: placement for key, placement in recorded().items() if key[2] == AS_IS and key[0].nodes <= 8}
    assert small
    for (cell, seed, _), placement in small.items():
        instance = generate(cell, seed)
        assert placed_as(instance, placement).node_of == placement
        assert is_at_rest(instance, placement), (cell, seed)


def test_a_pod_that_could_preempt_keeps_kube_scheduler_busy() -> None:
    """Everything of the lowest priority runs, what is more important waits."""
    instance = next(instances(Cell(4, 4, 4, 0.90), 1))
    lowest = min(instance.priority)
    kept = tuple(
        at if priority == lowest else -1 for at, priority in zip(instance.node_of, instance.priority, strict=True)
    )
    assert not is_at_rest(instance, kept)


def test_an_overfull_placement_is_refused() -> None:
    instance = next(instances(Cell(4, 4, 1, 1.0), 1))
    with pytest.raises(AssertionError, match="over-full"):
        placed_as(instance, (0,) * len(instance.node_of))


def test_an_instance_is_the_one_that_the_authors_published_for_the_seed() -> None:
    """github.com/henrikdchristensen/scheduler-plugins, analysis/kwok_workload_once: requests and nodes of one instance."""
    instance = generate(Cell(4, 4, 1, 0.90), 484806185843093489)
    assert (instance.node_cpu_m, instance.node_memory_bytes) == (2033, 2220253209)
    requests = dict(zip(instance.replica_set, zip(instance.cpu_m, instance.memory_bytes, strict=True), strict=True))
    assert list(requests.values()) == [
        (427, 343966759),
        (391, 390597870),
        (828, 613089629),
        (151, 549358279),
        (553, 311363716),
        (671, 700290895),
    ]
    assert sum(node < 0 for node in instance.node_of) == 2, "and kube-scheduler left two pods of the last one pending"


@pytest.mark.parametrize(
    ("after", "is_proven", "is_called", "wanted"),
    [
        pytest.param([3, 2], True, True, BETTER_OPTIMAL, id="more placed, and no more can be"),
        pytest.param([3, 1], False, True, BETTER, id="one more important placed instead of one less so"),
        pytest.param([2, 2], True, True, DEFAULT_OPTIMAL, id="the default placement cannot be bettered"),
        pytest.param([2, 2], False, True, NO_GAIN, id="nothing better was found in time"),
        pytest.param([2, 1], False, True, FAILURE, id="worse than the default placement"),
        pytest.param([1, 9], True, True, FAILURE, id="less important work never makes up for more important"),
        pytest.param(None, False, True, FAILURE, id="no answer in time"),
        pytest.param([2, 2], True, False, NO_CALL, id="the default placed everything"),
    ],
)
def test_what_an_answer_counts_as(after: list[int] | None, is_proven: bool, is_called: bool, wanted: str) -> None:
    line = {"before": [2, 2], "after": after, "is_placing_proven": is_proven, "is_called": is_called}
    assert category(line) == wanted
