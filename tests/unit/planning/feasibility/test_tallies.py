"""Tallies: what is added is taken back, and who is counted where."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.constraints import HostPort
from htas.model.pods import Pod
from htas.planning.cluster.counts import Tallies
from tests.builders import labels_are, make_node, opened
from tests.unit.planning.feasibility.situations import BAR, FOO, HOST, ZONE, pod, spread, term

KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"spread": (spread(),)},
    {"affinity": (term(), term(BAR, HOST))},
    {"anti_affinity": (term(), term(BAR, HOST))},
    {"host_ports": (HostPort(80), HostPort(81, "UDP"))},
    {"claims": ("one", "two")},
    {"claims": ("two",), "anti_affinity": (term(FOO, HOST),), "spread": (spread(HOST),)},
)
LABELS = ((), ("foo",), ("bar",), ("foo", "bar"))
PODS = tuple(pod(*labels, name=f"{i}-{j}", **kind) for i, kind in enumerate(KINDS) for j, labels in enumerate(LABELS))
ROWS = 3


def state(tallies: Tallies) -> tuple[object, ...]:
    """Everything counted; zeros and nothing are the same."""
    return (
        [counts.tolist() for counts in (*tallies.watched, *tallies.held)],
        {port: counts.tolist() for port, counts in tallies.ports.items() if counts.any()},
        dict(tallies.claims_on),
        dict(tallies.claim_users),
        tallies.claims_per_row.tolist(),
    )


placements = st.lists(st.tuples(st.sampled_from(PODS), st.integers(0, ROWS - 1), st.integers(1, 3)), max_size=8)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(placements, placements, st.randoms(use_true_random=False))
def test_what_is_added_and_taken_away_leaves_no_trace(
    before: list[tuple[Pod, int, int]], passing: list[tuple[Pod, int, int]], shuffle: Any
) -> None:
    opening = opened([make_node(f"n{i}") for i in range(ROWS)], PODS)
    tallies = opening.sim.world.tallies
    for who, row, count in before:
        tallies.add(opening.book.class_of(who), row, count)
    kept = state(tallies)
    for who, row, count in passing:
        tallies.add(opening.book.class_of(who), row, count)
    shuffle.shuffle(passing)
    for who, row, count in passing:
        tallies.add(opening.book.class_of(who), row, -count)
    assert state(tallies) == kept


@settings(max_examples=60, deadline=None, derandomize=True)
@given(placements)
def test_counts_are_those_of_counting_pod_by_pod(placed: list[tuple[Pod, int, int]]) -> None:
    opening = opened([make_node(f"n{i}") for i in range(ROWS)], PODS)
    tallies = opening.sim.world.tallies
    for who, row, count in placed:
        tallies.add(opening.book.class_of(who), row, count)
    for watch, number in tallies.watches.items():
        want = [sum(count for who, at, count in placed if at == row and watch.takes(who)) for row in range(ROWS)]
        assert tallies.watched[number][:ROWS].tolist() == want
    for repulsion, number in tallies.repulsions.items():
        carriers = [
            (at, count)
            for who, at, count in placed
            if any(
                tallies.scope(who.namespace, t) == repulsion.scope and t.topology_key == repulsion.topology_key
                for t in who.constraints.anti_affinity
            )
        ]
        assert tallies.held[number][:ROWS].tolist() == [
            sum(c for at, c in carriers if at == row) for row in range(ROWS)
        ]
    for row in range(ROWS):
        users = Counter({f"default/{name}": 0 for name in ("one", "two")})
        for who, at, count in placed:
            for name in who.constraints.claims:
                users[f"default/{name}"] += count if at == row else 0
        present = {key: n for key, n in users.items() if n}
        assert dict(tallies.claims_on.get(row, {})) == present
        assert tallies.claims_per_row[row] == len(present)


def test_rows_that_come_later_start_empty() -> None:
    opening = opened([make_node("a")], PODS)
    tallies = opening.sim.world.tallies
    loner = opening.book.class_of(PODS[-1])
    tallies.add(loner, 0, 2)
    tallies.grow(100)
    assert all(len(counts) == 100 and not np.any(counts[1:]) for counts in (*tallies.watched, *tallies.held))
    tallies.add(loner, 99, 1)
    assert tallies.claims_per_row[[0, 99]].tolist() == [1, 1]


CROWD = tuple(
    pod(name=f"{key}-{i}", anti_affinity=(term(labels_are(app=f"a{i}"), key),))
    for key in (HOST, ZONE)
    for i in range(8)
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(CROWD), st.integers(0, ROWS - 1), st.integers(1, 3)), min_size=1, max_size=8))
def test_many_repulsions_summed_up_are_what_they_are_one_by_one(placed: list[tuple[Pod, int, int]]) -> None:
    """Asked before, while and after pods are there, and once there are more rows."""
    opening = opened([make_node(f"n{i}") for i in range(ROWS)], CROWD)
    tallies = opening.sim.world.tallies
    every = tuple(range(len(tallies.held)))

    def summed_up() -> dict[str, list[int]]:
        return {key: counts.tolist() for key, counts in tallies.carriers(every)}

    def one_by_one() -> dict[str, list[int]]:
        by_key = {key: [number for number in every if tallies.topology_key(number) == key] for key in (HOST, ZONE)}
        return {key: sum(tallies.held[number] for number in numbers).tolist() for key, numbers in by_key.items()}

    nothing = summed_up()
    assert nothing == one_by_one()
    for who, row, count in placed:
        tallies.add(opening.book.class_of(who), row, count)
        assert summed_up() == one_by_one() != nothing
    for who, row, count in placed:
        tallies.add(opening.book.class_of(who), row, -count)
    assert summed_up() == nothing
    tallies.grow(100)
    tallies.add(opening.book.class_of(placed[0][0]), 99, 1)
    assert summed_up() == one_by_one()
