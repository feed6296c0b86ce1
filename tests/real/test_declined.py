"""A pod whose own scheduler declines it, as where a queue is full, on a real API server: its machine is deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from htas.model.reasons import Unplaced
from tests.real.harness import Cluster, Htas, configuration, eventually
from tests.real.work import Json, pod

pytestmark = pytest.mark.timeout(300)

SETTINGS: dict[str, Any] = {
    "timeouts": {"unused": "20s"},
    "nodeGroups": [{"name": "any", "cleaning": {"emptyFor": "1s", "delayAfterLaunch": "0s"}}],
}
DECLINED: Json = {
    "status": {
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "its queue is full"}
        ]
    }
}
"""What Volcano and YuniKorn note on a pod: to HTAS it says that a machine may help."""


def test_a_machine_for_a_pod_that_its_scheduler_declines_is_deleted(cluster: Cluster, tmp_path: Path) -> None:
    """It was held for ever."""
    with Htas(configuration(tmp_path, cluster.kubeconfig, **SETTINGS), tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(pod("executor", cpu="1", scheduler="volcano"))
        cluster.kubectl(
            "patch", "pod", "executor", "--type=merge", f"--patch={json.dumps(DECLINED)}", "--subresource=status"
        )
        eventually(lambda: cluster.nodes(), 60, "a machine is launched for it")
        eventually(lambda: _is_declined(daemon), 90, "its room is unused for 20 s")
        assert daemon.metric("htas_nodes_launched_total") == 1
        eventually(lambda: not cluster.nodes(), 60, "its machine is deleted")
        [there] = cluster.pods()
        assert there["spec"].get("nodeName") is None
        assert "deletionTimestamp" not in there["metadata"]
        assert daemon.stop() == 0


def _is_declined(daemon: Htas) -> bool:
    return daemon.metric("htas_unschedulable_pods", reason=Unplaced.DECLINED.value) == 1
