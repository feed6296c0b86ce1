"""`htas plan` of a dump whose newest node is Ready and not initialized: its pods wait for it, and it stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from htas.cli.main import app
from tests.unit.cli.dump import node, pod

CONFIG = """
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: demo
provider: {sandbox: {}}
flavours:
  flavours:
    - {name: g4, cpu: 4, memory: 16Gi, pricePerHour: "0.9", extended: {nvidia.com/gpu: 1}}
    - {name: m4, cpu: 4, memory: 16Gi, pricePerHour: "0.2"}
nodeGroups: [{name: any}]
"""
OURS = {"htas.io/cluster": "demo", "htas.io/group": "any"}
AGENT = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}


def new_node(flavour: str, *taints: dict[str, str]) -> dict[str, Any]:
    made = node(
        "w-2", "4", "16Gi", "z1", **OURS, **{"htas.io/claim": "w-2", "node.kubernetes.io/instance-type": flavour}
    )
    made["metadata"] |= {"creationTimestamp": "2026-01-05T07:59:30Z", "uid": "2"}
    made["spec"] |= {"taints": list(taints), "providerID": "openstack:///2"}
    return made


@pytest.mark.parametrize(
    ("there", "requests", "awaited"),
    [
        pytest.param(new_node("m4", AGENT), {"cpu": "2", "memory": "2Gi"}, "taint node.cilium.io/agent", id="a taint"),
        pytest.param(new_node("g4"), {"cpu": "1", "nvidia.com/gpu": "1"}, "nvidia.com/gpu", id="a device"),
    ],
)
def test_nothing_is_launched_for_pods_that_have_a_machine_which_is_not_initialized(
    there: dict[str, Any], requests: dict[str, str], awaited: str, tmp_path: Path
) -> None:
    work = pod("api", spec={"containers": [{"name": "c", "resources": {"requests": requests}}]})
    (tmp_path / "htas.yaml").write_text(CONFIG)
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "items": [there, work]}))
    words = ["plan", "-c", str(tmp_path / "htas.yaml"), "--from", str(tmp_path / "dump.json")]
    made = CliRunner().invoke(app, [*words, "--at", "2026-01-05T08:00:00Z", "-o", "json"])
    plan = json.loads(made.stdout)
    assert (plan["launch"], plan["bind"]) == ([], [])
    assert [each["reason"] for each in plan["kept"]] == ["NotInitialized"]
    assert awaited in plan["kept"][0]["message"]
