"""What finished Jobs teach, and whose the money was, on a real API server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.real.conftest import Tell
from tests.real.harness import Cluster, Htas, eventually, htas
from tests.real.test_outages import jobs_done
from tests.real.work import Json, job

pytestmark = pytest.mark.timeout(240)
RUNS_S = 6


def silent(name: str, runs: str = f"{RUNS_S}s") -> Json:
    """A Job that does not say how long it takes."""
    made = job(name, runs)
    del made["spec"]["template"]["metadata"]["annotations"]["htas.io/runtime"]
    return made


def lengths(daemon: Htas, start: str) -> list[Json | None]:
    status, text = daemon.get("/snapshotz")
    pods = json.loads(text)["cluster"]["pods"] if status == 200 else []  # 503 until the first cycle is over
    return [pod.get("run_length") for pod in pods if pod["name"].startswith(start)]


def test_the_fourth_of_a_kind_is_expected_to_take_as_long_as_the_others(
    cluster: Cluster, config: Path, tmp_path: Path, tell: Tell
) -> None:
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(*(silent(f"train-{i}") for i in range(3)))
        eventually(lambda: any(length is None for length in lengths(daemon, "train")), 30, "nothing is known of them")
        eventually(lambda: jobs_done(cluster, 3), 90, "the Jobs complete")
        cluster.create(silent("train-3", runs="30s"))  # it must still run when it is asked about
        eventually(lambda: any(lengths(daemon, "train-3")), 30, "it is expected to run as long")
        (learned,) = lengths(daemon, "train-3")
        assert learned is not None
        assert (learned["source"], learned["basis"], learned["runs"]) == ("learned", "template", 3)
        assert RUNS_S - 1 <= learned["seconds"] <= RUNS_S + 20, learned
        why = htas("explain", "pod", f"default/{_name(cluster, 'train-3')}", config=config)
        assert "learned from 3 runs of its template" in why.stdout, why
        eventually(lambda: jobs_done(cluster, 4), 60, "it completes")
        assert daemon.stop() == 0
    spent = htas("cost", "--by", "owner", config=config)
    assert "default Job/train-#" in spent.stdout, spent
    tell(why.stdout + spent.stdout)


def _name(cluster: Cluster, start: str) -> str:
    return next(str(pod["metadata"]["name"]) for pod in cluster.pods() if pod["metadata"]["name"].startswith(start))
