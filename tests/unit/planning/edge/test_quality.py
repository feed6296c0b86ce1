"""Equations 2 to 4, 10 and 11 by hand."""

from __future__ import annotations

import pytest

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.search import EdgeSearch, edge_ratios, service_qualities, service_quality, share
from htas.planning.solvers.edge.state import Layout
from tests.unit.planning.edge.states import size, state
from tools.bench.edge_reference import total_quality

POLICY = EdgePolicy(alpha=2.0, beta=1.0, gamma=100.0)


@pytest.mark.parametrize(
    ("near", "pods", "target", "quality"),
    [
        (0, 4, 1.0, -2.0),  # all of it is missing
        (3, 4, 1.0, -0.5),  # one pod in four
        (4, 4, 1.0, 100.0),
        (2, 4, 0.5, 100.0),  # exactly the target
        (3, 4, 0.5, 100.25),  # and a quarter beyond it
        (0, 4, 0.0, 100.0),  # nothing asked for
        (3, 10, 0.3, 100.0),  # 0.3 - 0.3 in floating point
        (7, 10, 0.7, 100.0),
        (0, 0, 1.0, 0.0),  # no pods, no quality
    ],
)
def test_a_service_loses_alpha_below_its_target_and_earns_gamma_and_beta_above(near, pods, target, quality):
    assert service_quality(near, pods, target, POLICY) == pytest.approx(quality)


def test_the_total_is_the_sum_over_services():
    it = state([(4, 8)], {"a": (1, 1, 1.0), "b": (1, 1, 0.5), "idle": (1, 1, 1.0)}, {"a": [0, 0], "b": [0]}, {"b": 3})
    assert service_qualities(it, POLICY) == pytest.approx([100.0, -0.5, 0.0])
    assert total_quality(Layout(it), POLICY) == pytest.approx(99.5)
    assert edge_ratios(it) == pytest.approx([1.0, 0.25, 1.0])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (size(2, 4), 0.25),  # a quarter of both
        (size(4, 1), 0.1767767),  # half of the cpu, a sixteenth of the memory: √(1/2 · 1/16)
        (size(8, 16), 1.0),
    ],
)
def test_a_pods_size_is_the_geometric_mean_of_its_shares(asked, expected):
    assert share(asked, size(8, 16)) == pytest.approx(expected)


def test_a_pod_that_asks_for_no_memory_still_has_a_size():
    assert 0 < share(size(1, 0), size(8, 16)) < share(size(1, 1), size(8, 16))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_what_a_service_loses_is_the_least_mean_over_the_next_pods_to_leave(most: int) -> None:
    search = EdgeSearch(state([(8, 8)], {"a": (1, 1, 0.9)}, near={"a": [0, 0, 0, 0]}), EdgePolicy())
    means = [-search.qualities.gain(0, 4, -many) / many for many in range(1, most + 1)]
    assert search.loss(0, 4, most) == pytest.approx(min(means))
    assert not search.loss(0, 4, most).is_integer()
