"""`htas optimize`: a dry run, in words and as data; options that make no sense are refused with what would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.dump import node, pod, running
from tests.unit.cli.test_commands import PRICES, htas_says


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "htas.yaml"
    document = {
        "apiVersion": "htas.io/v1alpha1",
        "kind": "HTASConfiguration",
        "cluster": "test",
        "flavours": str(PRICES),
        "provider": {"sandbox": {}},
        "limits": {"maxNodes": 0},
        "nodeGroups": [{"name": "any"}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def movable(name: str, where: str) -> dict[str, Any]:
    owner = {"kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
    made = running(
        name, where, meta={"uid": name, "annotations": {"htas.io/migrate": "true"}, "ownerReferences": [owner]}
    )
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    return made


@pytest.fixture
def figure_1(tmp_path: Path) -> Path:
    """Two nodes of 4, each with a pod of 2, and a third pod of 3."""
    nodes = [node(name, "4", "8Gi", "z1") for name in ("a", "b")]
    path = tmp_path / "dump.json"
    waiting = pod("three", "3", meta={"uid": "three"})
    path.write_text(json.dumps({"kind": "List", "items": [*nodes, movable("one", "a"), movable("two", "b"), waiting]}))
    return path


def test_what_is_gained_and_who_moves_is_told(config: Path, figure_1: Path) -> None:
    result = htas_says("optimize", "--config", config, "--from", figure_1)
    assert result.exit_code == 0, result.stderr
    assert "ProvenOptimal: no placement is better" in result.stdout
    assert "1 waiting pod placed by moving 1 and evicting 0" in result.stdout
    assert "default/three" in result.stdout
    lines = result.stdout.splitlines()
    (head,) = (number for number, line in enumerate(lines) if line.startswith("priority"))
    assert lines[head].split() == [
        "priority",
        "pods",
        "placed",
        "now",
        "then",
        "bound",
        "stay",
        "move",
        "fewest",
        "moves",
    ]
    assert lines[head + 1].split() == ["0", "3", "2", "3", "(+1)", "proven", "1", "1", "proven"]


@pytest.mark.parametrize("engine", ["cp-sat", "decomposition", "portfolio"])
def test_each_engine_finds_the_one_move(config: Path, figure_1: Path, engine: str) -> None:
    result = htas_says("optimize", "--config", config, "--from", figure_1, "--engine", engine)
    assert result.exit_code == 0, result.stderr
    assert "1 waiting pod placed by moving 1 and evicting 0" in result.stdout


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_scripts_have_it_as_data(config: Path, figure_1: Path, form: str) -> None:
    result = htas_says("optimize", "--config", config, "--from", figure_1, "-o", form, "--budget", "5s", "--seed", 3)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout) if form == "json" else yaml.safe_load(result.stdout)
    assert (found["kind"], found["status"]) == ("Rearrangement", "ProvenOptimal")
    [move], [seat], [tier] = found["leave"], found["place"], found["tiers"]
    assert {move["from"], move["to"]} == {"a", "b"}
    assert seat == {"pod": "default/three", "node": move["from"]}
    assert (tier["placedBefore"], tier["placedAfter"], tier["placedBound"], tier["placingProven"]) == (2, 3, 3, True)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--budget", "0s", "--budget: 0s is not above 0s and at most 60m; write one such as 10s"),
        ("--budget", "0", "--budget: '0' has no unit; write it with ms, s, m, h or d, such as 0s"),
        ("--budget", "soon", "--budget: 'soon' is not a duration"),
        ("--budget", "2h", "--budget: 2h is not above 0s and at most 60m"),
        ("--engine", "luck", "--engine: 'luck' is none; write cp-sat, decomposition, portfolio"),
        ("--workers", "0", "--workers: 0 is not from 1 to 64; write one for each core it may use"),
        ("--workers", "65", "--workers: 65 is not from 1 to 64"),
        ("--seed", "-1", "--seed"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    config: Path, figure_1: Path, option: str, value: str, says: str
) -> None:
    result = htas_says("optimize", "--config", config, "--from", figure_1, option, value)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in " ".join(result.stderr.split())


def test_without_nodes_there_is_nothing_better(config: Path, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "items": [pod("three", "3", meta={"uid": "three"})]}))
    result = htas_says("optimize", "--config", config, "--from", path)
    assert result.exit_code == 0, result.stderr
    assert "AlreadyOptimal: no placement is better than the present one" in result.stdout
