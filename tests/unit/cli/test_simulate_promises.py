"""`htas simulate` promises what the daemon would do: pending pods need nodes, and consolidation has rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from htas.cli.main import app
from tests.unit.cli.clusters import machine, placed

GPU = "nvidia.com/gpu"
WITH_GPUS = """
flavours:
  - {name: gpu, cpu: 8, memory: 32Gi, pricePerHour: "2", extended: {nvidia.com/gpu: 1}}
  - {name: large, cpu: 4, memory: 8Gi, pricePerHour: "0.40"}
"""
SIZES = """
flavours:
  - {name: large, cpu: 4, memory: 8Gi, pricePerHour: "0.40"}
  - {name: mid, cpu: 3, memory: 6Gi, pricePerHour: "0.25"}
"""


def says(folder: Path, prices: str, objects: Sequence[dict[str, Any]], *words: str) -> str:
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "items": list(objects)}))
    (folder / "prices.yaml").write_text(prices)
    asked = "--from", str(folder / "dump.json"), "--flavours", str(folder / "prices.yaml"), *words
    said = CliRunner().invoke(app, ["simulate", *asked])
    assert said.exit_code == 0, said.output
    return said.stdout


def gpu_node(name: str) -> dict[str, Any]:
    made = machine(name, "gpu", "8", "32Gi")
    made["status"]["allocatable"][GPU] = "1"
    return made


def training(name: str, node: str = "") -> dict[str, Any]:
    """A pod that requests a GPU; without a node it is pending, and another scheduler's."""
    made = placed(name, node, "1", "1Gi", "Job/train")
    made["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
    if not node:
        del made["spec"]["nodeName"]
        made["status"] = {"phase": "Pending"}
    return made


@pytest.mark.parametrize(
    ("pending", "gpus", "count", "left_out"),
    [
        pytest.param(0, 0, 0, 0, id="none: no GPU is needed"),
        pytest.param(2, 2, 2, 0, id="two of three nodes are needed"),
        pytest.param(5, 3, 3, 2, id="all are needed, and two pods wait for more machines"),
    ],
)
def test_nodes_that_pending_pods_need_are_not_saved(
    tmp_path: Path, pending: int, gpus: int, count: int, left_out: int
) -> None:
    """Three idle GPU nodes were promised as saved, while pods waited for them."""
    objects = [gpu_node(f"g-{i}") for i in range(3)] + [training(f"train-{i}") for i in range(pending)]
    objects += [machine("n", "large", "4", "8Gi"), placed("web", "n", "3", "2Gi")]
    found = json.loads(says(tmp_path, WITH_GPUS, objects, "-o", "json"))
    assert found["consolidated"]["flavours"].get("gpu", 0) == gpus
    assert (found["pods"], found["podsWaitingThatCount"], found["podsWaiting"]) == (1, count, left_out)
    told = " ".join(says(tmp_path, WITH_GPUS, objects).split())
    assert (f"{count} pending pods that today's nodes have room for: counted as if running there." in told) == bool(
        count
    )
    assert (f"{left_out} pending pods that no node of today has room for: left out" in told) == bool(left_out)


def test_what_consolidation_would_refuse_as_a_whole_is_named(tmp_path: Path) -> None:
    """Four machines of 0.25 instead of 0.40 save 37.5 % and move every pod: a ratio of 0.375, and 0.5 is asked for."""
    objects = [
        each
        for i in range(4)
        for each in (machine(f"n-{i}", "large", "4", "8Gi"), placed(f"web-{i}", f"n-{i}", "2500m", "2Gi"))
    ]
    told = json.loads(says(tmp_path, SIZES, objects, "-o", "json"))["presumes"]
    assert told[:2] == [
        "consolidation is switched on (cleaning.consolidation.enabled: true)",
        "cleaning.consolidation.ratio is at most 0.375 (now 0.5): else HTAS replaces fewer nodes and saves less",
    ]


@pytest.mark.parametrize(
    ("price", "refuses"),
    [
        pytest.param("0.35", ["minSaving is at most 0.125 (now 0.2)"], id="12.5 % is too little"),
        pytest.param("0.20", [], id="half the price for half the pods is worth it"),
    ],
)
def test_a_configured_least_saving_counts(tmp_path: Path, price: str, refuses: list[str]) -> None:
    config = tmp_path / "htas.yaml"
    consolidation = "{enabled: true, minSaving: 0.2, ratio: 0.1}"
    config.write_text(
        "apiVersion: htas.io/v1alpha1\nkind: HTASConfiguration\ncluster: c\nflavours: prices.yaml\nnodeGroups:\n"
        f"  - {{name: any, cleaning: {{consolidation: {consolidation}}}}}\n"
    )
    objects = [machine("n", "large", "4", "8Gi"), placed("web", "n", "2500m", "2Gi")]
    said = says(tmp_path, SIZES.replace("0.25", price), objects, "--config", str(config), "-o", "json")
    told = [line for line in json.loads(said)["presumes"] if "consolidation" in line]
    assert [line.removeprefix("cleaning.consolidation.").partition(":")[0] for line in told] == refuses


def test_a_flavour_that_nothing_else_replaces_is_needed(tmp_path: Path) -> None:
    objects = [gpu_node("g"), training("train", "g"), machine("n", "large", "4", "8Gi"), placed("web", "n", "3", "2Gi")]
    objects.append(placed("more", "g", "5", "20Gi"))
    shown = says(tmp_path, WITH_GPUS, objects)
    assert "needed: some pods fit no other flavour; without it, their nodes of today stay" in shown
    flavours = json.loads(says(tmp_path, WITH_GPUS, objects, "-o", "json"))["flavours"]
    assert {each["flavour"]: each["isNeeded"] for each in flavours} == {"gpu": True, "large": False}
