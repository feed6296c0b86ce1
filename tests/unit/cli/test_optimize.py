"""`htas optimize`: a dry run, in words and as data; options that make no sense are refused with what would."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.dump import named, node, pod, running
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
    assert "1 pending pod placed by moving 1 and evicting 0" in result.stdout
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
    assert "1 pending pod placed by moving 1 and evicting 0" in result.stdout


def in_a_dump(tmp_path: Path, *waiting: dict[str, Any], **running_fields: Any) -> Path:
    """Two nodes of 4 with a pod of 2 on each, those as `running_fields` say, and what waits."""
    items = [node(name, "4", "8Gi", "z1") for name in ("a", "b")]
    for name, where in (("one", "a"), ("two", "b")):
        made = movable(name, where)
        made["metadata"] |= running_fields.get("meta", {})
        made["spec"] |= running_fields.get("spec", {})
        items.append(made)
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "items": [*items, *waiting]}))
    return path


APART = {
    "labelSelector": {"matchLabels": {"app": "nobody"}},
    "topologyKey": "kubernetes.io/hostname",
}
ANTI_AFFINE = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}}


@pytest.mark.parametrize(
    ("fields", "scheduler", "said", "untouched"),
    [
        pytest.param(
            {"meta": {"annotations": {}}},
            "htas",
            'not free to move: 2 running, only for pods of higher priority: a service opts in to moves by htas.io/migrate: "true"',
            {"stay": 0, "giveWay": 2, "foreign": 0},
            id="services that have not opted in",
        ),
        pytest.param(
            {"spec": ANTI_AFFINE},
            "htas",
            "not free to move: 2 running, not at all: opt-outs, budgets, constraints among pods, other schedulers",
            {"stay": 2, "giveWay": 0, "foreign": 0},
            id="pods with constraints among pods, though these forbid nothing here",
        ),
        pytest.param(
            {},
            "default-scheduler",
            "not free to move: 1 pending, not at all: another scheduler's",
            {"stay": 0, "giveWay": 0, "foreign": 1},
            id="what waits is another scheduler's",
        ),
    ],
)
def test_whom_the_answer_leaves_out_is_told_where_nothing_better_is_proven(
    config: Path, tmp_path: Path, fields: dict[str, Any], scheduler: str, said: str, untouched: dict[str, int]
) -> None:
    """One move would place all three, as in Figure 1: "no placement is better" is said of those that may move alone."""
    waiting = pod("three", "3", meta={"uid": "three"})
    waiting["spec"]["schedulerName"] = scheduler
    path = in_a_dump(tmp_path, waiting, **fields)
    result = htas_says("optimize", "--config", config, "--from", path)
    assert "AlreadyOptimal: no placement is better than the present one" in result.stdout
    assert said in " ".join(result.stdout.split())
    told = json.loads(htas_says("optimize", "--config", config, "--from", path, "-o", "json").stdout)
    assert told["untouched"] == untouched


def test_where_everybody_may_move_nothing_of_that_is_said(config: Path, figure_1: Path) -> None:
    assert "not free to move" not in htas_says("optimize", "--config", config, "--from", figure_1).stdout


@pytest.mark.parametrize("engine", ["cp-sat", "decomposition", "portfolio"])
@pytest.mark.parametrize(
    ("running_fields", "scheduler"),
    [
        pytest.param({"meta": {"annotations": {}}}, "htas", id="services that have not opted in"),
        pytest.param(
            {"meta": {"annotations": {"htas.io/do-not-disrupt": "true"}}}, "htas", id="pods that ask to be left alone"
        ),
        pytest.param(
            {"meta": {"annotations": {}}, "spec": {"schedulerName": "default-scheduler"}},
            "default-scheduler",
            id="all of them kube-scheduler's",
        ),
    ],
)
def test_with_all_considered_figure_1_is_one_move_whoever_its_pods_are(
    config: Path, tmp_path: Path, running_fields: dict[str, Any], scheduler: str, engine: str
) -> None:
    waiting = pod("three", "3", meta={"uid": "three"})
    waiting["spec"]["schedulerName"] = scheduler
    path = in_a_dump(tmp_path, waiting, **running_fields)
    arguments = ("optimize", "--config", config, "--from", path, "--engine", engine, "--consider", "all")
    said = " ".join(htas_says(*arguments).stdout.split())
    assert "ProvenOptimal" in said and "1 pending pod placed by moving 1 and evicting 0" in said
    assert "as if every pod that a controller recreates might move: a what-if" in said
    told = json.loads(htas_says(*arguments, "-o", "json").stdout)
    assert (told["considered"], told["untouched"]) == ("all", {"stay": 0, "giveWay": 0, "foreign": 0})


@pytest.mark.parametrize(
    ("fields", "budget", "kept"),
    [
        pytest.param({"meta": {"annotations": {}, "ownerReferences": []}}, None, (0, 2), id="nobody makes it anew"),
        pytest.param({}, 0, (2, 0), id="a budget that allows nothing"),
        pytest.param({"spec": ANTI_AFFINE}, None, (2, 0), id="constraints among pods"),
    ],
)
def test_who_stays_even_then(
    config: Path, tmp_path: Path, fields: dict[str, Any], budget: int | None, kept: tuple[int, int]
) -> None:
    objects = [pod("three", "3", meta={"uid": "three"})]
    if budget is not None:
        objects.append(named("PodDisruptionBudget", "b", spec={"selector": {}}, status={"disruptionsAllowed": budget}))
    path = in_a_dump(tmp_path, *objects, **fields)
    told = json.loads(
        htas_says("optimize", "--config", config, "--from", path, "--consider", "all", "-o", "json").stdout
    )
    assert told["status"] == "AlreadyOptimal"
    assert (told["untouched"]["stay"], told["untouched"]["giveWay"]) == kept


def test_the_time_of_a_search_begins_once_its_solver_is_loaded(
    config: Path, figure_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP-SAT takes a second to load on crowded cores: with a budget of one it once found nothing for Figure 1."""
    solver = "htas.planning.solvers.placement.cp_sat"
    monkeypatch.delitem(sys.modules, solver, raising=False)
    loaded: list[bool] = []

    def stopwatch() -> float:
        loaded.append(solver in sys.modules)
        return 0.0

    monkeypatch.setattr("htas.cli.optimize.monotonic", stopwatch)
    assert htas_says("optimize", "--config", config, "--from", figure_1, "--engine", "cp-sat").exit_code == 0
    assert loaded[0]


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
        ("--consider", "some", "--consider: 'some' is neither; write movable or all"),
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
