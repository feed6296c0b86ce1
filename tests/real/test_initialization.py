"""A node's agent and its GPU are late, on a real API server: one machine is launched, and the job runs there."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.real.harness import Cluster, Htas, configuration, eventually
from tests.real.work import Json, job

pytestmark = pytest.mark.timeout(300)

GPU = "nvidia.com/gpu"
AGENT: Json = {"key": "example.com/agent-not-ready", "value": "", "effect": "NoSchedule"}
GPUS: dict[str, Any] = {
    "flavours": {
        "billing": {"granularity": "1s", "minimum": "1s"},
        "flavours": [{"name": "gpu", "cpu": 4, "memory": "16Gi", "pricePerHour": "1", "extended": {GPU: 1}}],
    },
    "nodeGroups": [
        {"name": "any", "startupTaints": [AGENT], "cleaning": {"emptyFor": "1s", "delayAfterLaunch": "0s"}},
    ],
}
LATE_S = 12.0
"""Six cycles: the next machine was launched within one, and the first was drained as empty."""


def on_gpu(name: str) -> Json:
    manifest = job(name, "5s")
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": container["resources"]["requests"] | {GPU: "1"}, "limits": {GPU: "1"}}
    return manifest


def patch(cluster: Cluster, node: str, what: Json, *options: str) -> None:
    cluster.kubectl("patch", "node", node, "--type=merge", f"--patch={json.dumps(what)}", *options)


def test_a_late_agent_and_a_late_gpu_take_one_machine(cluster: Cluster, tmp_path: Path) -> None:
    with Htas(configuration(tmp_path, cluster.kubeconfig, **GPUS), tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(on_gpu("train"))
        eventually(lambda: cluster.nodes(), 60, "a node registers")
        [node] = cluster.nodes()
        name = node["metadata"]["name"]
        assert [taint["key"] for taint in node["spec"]["taints"] if taint["key"] == AGENT["key"]]
        patch(cluster, name, {"status": {"allocatable": {GPU: None}, "capacity": {GPU: None}}}, "--subresource=status")
        eventually(lambda: daemon.metric("htas_nodes_not_initialized", group="any") == 1, 60, "it waits")
        patch(cluster, name, {"spec": {"taints": None}})
        time.sleep(LATE_S)
        assert [each["metadata"]["name"] for each in cluster.nodes()] == [name]
        assert [pod["spec"].get("nodeName") for pod in cluster.pods(labelSelector="job=train")] == [None]
        assert daemon.metric("htas_nodes_not_initialized", group="any") == 1
        patch(cluster, name, {"status": {"allocatable": {GPU: "1"}, "capacity": {GPU: "1"}}}, "--subresource=status")
        eventually(lambda: _ran_on(cluster) == [name], 60, "the job runs there")
        assert daemon.metric("htas_nodes_launched_total") == 1
        eventually(lambda: not cluster.nodes(), 60, "its machine is deleted")
        assert daemon.stop() == 0


def _ran_on(cluster: Cluster) -> list[str | None]:
    pods = cluster.pods(labelSelector="job=train")
    return [pod["spec"].get("nodeName") for pod in pods if pod["status"].get("phase") == "Succeeded"]
