"""`htas simulate`: what any cluster would cost, worked out from a dump; the small ones are worked out by hand, too."""

from __future__ import annotations

import csv
import io
import json
import random
from contextlib import chdir
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner, Result

from htas.cli.main import app
from htas.cli.simulate import simulate
from htas.cli.simulate_view import simulation_view
from htas.model.edge import TIER_LABEL
from tests.unit.cli.clusters import TWO_FLAVOURS, a_shop, apart, control_plane, machine, placed, three_large_nodes
from tests.unit.cli.dump import ZONE, named

PRICES = Path(__file__).parents[3] / "config/flavours/nectar.yaml"


def htas_says(*words: object) -> Result:
    return CliRunner().invoke(app, ["simulate", *(str(word) for word in words)])


def dumped(folder: Path, objects: list[dict[str, Any]]) -> Path:
    path = folder / "dump.json"
    path.write_text(json.dumps({"kind": "List", "items": objects}))
    return path


def answer_for(prices: Path, objects: list[dict[str, Any]], *more: object) -> dict[str, Any]:
    """The JSON answer for a cluster of these objects, on the fixture's two flavours."""
    result = htas_says("--from", dumped(prices.parent, objects), "--flavours", prices, "-o", "json", *more)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def costs(answer: dict[str, Any]) -> tuple[str, str, str, str]:
    return (
        *(answer[stage]["pricePerHour"] for stage in ("now", "packed", "consolidated")),
        answer["lowerBoundPerHour"],
    )


# Three nodes at 0.40, each with a pod of 1 core and 2 GiB. Now: 1.20. One node holds all three: 0.40. Two small ones,
# at 0.15, hold them too: 0.30. No core costs less than 0.15 ÷ 2: three cost at least 0.225.
SMALL_CLUSTERS: list[tuple[str, list[dict[str, Any]], tuple[str, str, str, str]]] = [
    ("three pods leave three large nodes for two small ones", three_large_nodes(), ("1.20", "0.40", "0.30", "0.225")),
    (
        "a pod without a controller holds its node, and the others find room beside it",
        three_large_nodes(placed("bare", "c", "100m", "128Mi", "")),
        ("1.20", "0.40", "0.40", "0.40"),
    ),
    (
        "a node that is not to be disrupted stays, and the others find room on it",
        three_large_nodes(
            {
                **(calm := machine("calm", "large", "4", "8Gi")),
                "metadata": {**calm["metadata"], "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            }
        ),
        ("1.60", "0.40", "0.40", "0.40"),
    ),
    (
        "a budget that lets none go holds all three nodes",
        three_large_nodes(
            named("PodDisruptionBudget", "none", spec={"selector": {}}, status={"disruptionsAllowed": 0})
        ),
        ("1.20", "1.20", "1.20", "1.20"),
    ),
    (
        "DaemonSet pods are part of every machine: with half a core each, a small one holds one pod and a large one three",
        three_large_nodes(*(placed(f"log-{n}", n, "500m", "128Mi", "DaemonSet/log") for n in ("a", "b", "c"))),
        ("1.20", "0.40", "0.40", "0.30"),
    ),
    (
        "pods that keep each other away from their nodes need a machine each, and the bound says so",
        three_large_nodes(*(apart(f"db-{n}", n, "250m", "128Mi") for n in ("a", "b", "c"))),
        ("1.20", "1.20", "0.45", "0.45"),
    ),
    (
        "a control plane stays, is paid for, and takes no work",
        three_large_nodes(control_plane("m")),
        ("1.35", "0.55", "0.45", "0.375"),
    ),
    (
        "a node of a type without a price counts nothing, and takes nobody's work",
        three_large_nodes(machine("gift", "unheard-of", "64", "256Gi")),
        ("1.20", "0.40", "0.30", "0.225"),
    ),
    (
        "a pod that only its own node may run leaves that node where it is",
        three_large_nodes(
            {
                **(tied := placed("tied", "a", "100m", "128Mi")),
                "spec": {**tied["spec"], "nodeSelector": {"kubernetes.io/hostname": "a"}},
            }
        ),
        ("1.20", "0.40", "0.40", "0.40"),
    ),
    (
        "a pending service counts where there is room, and pods that are ending do not",
        three_large_nodes(
            {**(late := placed("late", "a", "1", "2Gi")), "metadata": {**late["metadata"], "deletionTimestamp": "2026-01-05T08:00:04Z"}},
            {**(new := placed("new", "a", "1", "2Gi")), "spec": {**new["spec"], "nodeName": ""}, "status": {"phase": "Pending"}},
        ),
        ("1.20", "0.40", "0.30", "0.30"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "expected"), [case[1:] for case in SMALL_CLUSTERS], ids=[c[0] for c in SMALL_CLUSTERS]
)
def test_the_costs_of_small_clusters_are_those_worked_out_by_hand(
    prices: Path, objects: list[dict[str, Any]], expected: tuple[str, str, str, str]
) -> None:
    assert costs(answer_for(prices, objects)) == expected


def test_the_edge_stays_as_it_is_and_is_paid_for(prices: Path) -> None:
    """Its pods follow their targets, and its room is no saving: the three in the cloud come to what they did alone."""
    shop = machine("shop", "large", "4", "8Gi")
    shop["metadata"]["labels"][TIER_LABEL] = "edge"
    objects = three_large_nodes(shop, placed("near", "shop", "1", "2Gi"))
    assert costs(answer_for(prices, objects)) == ("1.60", "0.80", "0.70", "0.625")
    held = {node["node"]: node["message"] for node in answer_for(prices, objects)["nodesHeld"]}
    assert held == {"shop": "it is on the edge, where HTAS launches and deletes nothing"}


def test_no_saving_is_claimed_below_the_bound_or_above_now(prices: Path) -> None:
    prices.write_text(PRICES.read_text())
    now, packed, consolidated, bound = (Decimal(price) for price in costs(answer_for(prices, a_shop())))
    assert now >= packed >= consolidated >= bound > 0


def test_a_flavour_is_worth_what_the_mix_costs_more_without_it(prices: Path) -> None:
    small, large = answer_for(prices, three_large_nodes())["flavours"]
    assert (small["flavour"], small["inMix"], small["mixWithoutItPerHour"]) == ("small", 2, "0.40")
    assert (small["worthPerHour"], small["worthPerMonth"]) == ("0.10", "73.00")
    assert (large["flavour"], large["inMix"], large["worthPerHour"]) == ("large", 0, "0.00")


def test_the_best_few_flavours_end_where_another_one_saves_nothing(prices: Path) -> None:
    assert [(few["flavours"], few["pricePerHour"]) for few in answer_for(prices, three_large_nodes())["bestFew"]] == [
        (["small"], "0.30")
    ]
    # A pod of 3.5 cores fits a large one alone, the other two share a small one: 0.40 + 0.15.
    work = [machine("a", "large", "4", "8Gi"), machine("b", "large", "4", "8Gi"), machine("c", "large", "4", "8Gi")]
    work += [placed("wide", "a", "3500m", "2Gi"), placed("one", "b", "1", "2Gi"), placed("two", "c", "1", "2Gi")]
    few = answer_for(prices, work)["bestFew"]
    assert [(each["flavours"], each["pricePerHour"], each["nodesOfTodayLeft"]) for each in few] == [
        (["small"], "0.55", 1)
    ], "with small ones alone the wide pod's node stays, which is what a large one costs"


def test_a_rule_costs_what_its_end_would_save(prices: Path) -> None:
    answer = answer_for(prices, three_large_nodes(placed("bare", "c", "100m", "128Mi", "")))
    rule = next(rule for rule in answer["rules"] if rule["rule"] == "NotReplicated")
    assert (rule["pods"], rule["nodes"]) == (1, 1)
    assert (rule["liftedPackingSavesPerHour"], rule["liftedBuyingAnewSavesPerHour"]) == ("0.00", "0.10")
    assert answer["nodesHeld"] == [
        {
            "node": "c",
            "flavour": "large",
            "pricePerHour": "0.40",
            "rule": "NotReplicated",
            "pods": ["default/bare"],
            "podsPinned": [],
            "message": "default/bare has no controller",
        }
    ]


def test_services_move_only_if_they_opted_in_where_that_is_asked_for(prices: Path) -> None:
    assert costs(answer_for(prices, three_large_nodes(), "--as-annotated"))[:3] == ("1.20", "1.20", "1.20")
    assert answer_for(prices, three_large_nodes())["servicesTakenToBeMovable"] == 3


def test_a_pool_is_bought_anew_with_the_labels_and_taints_its_nodes_share(prices: Path) -> None:
    taint = [{"key": "pool", "value": "gold", "effect": "NoSchedule"}]
    nodes = [machine(name, "large", "4", "8Gi", **{"example.com/pool": "gold"}) for name in ("a", "b")]
    nodes += [machine(name, "small", "2", "4Gi", **{"example.com/pool": "tin"}) for name in ("s", "t")]
    pods = [placed(f"gold-{name}", name, "1", "2Gi") for name in ("a", "b")]
    for node in nodes[:2]:
        node["spec"]["taints"] = taint
    for pod in pods:
        pod["spec"] |= {
            "nodeSelector": {"example.com/pool": "gold"},
            "tolerations": [{"key": "pool", "operator": "Exists"}],
        }
    answer = answer_for(prices, [*nodes, *pods, placed("tin", "s", "1500m", "1Gi")])
    assert answer["consolidated"]["flavours"] == {"large": 1, "small": 1}, (
        "gold pods fit no small machine, the tin no large"
    )


def test_a_volume_keeps_its_pod_in_its_zone(prices: Path) -> None:
    nodes = [machine("a", "large", "4", "8Gi", "z1"), machine("b", "large", "4", "8Gi", "z2")]
    pods = [placed(f"db-{name}", name, "1", "2Gi") for name in ("a", "b")]
    for pod, zone in zip(pods, ("z1", "z2"), strict=True):
        pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"data-{zone}"}}]
    answer = answer_for(prices, [*nodes, *pods, *volume("z1"), *volume("z2")])
    assert costs(answer)[1:3] == ("0.80", "0.30"), (
        "packed into one zone neither fits; anew there is a small one in each"
    )


EBS_ZONE = "topology.ebs.csi.aws.com/zone"


@pytest.mark.parametrize("has_csi_nodes", [True, False], ids=["CSINodes tell it", "a dump without CSINodes"])
def test_a_driver_s_zones_are_learned_from_nodes_that_are_then_taken_away(prices: Path, has_csi_nodes: bool) -> None:
    """A machine bought anew reaches the volumes of its zone, whatever the driver calls zones."""
    zones = {"a": "z1", "b": "z2"}
    objects = [machine(name, "large", "4", "8Gi", zone, **{EBS_ZONE: zone}) for name, zone in zones.items()]
    for name, zone in zones.items():
        db = placed(f"db-{name}", name, "1", "2Gi")
        db["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"data-{zone}"}}]
        objects += [db, *volume(zone, EBS_ZONE)]
        if has_csi_nodes:
            driver = {"name": "ebs.csi.aws.com", "nodeID": name, "topologyKeys": [EBS_ZONE]}
            objects.append(named("CSINode", name, spec={"drivers": [driver]}))
    answer = answer_for(prices, objects)
    assert costs(answer) == ("0.80", "0.80", "0.30", "0.30")
    assert answer["nodesHeld"] == []


def test_more_freedom_never_costs_more(prices: Path) -> None:
    """Purchases and packing are heuristics: what they find with less freedom counts with more of it, too."""
    prices.write_text(PRICES.read_text())
    answer = answer_for(prices, [*a_shop(), *(placed(f"bare-{i}", "large-0", "100m", "64Mi", "") for i in range(2))])
    held = [Decimal(answer[stage]["pricePerHour"]) for stage in ("packed", "boughtAnew")]
    free, free_packed = (Decimal(answer[stage]["pricePerHour"]) for stage in ("nothingHeld", "nothingHeldPacked"))
    assert free <= min(free_packed, *held)
    assert free_packed <= held[0]
    saved = [
        Decimal(each[key])
        for each in (*answer["rules"], *answer["ruleSets"])
        for key in ("liftedPackingSavesPerHour", "liftedBuyingAnewSavesPerHour")
    ]
    assert min(saved) >= 0
    assert all(Decimal(each["worthPerHour"]) >= 0 for each in answer["flavours"])
    best = min(Decimal(each["pricePerHour"]) for each in answer["bestFew"])
    assert max(Decimal(each["mixWithoutItPerHour"]) for each in answer["flavours"]) >= best >= free


def volume(zone: str, key: str = ZONE) -> list[dict[str, Any]]:
    where = {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [zone]}]}]}
    return [
        named(
            "PersistentVolume", f"pv-{zone}", spec={"nodeAffinity": {"required": where}, "csi": {"driver": "cinder"}}
        ),
        named(
            "PersistentVolumeClaim", f"data-{zone}", spec={"volumeName": f"pv-{zone}", "accessModes": ["ReadWriteOnce"]}
        ),
    ]


def test_types_without_a_price_are_named(prices: Path) -> None:
    answer = answer_for(prices, three_large_nodes(machine("gift", "unheard-of", "64", "256Gi")))
    assert answer["nodesWithoutPrice"] == {"unheard-of": 1}
    shown = table_of(prices, three_large_nodes(machine("gift", "unheard-of", "64", "256Gi")), 160)
    assert "Without a price: 1 node, unheard-of (1)." in shown


def table_of(prices: Path, objects: list[dict[str, Any]], width: int) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(simulation_view(simulate(dumped(prices.parent, objects), prices, None, None, False), width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_fits_its_window_and_has_every_figure(prices: Path, width: int) -> None:
    prices.write_text(PRICES.read_text())
    shown = table_of(prices, a_shop(), width)
    assert max(len(line) for line in shown.splitlines()) <= width
    answer = answer_for(prices, a_shop())
    for figure in costs(answer):
        assert figure in shown
    for word in ("after packing", "lower bound", "NotReplicated", "If you offered only", "m3.small"):
        assert word in shown


def test_batch_work_is_launched_for_at_once(prices: Path) -> None:
    """It waited for more to be launched for with it, and was taken for work that fits nowhere."""
    jobs = three_large_nodes()
    for job in jobs[3:]:
        job["metadata"]["ownerReferences"][0]["kind"] = "Job"
        job["metadata"]["annotations"] = {"htas.io/runtime": "3h"}
    answer = answer_for(prices, jobs)
    assert costs(answer) == ("1.20", "0.40", "0.30", "0.225")
    assert answer["nodesHeld"] == []


def test_the_order_of_a_dump_does_not_matter(prices: Path) -> None:
    prices.write_text(PRICES.read_text())
    objects = a_shop()
    first = answer_for(prices, objects)
    random.Random(8).shuffle(objects)
    assert answer_for(prices, objects) == first


def test_csv_and_yaml_say_the_same_as_json(prices: Path) -> None:
    dump = dumped(prices.parent, three_large_nodes())
    rows = list(csv.DictReader(io.StringIO(htas_says("--from", dump, "--flavours", prices, "-o", "csv").stdout)))
    stages = {row["name"]: row["price_per_hour"] for row in rows if row["section"] == "stage"}
    assert stages == {
        "now": "1.20", "packed": "0.40", "consolidated": "0.30", "bought-anew": "0.30", "nothing-held": "0.30", "nothing-held-packed": "0.40",
        "lower-bound": "0.225",
    }  # fmt: skip
    said = yaml.safe_load(htas_says("--from", dump, "--flavours", prices, "-o", "yaml").stdout)
    assert said == answer_for(prices, three_large_nodes())


def test_a_configuration_brings_its_groups_and_limits(prices: Path) -> None:
    config = prices.parent / "htas.yaml"
    config.write_text(CONFIG.format(prices=prices))
    dump = dumped(prices.parent, three_large_nodes())
    result = htas_says("--from", dump, "--config", config, "-o", "json")
    assert result.exit_code == 0, result.stderr
    assert costs(json.loads(result.stdout))[:3] == ("1.20", "0.40", "0.40"), "its group may buy no small machines"


CONFIG = """
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: demo
flavours: {prices}
provider: {{sandbox: {{workload: day, speed: 600}}}}
nodeGroups: [{{name: services, flavours: [large]}}]
"""


def test_what_cannot_be_answered_is_said_with_what_to_do(prices: Path) -> None:
    dump = dumped(prices.parent, [machine("gift", "unheard-of", "64", "256Gi"), placed("web", "gift", "1", "1Gi")])
    told = htas_says("--from", dump, "--flavours", prices)
    assert (told.exit_code, told.stdout) == (2, "")
    assert "the nodes are unheard-of (1 node), the price file has small, large; name its types" in told.stderr
    told = htas_says("--from", dump, "--flavours", prices.parent / "none.yaml")
    assert told.exit_code == 2
    assert "none.yaml" in told.stderr
    with chdir(prices.parent):  # where no configuration lies about
        told = htas_says("--from", dump)
    assert told.exit_code == 2
    assert "--flavours: name a price file, or a configuration that has one (--config)" in told.stderr
    config, other = prices.parent / "htas.yaml", prices.parent / "other.yaml"
    config.write_text(CONFIG.format(prices=prices))
    other.write_text(TWO_FLAVOURS.replace("large", "huge"))
    told = htas_says("--from", dump, "--flavours", other, "--config", config)
    assert told.exit_code == 2
    assert "--flavours: no node group of" in told.stderr
    dump.write_text('{"kind": "List", "items": [')
    told = htas_says("--from", dump, "--flavours", prices)
    assert told.exit_code == 2
    assert "dump.json:1:" in told.stderr
