"""`htas simulate` on a cluster as people run them, whole and with only some kinds in its dump (tools/sample)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from htas.cli.main import app
from tools.sample.cluster import sample
from tools.sample.documented import block, documented

ROOT = Path(__file__).parents[3]
PRICES = ROOT / "config/flavours/nectar.yaml"
KINDS = frozenset(item["kind"] for item in sample())


def says(*words: object, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["simulate", *map(str, words), "--flavours", str(PRICES)], input=given)


def written(folder: Path, kinds: Collection[str] = (), **how: Any) -> Path:
    path = folder / "sample.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": sample(kinds=kinds, **how)}))
    return path


def answer(path: Path, *words: object) -> dict[str, Any]:
    said = says("--from", path, "-o", "json", *words)
    assert said.exit_code == 0, said.stderr
    found: dict[str, Any] = json.loads(said.stdout)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return answer(written(tmp_path_factory.mktemp("sample")))


def per_hour(stage: dict[str, Any]) -> Decimal:
    return Decimal(stage["pricePerHour"])


def test_it_is_dated_by_the_leases_of_its_nodes(whole: dict[str, Any]) -> None:
    """Its newest pod is twenty minutes old, its services are a month old."""
    assert (whole["takenAt"], whole["datedBy"]) == ("2026-03-02T10:15:00Z", "Lease kube-node-lease/worker-12")


def test_a_whole_dump_assumes_nothing_and_the_figures_stand_in_order(whole: dict[str, Any]) -> None:
    assert (whole["assumed"], whole["nodesRecognised"]) == ([], [])
    now, packed, consolidated = (per_hour(whole[stage]) for stage in ("now", "packed", "consolidated"))
    assert now > packed > consolidated >= Decimal(whole["lowerBoundPerHour"])
    assert consolidated > per_hour(whole["nothingHeld"])
    assert whole["presumes"] == [
        "pods are moved by hand where draining nodes does not do it: HTAS consolidates only by launching machines",
        '8 pods of services that move are annotated htas.io/migrate: "true"'
        " (argo/workflow-controller-f50d54-9frtl, shop/cart-3379b6-kz6sg and 6 more)",
        "5 nodes are drained and deleted by hand: HTAS deletes only what it launched"
        " (worker-04, worker-08, worker-11, worker-12, worker-16)",
    ]


def test_no_offer_of_few_comes_to_more_than_packing_what_is_there(whole: dict[str, Any]) -> None:
    assert all(per_hour(each) <= per_hour(whole["nothingHeldPacked"]) for each in whole["bestFew"])


def test_who_is_asked_for_an_annotation_is_who_moves(whole: dict[str, Any]) -> None:
    """The saving moves 8 of the 47 pods that could be; with rules lifted all of these."""
    assert (whole["servicesTakenToBeMovable"], len(whole["servicesToAnnotate"])) == (47, 8)
    assert whole["consolidated"]["podsMoved"] == 8


def test_pods_of_operators_are_held_for_their_real_reason(whole: dict[str, Any]) -> None:
    """CloudNativePG's and Argo's pods have a controller; only the bare one lacks one."""
    rules = {rule["rule"]: rule for rule in whole["rules"]}
    assert (rules["NotReplicated"]["pods"], rules["UnknownController"]["pods"]) == (1, 10)
    remedy = rules["UnknownController"]["remedy"]
    assert remedy.startswith(
        "4 pods end by themselves and then free their node: wait; of the others: HTAS does not know"
    )
    assert "whether a Cluster starts an evicted pod again" in remedy
    held = {node["node"]: node["message"] for node in whole["nodesHeld"]}
    assert held["cp-1"] == "it is of the control plane"
    assert held["worker-15"].endswith("is controlled by a Cluster, which HTAS does not know to start it again")


def test_rules_that_free_nothing_alone_do_so_together(whole: dict[str, Any]) -> None:
    alone = {rule["rule"]: Decimal(rule["liftedPackingSavesPerHour"]) for rule in whole["rules"]}
    assert alone["UnmovableKubeSystemPod"] == alone["UnknownController"] == 0
    sets = {tuple(each["rules"]): Decimal(each["savesMorePerHour"]) for each in whole["ruleSets"]}
    assert sets["LocalStorageRequested", "UnmovableKubeSystemPod"] > alone["LocalStorageRequested"]
    free = min(per_hour(whole["nothingHeld"]), per_hour(whole["nothingHeldPacked"]))
    for rules, saved in sets.items():
        smaller = (less for inside, less in sets.items() if set(inside) < set(rules))
        assert max(smaller, default=Decimal(0)) < saved <= per_hour(whole["consolidated"]) - free


def test_all_rules_together_come_to_what_nothing_held_does(whole: dict[str, Any]) -> None:
    """They differed by 35.55 a month: with rules lifted fewer choices of flavours were tried."""
    (every,) = [each for each in whole["ruleSets"] if len(each["rules"]) == len(whole["rules"])]
    assert Decimal(every["pricePerHour"]) == Decimal(whole["nothingHeld"]["pricePerHour"])


def test_a_set_saves_what_lifting_its_rules_does(whole: dict[str, Any], tmp_path: Path) -> None:
    """The same by hand: system pods and local storage are skipped no more in the configuration."""
    config = tmp_path / "htas.yaml"
    cleaning = "{skipSystemPods: false, skipLocalStorage: false}"
    config.write_text(CONFIG.format(prices=PRICES, cleaning=cleaning))
    lifted = answer(written(tmp_path), "--config", config)
    told = next(
        each for each in whole["ruleSets"] if set(each["rules"]) == {"LocalStorageRequested", "UnmovableKubeSystemPod"}
    )
    assert lifted["consolidated"]["pricePerHour"] == told["pricePerHour"]


CONFIG = """
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: demo
flavours: {prices}
provider: {{sandbox: {{workload: day, speed: 600}}}}
nodeGroups: [{{name: all, cleaning: {cleaning}}}]
"""


def test_every_rule_that_holds_can_be_lifted(tmp_path: Path) -> None:
    """Also those that only hold where pods are moved with twins."""
    config = tmp_path / "htas.yaml"
    config.write_text(CONFIG.format(prices=PRICES, cleaning="{migration: replace}"))
    rules = {rule["rule"]: rule["remedy"] for rule in answer(written(tmp_path), "--config", config)["rules"]}
    assert rules["NotMovable"] == "let them be evicted instead (cleaning.migration: evict)"
    assert all(rules.values())


LESS = [
    pytest.param({"Node", "Pod"}, {"pvc", "pv", "sc", "pdb", "rs", "sts", "ds", "jobs"}, id="pods and nodes"),
    pytest.param(KINDS - {"PersistentVolume", "PersistentVolumeClaim"}, {"pvc", "pv", "sc"}, id="no volumes"),
    pytest.param(KINDS - {"PersistentVolume"}, {"pv"}, id="claims alone"),
    pytest.param(KINDS - {"PodDisruptionBudget"}, {"pdb"}, id="no budgets"),
    pytest.param(KINDS - {"ReplicaSet", "Job"}, {"rs", "jobs"}, id="no controllers"),
    pytest.param(KINDS - {"CSINode"}, {"csinodes"}, id="no CSINodes"),
]


@pytest.mark.parametrize(("kinds", "resources"), LESS)
def test_what_is_missing_is_told_with_the_command_for_it(
    kinds: Collection[str], resources: set[str], tmp_path: Path, whole: dict[str, Any]
) -> None:
    path = written(tmp_path, kinds)
    found = answer(path)
    assert {name for gap in found["assumed"] for name in gap["kubectlGet"]} == resources
    if not {"pv", "pdb"} & resources:
        assert found["consolidated"] == whole["consolidated"]
    shown = says("--from", path).stdout
    command = " ".join(shown.split()).partition("kubectl get ")[2].split()[0]
    assert set(command.split(",")) == resources


def test_nodes_alone_save_nothing_and_pods_alone_cost_nothing(tmp_path: Path) -> None:
    told = says("--from", written(tmp_path, {"Node"}))
    assert (told.exit_code, told.stdout) == (2, "")
    assert (
        "has no pods, so it is unknown which nodes are needed; 21 nodes with a price cost 6.1706 USD/h" in told.stderr
    )
    assert "kubectl get pods,pdb,pv,pvc," in told.stderr
    told = says("--from", written(tmp_path, {"Pod"}))
    assert (told.exit_code, "kubectl get nodes," in told.stderr) == (2, True)


def test_the_rest_may_be_added_to_a_dump(tmp_path: Path, whole: dict[str, Any]) -> None:
    path = written(tmp_path, {"Node", "Pod", "Lease"})
    rest = sample(kinds=KINDS - {"Node", "Pod", "Lease"})
    path.write_text(path.read_text() + json.dumps({"kind": "List", "items": rest}))
    assert answer(path) == whole


@pytest.mark.parametrize("form", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_gives_the_same(form: Any, tmp_path: Path, whole: dict[str, Any]) -> None:
    said = says("--from", "-", "-o", "json", given=form(written(tmp_path).read_bytes()))
    assert json.loads(said.stdout) == whole


def test_nodes_without_types_are_known_by_their_size(tmp_path: Path, whole: dict[str, Any]) -> None:
    path = written(tmp_path, typed=False)
    found = answer(path)
    assert {stage: found[stage] for stage in ("now", "consolidated")} == {
        stage: whole[stage] for stage in ("now", "consolidated")
    }
    assert {each["by"] for each in found["nodesRecognised"]} == {"size"}
    assert "A guess by size: 9 nodes without an instance type are taken for m1.large" in says("--from", path).stdout
    stated = answer(path, "--type", "cp-*=m3.small", "--type", "worker-0*=m1.large")
    by = {each["node"]: (each["flavour"], each["by"]) for each in stated["nodesRecognised"]}
    assert (by["cp-1"], by["worker-01"]) == (("m3.small", "stated"), ("m1.large", "stated"))
    assert by["worker-11"] == ("m1.large", "size")


def test_every_wrong_type_is_told(tmp_path: Path) -> None:
    wrong = ("--type", "worker*=m1.huge", "--type", "woker-*=m1.large", "--type", "m1.large")
    told = says("--from", written(tmp_path), *wrong)
    assert (told.exit_code, told.stdout) == (2, "")
    for words in (
        "no flavour 'm1.huge'; did you mean m1.large",
        "no node is called 'woker-*'",
        "'m1.large' is no pattern",
    ):
        assert words in told.stderr


def test_the_headline_is_the_best_of_what_was_found(tmp_path: Path) -> None:
    """Nothing may move as annotated, so what is told is what opting in, beside others, would save."""
    shown = says("--from", written(tmp_path), "--as-annotated").stdout
    first = shown.splitlines()[1]
    assert first.startswith("HTAS would save nothing as things are. With ")
    assert " rules lifted (see below) it would save " in first
    assert "ServiceNotOptedIn" in shown
    assert "finds nothing to save" not in shown


def test_the_example_of_the_documentation_is_what_is_printed(tmp_path: Path) -> None:
    shown = says("--from", written(tmp_path)).stdout
    assert documented() == block(shown), "python -m tools.sample.documented writes it anew"
