"""Laws of learned run lengths, on random histories. Judged by what was told, not by the estimator's own arithmetic."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.pods import Pod, RunLength, WorkKind
from htas.model.policy import MOST_RUNS, RunLengths
from htas.model.record import Run
from htas.model.resources import Resources
from htas.profiler.run_lengths import LearnedRunLengths

Law = settings(max_examples=200, deadline=None, derandomize=True)
TEMPLATES = ("Job/a-#", "Job/b-#", "CronJob/c")
IMAGES = ("x", "y", "")


@st.composite
def runs(draw: Any, most: int = 200) -> list[Run]:
    """Runs of a few templates and images; many end at the same instant, some did not end well."""
    instants, lengths = st.integers(0, 20), st.integers(0, 10_000)
    facts = st.tuples(
        st.sampled_from(TEMPLATES), st.sampled_from(IMAGES), instants, lengths, st.sampled_from([True, True, False])
    )
    return [run(i, *fact) for i, fact in enumerate(draw(st.lists(facts, min_size=1, max_size=most)))]


def run(number: int, template: str, image: str, ended_at: float, seconds: float, succeeded: bool | None = True) -> Run:
    return Run(
        namespace="ns",
        pod=f"p{number}",
        uid=f"u{number}",
        node="n",
        kind=WorkKind.BATCH,
        owner=template,
        image=image,
        cpu_m=100,
        memory_bytes=2**20,
        share_millionths=1,
        began_at=ended_at - seconds,
        came_at=ended_at - seconds,
        ended_at=ended_at,
        succeeded=succeeded,
    )


def pod(template: str, image: str) -> Pod:
    return Pod("ns", "p", Resources(100, 2**20, 0, 1), kind=WorkKind.BATCH, template=template, image=image)


PODS = [pod(template, image) for template in TEMPLATES for image in IMAGES]


@st.composite
def wishes(draw: Any) -> RunLengths:
    quantile, half_life = draw(st.sampled_from([0.1, 0.5, 0.9, 1.0])), draw(st.sampled_from([0.01, 5.0, 20.0, 1e9]))
    return RunLengths(quantile=quantile, half_life=half_life, min_runs=draw(st.integers(1, 5)))


def learned(told: list[Run], wanted: RunLengths) -> LearnedRunLengths:
    made = LearnedRunLengths(wanted)
    made.learn(told)
    return made


def estimates(told: list[Run], wanted: RunLengths) -> list[RunLength | None]:
    made = learned(told, wanted)
    return [made.estimate(some) for some in PODS]


@Law
@given(runs(), wishes(), st.randoms(use_true_random=False))
def test_the_order_of_learning_and_learning_twice_do_not_matter(
    told: list[Run], wanted: RunLengths, shuffle: random.Random
) -> None:
    mixed = [*told, *told[: len(told) // 2]]
    shuffle.shuffle(mixed)
    assert estimates(mixed, wanted) == estimates(told, wanted)


@Law
@given(runs(), wishes())
def test_an_estimate_is_the_length_of_a_run_that_ended_well_and_had_what_it_says_in_common(
    told: list[Run], wanted: RunLengths
) -> None:
    for some, estimate in zip(PODS, estimates(told, wanted), strict=True):
        if estimate is None:
            continue
        alike = [
            one.ended_at - one.began_at
            for one in told
            if one.succeeded
            and {
                "template": (one.owner, one.image) == (some.template, some.image),
                "image": one.image == some.image != "",
                "kind of owner": one.owner.partition("/")[0] == some.template.partition("/")[0],
            }[estimate.basis]
        ]
        assert min(alike) <= estimate.seconds <= max(alike)
        assert estimate.seconds in alike
        assert estimate.runs == min(len(alike), MOST_RUNS) >= wanted.min_runs
        assert 0 < estimate.confidence <= 1


@Law
@given(runs(), wishes(), st.sampled_from([0.25, 2, 1024]))
def test_runs_so_many_times_as_long_are_expected_so_many_times_as_long(
    told: list[Run], wanted: RunLengths, factor: float
) -> None:
    longer = [
        msgspec.structs.replace(one, began_at=one.ended_at - factor * (one.ended_at - one.began_at)) for one in told
    ]
    for before, after in zip(estimates(told, wanted), estimates(longer, wanted), strict=True):
        want = None if before is None else msgspec.structs.replace(before, seconds=factor * before.seconds)
        assert after == want


@Law
@given(runs(), wishes(), st.integers(1, 10_000))
def test_a_templates_own_runs_win_over_all_others_once_there_are_enough(
    told: list[Run], wanted: RunLengths, seconds: int
) -> None:
    own = [run(1000 + i, "Job/own-#", "x", 5.0, seconds) for i in range(wanted.min_runs)]
    few, enough = learned([*told, *own[1:]], wanted), learned([*told, *own], wanted)
    found = few.estimate(pod("Job/own-#", "x"))
    assert found is None or found.basis != "template"
    found = enough.estimate(pod("Job/own-#", "x"))
    assert found is not None
    assert (found.basis, found.seconds, found.confidence) == ("template", seconds, 1.0)


@Law
@given(runs(), wishes(), wishes())
def test_a_greater_quantile_expects_no_less(told: list[Run], one: RunLengths, other: RunLengths) -> None:
    other = msgspec.structs.replace(one, quantile=other.quantile)
    low, high = sorted((one, other), key=lambda wanted: wanted.quantile)
    for less, more in zip(estimates(told, low), estimates(told, high), strict=True):
        assert (less is None) == (more is None)
        assert less is None or more is None or less.seconds <= more.seconds


@Law
@given(st.lists(runs(20), min_size=1, max_size=6), st.data())
def test_what_pods_are_given_is_their_estimate_or_the_one_they_came_to_their_node_with(
    lessons: list[list[Run]], data: st.DataObject
) -> None:
    """Pods come, get nodes and go between lessons; a second estimator that keeps nothing says what waiting pods get."""
    wanted = RunLengths(min_runs=2)
    made, told = LearnedRunLengths(wanted), 0
    present: dict[str, Pod] = {}
    kept: dict[str, RunLength] = {}
    all_runs: list[Run] = []
    for number, lesson in enumerate(lessons):
        fresh = [msgspec.structs.replace(one, uid=f"{number}-{one.uid}") for one in lesson]
        all_runs += fresh
        made.learn(fresh)
        for some in data.draw(st.lists(st.sampled_from(PODS), max_size=6)):
            told += 1
            present[f"q{told}"] = msgspec.structs.replace(some, name=f"q{told}", uid=f"q{told}")
        for uid in data.draw(st.lists(st.sampled_from(sorted(present)), unique=True)) if present else ():
            if present[uid].node is not None:
                del present[uid]
            else:
                present[uid] = msgspec.structs.replace(present[uid], node="n")
        pods = tuple(present.values())
        given_now, plain = made.applied(pods), learned(all_runs, wanted)
        for some, result in zip(pods, given_now, strict=True):
            want = kept.get(some.uid) if some.node is not None else None
            want = want or plain.estimate(some)
            assert result.run_length == want
            if want is not None:
                kept[some.uid] = want
        assert made.applied(tuple(pods)) is given_now
