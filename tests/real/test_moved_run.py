"""A simulated move costs a Job the copy once: what its source did meanwhile is done again, and no more than that."""

from __future__ import annotations

from datetime import datetime

import pytest

from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kubernetes.resources import RESOURCES
from htas.adapters.kubernetes.watching import list_into
from htas.adapters.migration.engine import MigrationEngine
from htas.adapters.migration.methods.simulated import Simulated, SimulatedObjects
from htas.model.migrations import MigrationSettings, MigrationState
from htas.model.moves import MigrationMethod
from tests.real.conftest import Tell
from tests.real.harness import Cluster, Json, eventually
from tests.real.work import job, node

pytestmark = pytest.mark.timeout(120)

RUNS_S, COPY_S = 12.0, 6.0
MIB = 512


def test_a_moved_job_does_what_was_copied_again_and_no_more(cluster: Cluster, tell: Tell) -> None:
    live = LiveView("htas")

    def look() -> LiveView:
        for resource in RESOURCES:
            list_into(live, cluster.api, resource, 500)
        return live

    def running(view: LiveView) -> bool:
        return any(pod.started_at is not None for pod in view.view().pods)

    cluster.create(node("a", "2", "4Gi"), node("b", "2", "4Gi"))
    eventually(lambda: all(each.is_ready for each in look().view().nodes), 30, "both nodes are Ready")
    cluster.create(job("train", f"{RUNS_S:g}s", memory=f"{MIB}Mi"))
    (waiting,) = eventually(lambda: look().view().pods, 30, "its pod is made")
    path = f"/api/v1/namespaces/default/pods/{waiting.name}/binding"
    cluster.api.post(path, {"metadata": {"name": waiting.name}, "target": {"kind": "Node", "name": "a"}})
    eventually(lambda: running(look()), 30, "it runs")
    (pod,) = live.view().pods
    objects = SimulatedObjects(cluster.api)
    engine = MigrationEngine(
        objects, Simulated(objects, bandwidth_bytes_per_s=MIB * 2**20 / COPY_S), MigrationSettings()
    )
    engine.start(pod, "b", MigrationMethod.CHECKPOINT)
    eventually(lambda: not engine.moving(), 30, "the move is over")
    (record,) = engine.records()
    assert record.state is MigrationState.DONE, record.detail
    (ended,) = eventually(lambda: _succeeded(cluster), 60, "it ends")
    (status,) = ended["status"]["containerStatuses"]
    assert pod.started_at is not None
    took_s = datetime.fromisoformat(status["state"]["terminated"]["finishedAt"]).timestamp() - pod.started_at
    tell(f"a Job of {RUNS_S:g} s, moved with a copy of {COPY_S:g} s: {took_s:.0f} s from its beginning to its end")
    assert ended["spec"]["nodeName"] == "b"
    assert took_s < RUNS_S + COPY_S + 0.75 * COPY_S, "the copy is done again once; twice would be 6 s longer"
    (done,) = cluster.items("/apis/batch/v1/namespaces/default/jobs")
    assert (done["status"].get("failed", 0), done["metadata"]["name"]) == (0, "train")


def _succeeded(cluster: Cluster) -> list[Json]:
    return [pod for pod in cluster.pods() if pod["status"]["phase"] == "Succeeded"]
