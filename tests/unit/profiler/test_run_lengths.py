"""Learned run lengths: what teaches, who is asked first, and where an estimate stands in a pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.pods import Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import MOST_RUNS, RunLengths
from htas.model.record import Run
from htas.profiler.run_lengths import LearnedRunLengths
from tests.builders import NOW, amounts, make_job, make_pod

PLAIN = RunLengths(min_runs=1)


def run(seconds: float, **fields: Any) -> Run:
    """A run of `train`, which asks for half a core and a GiB; it ends now."""
    ended_at = fields.pop("ended_at", NOW)
    known: dict[str, Any] = {
        "namespace": "default",
        "pod": "train-1",
        "uid": f"u-{seconds}-{ended_at}",
        "node": "n",
        "kind": WorkKind.BATCH,
        "owner": "Job/train-#",
        "image": "torch",
        "cpu_m": 500,
        "memory_bytes": 2**30,
        "share_millionths": 1,
        "began_at": ended_at - seconds,
        "came_at": ended_at - seconds,
        "succeeded": True,
    }
    return Run(**(known | fields), ended_at=ended_at)


def job(**fields: Any) -> Pod:
    known: dict[str, Any] = {"run_length": None, "template": "Job/train-#", "image": "torch"}
    return make_job("train-2", **(known | {"requests": amounts("500m", "1Gi")} | fields))


def learned(*runs: Run, settings: RunLengths = PLAIN, **options: int) -> LearnedRunLengths:
    made = LearnedRunLengths(settings, **options)
    made.learn(runs)
    return made


@pytest.mark.parametrize(
    ("fields", "basis"),
    [
        pytest.param({}, "template", id="its own template"),
        pytest.param({"requests": amounts("2", "1Gi")}, "image", id="nor is one that asks for more CPU"),
        pytest.param({"requests": amounts("500m", "2Gi")}, "image", id="or more memory"),
        pytest.param({"template": "CronJob/eval"}, "image", id="another template with the same image"),
        pytest.param({"image": "jax"}, "kind of owner", id="another image of the same template: its kind of owner"),
        pytest.param({"template": "Job/x-#", "image": ""}, "kind of owner", id="a pod without an image"),
        pytest.param({"template": ""}, "image", id="a bare pod is known by its image"),
        pytest.param({"template": "CronJob/eval", "image": "jax"}, None, id="nothing in common"),
        pytest.param({"template": "", "image": ""}, None, id="a pod that tells nothing"),
        pytest.param({"kind": WorkKind.SERVICE}, None, id="services run for ever"),
    ],
)
def test_the_nearest_runs_speak(fields: dict[str, Any], basis: str | None) -> None:
    found = learned(run(312.0)).estimate(job(**fields))
    assert found == (RunLength(312.0, RunLengthSource.LEARNED, basis, 1, 1.0) if basis is not None else None)


@pytest.mark.parametrize(
    "teaching",
    [
        pytest.param({"succeeded": False}, id="it failed"),
        pytest.param({"succeeded": None}, id="it moved, or its end was not seen"),
        pytest.param({"kind": WorkKind.SERVICE}, id="a service that was scaled down"),
        pytest.param({"began_at": NOW + 5}, id="it ended before it began: clocks differ"),
    ],
)
def test_what_teaches_nothing(teaching: dict[str, Any]) -> None:
    made = learned(run(100.0, **teaching))
    assert made.estimate(job()) is None
    assert made.revision == 0


@pytest.mark.parametrize(
    ("lengths", "settings", "seconds"),
    [
        pytest.param([10, 20, 90], {}, 20, id="the middle one of three"),
        pytest.param([30, 90, 10, 20], {"half_life": 1e9}, 20, id="the lower half of four, being newer"),
        pytest.param([90, 90, 90, 10, 10], {"half_life": 1.0}, 10, id="two new ones outweigh three old"),
        pytest.param([90, 90, 90, 10, 10], {"half_life": 1e9}, 90, id="without age the three win"),
        pytest.param(list(range(1, 11)), {"half_life": 1e9, "quantile": 0.85}, 9, id="85 of 100 end within the ninth"),
        pytest.param([5, 70, 3], {"quantile": 1.0}, 70, id="all end within the longest"),
        pytest.param([10, 10], {"min_runs": 3}, None, id="two where three are wanted"),
        pytest.param([1000] * 64 + [10] * 64, {"quantile": 1.0}, 10, id="the 65th newest is forgotten"),
    ],
)
def test_an_estimate_is_a_quantile_of_the_newer_runs(
    lengths: list[float], settings: dict[str, Any], seconds: float | None
) -> None:
    wanted = msgspec.structs.replace(PLAIN, **settings)
    found = learned(*(run(s, ended_at=NOW + i) for i, s in enumerate(lengths)), settings=wanted).estimate(job())
    assert (found.seconds if found is not None else None) == seconds
    assert found is None or found.runs == min(len(lengths), MOST_RUNS)


def test_confidence_is_the_share_that_ended_within_a_quarter() -> None:
    lengths = (75.0, 100.0, 125.0, 126.0, 74.0)
    even = msgspec.structs.replace(PLAIN, half_life=1e9)
    found = learned(*(run(s) for s in lengths), settings=even).estimate(job())
    assert found is not None
    assert (found.seconds, found.confidence) == (100.0, pytest.approx(3 / 5))


LEARNED = RunLength(100.0, RunLengthSource.LEARNED, "template", 1, 1.0)
STATED = RunLength(30.0, RunLengthSource.ANNOTATION)
SOON, LATE = RunLength(60.0, RunLengthSource.DEADLINE), RunLength(600.0, RunLengthSource.DEADLINE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, LEARNED, id="nothing was known"),
        pytest.param(STATED, STATED, id="what its owner states comes first"),
        pytest.param(LATE, LEARNED, id="before a deadline that is further off"),
        pytest.param(SOON, SOON, id="but a deadline ends the pod sooner"),
    ],
)
def test_where_what_was_learned_stands(before: RunLength | None, after: RunLength) -> None:
    (pod,) = learned(run(100.0)).applied((job(run_length=before),))
    assert pod == job(run_length=after)


def test_a_pod_keeps_the_estimate_it_came_to_its_node_with_and_those_that_wait_have_the_newest() -> None:
    made = learned(run(100.0))
    made.applied((job(),))
    made.learn([run(900.0, ended_at=NOW + i) for i in range(1, 4)])
    bound, waiting = made.applied((job(node="n"), job(uid="other")))
    assert bound.run_length == LEARNED
    assert waiting.run_length is not None
    assert waiting.run_length.seconds == 900.0


def test_a_pod_that_ran_before_anything_was_learned_is_given_the_first_estimate_and_keeps_it() -> None:
    made, pods = LearnedRunLengths(PLAIN), (job(node="n"),)
    assert made.applied(pods) is pods
    made.learn([run(100.0)])
    assert made.applied(pods)[0].run_length == LEARNED
    made.learn([run(900.0, ended_at=NOW + i) for i in range(1, 4)])
    assert made.applied(pods)[0].run_length == LEARNED


def test_nothing_new_gives_the_very_same_tuple() -> None:
    made = learned(run(100.0))
    first, second = job(uid="a"), job(uid="b")
    given = made.applied((first, second))
    assert made.applied((first, second)) is given
    made.learn([run(5.0, owner="CronJob/other", image="none")])
    assert made.applied((first, second)) is given
    assert made.applied((second,))[0] is given[1]
    services = (make_pod("web"),)
    assert made.applied(services) is services


def test_pods_that_come_and_go_leave_nothing_behind_that_others_would_get() -> None:
    """Ten thousand pods pass, a hundred at a time: objects' places in memory are used again by others."""
    made = learned(run(100.0), run(7.0, owner="Job/short-#", image="sh"))
    for turn in range(100):
        pods = tuple(
            job(uid=f"{turn}-{i}", template="Job/short-#" if (turn + i) % 2 else "Job/train-#", image="")
            for i in range(100)
        )
        pods = tuple(msgspec.structs.replace(p, image="sh" if "short" in p.template else "torch") for p in pods)
        lengths = [pod.run_length.seconds for pod in made.applied(pods) if pod.run_length is not None]
        assert lengths == [7.0 if "short" in pod.template else 100.0 for pod in pods]


def test_other_settings_count_at_once_for_pods_that_run_too() -> None:
    made, pods = learned(*(run(s) for s in (10.0, 20.0, 90.0))), (job(node="n"),)
    assert [p.run_length.seconds for p in made.applied(pods) if p.run_length] == [20.0]
    made.adopt(msgspec.structs.replace(PLAIN, quantile=1.0))
    assert [p.run_length.seconds for p in made.applied(pods) if p.run_length] == [90.0]
    made.adopt(msgspec.structs.replace(PLAIN, learn=False))
    assert made.applied(pods) is pods
    assert made.estimate(job()) is None
    made.adopt(PLAIN)
    assert [p.run_length.seconds for p in made.applied(pods) if p.run_length] == [20.0]


def test_the_template_used_least_of_late_is_forgotten_first() -> None:
    made = learned(run(10.0, owner="Job/a", image=""), run(20.0, owner="Job/b", image=""), most_histories=3)
    assert made.estimate(job(template="Job/a", image="")) is not None
    made.learn([run(30.0, owner="Job/c", image="")])
    kept = [made.estimate(job(template=template, image="")) for template in ("Job/a", "Job/b", "Job/c")]
    assert [found.basis if found else None for found in kept] == ["template", "kind of owner", "template"]
