"""`htas simulate` on what holds nodes in clusters as they are: pinned pods, agents of operators, groups, run-to-end work."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from htas.cli.tables import listed
from tests.unit.cli.clusters import TWO_FLAVOURS, machine, placed, three_large_nodes
from tests.unit.cli.dump import named
from tests.unit.cli.test_simulate import answer_for, htas_says, table_of

HOSTNAME = "kubernetes.io/hostname"
Change = Callable[[dict[str, Any]], None]


def by_selector(pod: dict[str, Any]) -> None:
    pod["spec"]["nodeSelector"] = {HOSTNAME: pod["spec"]["nodeName"]}


def by_affinity(pod: dict[str, Any]) -> None:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [pod["spec"]["nodeName"]]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}


def by_volume(pod: dict[str, Any]) -> None:
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]


def data_on(node: str) -> list[dict[str, Any]]:
    """A volume as local-path makes them: a directory of its node."""
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    where = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}, "hostPath": {"path": "/data"}}
    claim = {"volumeName": "pv", "accessModes": ["ReadWriteOnce"]}
    return [named("PersistentVolume", "pv", spec=where), named("PersistentVolumeClaim", "data", spec=claim)]


@pytest.mark.parametrize(
    ("tie", "by"),
    [
        pytest.param(by_selector, "nodeSelector", id="an OSD that selects its node"),
        pytest.param(by_affinity, "node affinity", id="a shard with a required affinity to its node"),
        pytest.param(by_volume, "its volume data", id="a database whose volume is a directory of its node"),
    ],
)
def test_a_pod_that_names_its_node_is_told_to_hold_it(prices: Path, tie: Change, by: str) -> None:
    osd = placed("osd", "a", "100m", "128Mi", namespace="default")
    tie(osd)
    objects = three_large_nodes(osd, *data_on("a"))
    answer = answer_for(prices, objects)
    [held] = answer["nodesHeld"]
    assert (held["node"], held["rule"], held["podsPinned"]) == ("a", "PinnedToNode", ["default/osd"])
    assert held["message"] == f"default/osd is pinned to its node by hostname ({by})"
    [rule] = [each for each in answer["rules"] if each["rule"] == "PinnedToNode"]
    assert (rule["pods"], rule["nodes"], rule["liftedBuyingAnewSavesPerHour"]) == (1, 1, "0.10")
    assert "1 node is kept by pods pinned to it by hostname (default/osd)\n" in table_of(prices, objects, 160)


def test_a_pinned_pod_is_named_beside_the_other_rules_of_its_node(prices: Path) -> None:
    osd = placed("osd", "a", "100m", "128Mi", namespace="default")
    by_selector(osd)
    objects = three_large_nodes(osd, placed("bare", "a", "100m", "128Mi", ""))
    shown = " ".join(table_of(prices, objects, 160).split())
    assert "default/bare has no controller; also PinnedToNode (default/osd)" in shown
    assert "kept by pods pinned to it by hostname (default/osd), with other rules" in shown


def test_a_pod_that_names_two_nodes_holds_neither_against_packing(prices: Path) -> None:
    """It may move between them; only a machine bought anew is none of them."""
    shard = placed("shard", "a", "100m", "128Mi")
    by_affinity(shard)
    terms = shard["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] = ["a", "b"]
    answer = answer_for(prices, three_large_nodes(shard))
    assert answer["packed"]["nodes"] == 1
    [held] = answer["nodesHeld"]
    assert held["rule"] == "PinnedToNode"
    assert held["message"] == "default/shard may run on 2 nodes of today alone, which it names (node affinity)"


def test_a_pod_that_names_a_zone_is_not_pinned_to_a_node(prices: Path) -> None:
    zonal = placed("zonal", "a", "100m", "128Mi")
    zonal["spec"]["nodeSelector"] = {"topology.kubernetes.io/zone": "z1"}
    assert answer_for(prices, three_large_nodes(zonal))["nodesHeld"] == []


def agents(*nodes: str, label: str = "longhorn.io/node", owner: str = "InstanceManager") -> list[dict[str, Any]]:
    """A pod on each node, with a controller of its own, named after its node, and a budget that lets none go."""
    pods = []
    for node in nodes:
        pod = placed(f"manager-{node}", node, "500m", "128Mi", f"{owner}/manager-{node}", namespace="longhorn-system")
        pod["metadata"]["labels"] = {label: node, "app": f"manager-{node}"}
        budget = named("PodDisruptionBudget", f"manager-{node}")
        budget["metadata"]["namespace"] = "longhorn-system"
        budget |= {
            "spec": {"selector": {"matchLabels": {"app": f"manager-{node}"}}},
            "status": {"disruptionsAllowed": 0},
        }
        pods += [pod, budget]
    return pods


def test_agents_of_an_operator_come_with_their_node(prices: Path) -> None:
    """As DaemonSet pods of half a core: a small machine holds one pod of a core, a large one three."""
    objects = three_large_nodes(*agents("a", "b", "c"))
    answer = answer_for(prices, objects)
    assert (answer["packed"]["pricePerHour"], answer["consolidated"]["pricePerHour"]) == ("0.40", "0.40")
    assert answer["comeWithTheirNode"] == [{"namespace": "longhorn-system", "kind": "InstanceManager", "pods": 3}]
    assert (answer["nodesHeld"], answer["disruptionBudgets"]) == ([], [])
    shown = " ".join(table_of(prices, objects, 160).split())
    assert "3 pods of InstanceManager in longhorn-system, one on each of as many nodes, come with their node" in shown
    assert "NotEnoughPdb" not in shown


def second_of_an_owner(objects: list[dict[str, Any]]) -> None:
    for each in objects:
        for reference in each["metadata"].get("ownerReferences", ()):
            reference["name"] = "events"


def runs_to_an_end(objects: list[dict[str, Any]]) -> None:
    for each in objects:
        if each["kind"] == "Pod":
            each["spec"]["restartPolicy"] = "Never"


def names_no_node(objects: list[dict[str, Any]]) -> None:
    for each in objects:
        each["metadata"].get("labels", {}).pop("longhorn.io/node", None)


@pytest.mark.parametrize(
    ("objects", "change"),
    [
        pytest.param(agents("a", "b"), lambda _: None, id="on two nodes of three alone"),
        pytest.param(agents("a", "b", "c"), second_of_an_owner, id="replicas of one owner, such as Kafka's brokers"),
        pytest.param(agents("a", "b", "c"), runs_to_an_end, id="virtual machines or steps of a workflow"),
        pytest.param(agents("a", "b", "c"), names_no_node, id="pods that name no node"),
    ],
)
def test_other_work_of_custom_controllers_holds_its_node(
    prices: Path, objects: list[dict[str, Any]], change: Callable[[list[dict[str, Any]]], None]
) -> None:
    change(objects)
    answer = answer_for(prices, three_large_nodes(*objects))
    assert answer["comeWithTheirNode"] == []
    assert {held["rule"] for held in answer["nodesHeld"]} == {"UnknownController NotEnoughPdb"}


def test_a_job_of_another_group_holds_its_node_and_its_group_is_named(prices: Path) -> None:
    """Volcano's Job is no Job of Kubernetes: it may start the whole group again, or not at all."""
    workers = [placed(f"mpi-{node}", node, "1", "1Gi", "Job/mpi") for node in ("a", "b")]
    for worker in workers:
        worker["metadata"]["ownerReferences"][0]["apiVersion"] = "batch.volcano.sh/v1alpha1"
        worker["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "mpi-pg"}
        worker["spec"]["restartPolicy"] = "OnFailure"
    objects = three_large_nodes(*workers)
    answer = answer_for(prices, objects)
    assert {held["node"]: held["rule"] for held in answer["nodesHeld"]} == {
        "a": "UnknownController",
        "b": "UnknownController",
    }
    assert answer["podGroups"] == {"default/mpi-pg": 2}
    shown = " ".join(table_of(prices, objects, 160).split())
    assert (
        "is controlled by a Job.batch.volcano.sh, which HTAS does not know to start it again; it is of group" in shown
    )
    assert "2 pods of 1 group that is scheduled as one (default/mpi-pg): evicting one pod of a group" in shown


@pytest.mark.parametrize("goes_by_zones", [True, False], ids=["work that goes by zones", "work that does not"])
def test_flavours_without_zones_are_a_proviso_where_work_goes_by_them(prices: Path, goes_by_zones: bool) -> None:
    objects = three_large_nodes()
    for pod in objects[3:]:
        pod["spec"]["nodeSelector"] = {"topology.kubernetes.io/zone": "z1"} if goes_by_zones else {}
    told = "flavours without zones (small) are sold in every zone there is: give them `zones: [z1]`"
    assert (told in answer_for(prices, objects)["presumes"]) is goes_by_zones


def test_tables_show_brackets_of_messages_as_they_stand() -> None:
    """`zones: [a, b, c]` was shown as `zones: `."""
    console = Console(width=80, file=io.StringIO())
    shown = listed("", ("why",), [("give it `zones: [a, b, c]`",)])
    assert shown is not None
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    assert "give it `zones: [a, b, c]`" in console.file.getvalue()


def test_a_dump_that_may_just_have_no_budgets_is_not_said_to_lack_anything(prices: Path) -> None:
    replicas = named("ReplicaSet", "web", spec={"replicas": 3})
    shown = " ".join(table_of(prices, three_large_nodes(replicas), 160).split())
    assert "does not have everything" not in shown
    assert "The dump has no disruption budgets, or the cluster has none: there are none; any that there are" in shown
    assert "does not have everything" in table_of(prices, three_large_nodes(), 160)


ENDS = "it goes away by itself when its work is done, and frees the node"


@pytest.mark.parametrize(
    ("owner", "restarts", "began", "message", "remedy"),
    [
        pytest.param("", "Never", "2026-01-05T08:00:05Z", f"default/p has no controller; {ENDS}", "1 pod ends by itself and then frees its node: wait", id="a CI job of this minute"),
        pytest.param("", "Never", "2025-12-01T08:00:05Z", "default/p has no controller", "run them under a controller, such as a Deployment or a Job, or delete them", id="a shell that somebody left a month ago"),
        pytest.param("", "Always", "2026-01-05T08:00:05Z", "default/p has no controller", "run them under a controller, such as a Deployment or a Job, or delete them", id="a pod that runs on"),
        pytest.param("Workflow/w", "OnFailure", "2026-01-05T08:00:05Z", f"default/p is controlled by a Workflow, which HTAS does not know to start it again; {ENDS}", "1 pod ends by itself and then frees its node: wait", id="a step of a workflow"),
    ],
)  # fmt: skip
def test_work_that_ends_by_itself_is_not_to_be_deleted(
    prices: Path, owner: str, restarts: str, began: str, message: str, remedy: str
) -> None:
    pods = [placed("p", "a", "100m", "128Mi", owner, namespace="default")]
    for pod in pods:
        pod["spec"]["restartPolicy"] = restarts
        pod["status"]["startTime"] = began
    answer = answer_for(prices, three_large_nodes(*pods))
    [held] = answer["nodesHeld"]
    assert held["message"] == message
    rule = held["rule"].split()[0]
    assert next(each["remedy"] for each in answer["rules"] if each["rule"] == rule) == remedy


def test_an_executor_is_told_with_its_driver(prices: Path) -> None:
    executor = placed("a-exec", "a", "100m", "128Mi", "Pod/driver", namespace="default")
    driver = placed("driver", "b", "100m", "128Mi", "SparkApplication/pi", namespace="default")
    for pod in (executor, driver):
        pod["spec"]["restartPolicy"] = "Never"
    held = {
        each["node"]: each["message"] for each in answer_for(prices, three_large_nodes(executor, driver))["nodesHeld"]
    }
    assert f"; it works for pod driver of SparkApplication pi; {ENDS}" in held["a"]


def test_the_proviso_counts_the_nodes_that_are_given_back(prices: Path) -> None:
    """Of three nodes one is held, which has room for the work of all: the two others go, and nothing is bought."""
    answer = answer_for(prices, three_large_nodes(placed("bare", "c", "100m", "128Mi", "")))
    told = "2 nodes are drained and deleted by hand: HTAS deletes only what it launched (a, b)"
    assert told in answer["presumes"]
    assert (answer["nodesEmptied"], answer["nodesEmptyToday"]) == (["a", "b"], [])


def test_nodes_are_replaced_where_machines_are_bought(prices: Path) -> None:
    answer = answer_for(prices, three_large_nodes())
    told = "3 nodes are replaced, in time, by machines that HTAS launches: it deletes no others (a, b, c)"
    assert told in answer["presumes"]
    assert answer["nodesEmptied"] == ["a", "b", "c"]


def test_a_node_of_today_serves_where_one_like_it_would_be_bought(prices: Path) -> None:
    """The GPU pod fills its node, and only such a machine would hold it."""
    prices.write_text(
        TWO_FLAVOURS + '  - {name: gpu, cpu: 4, memory: 8Gi, pricePerHour: "2", extended: {nvidia.com/gpu: 1}}\n'
    )
    gpu = machine("g", "gpu", "4", "8Gi")
    gpu["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    train = placed("train", "g", "3900m", "7Gi")
    train["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    answer = answer_for(prices, three_large_nodes(gpu, train))
    assert answer["consolidated"]["flavours"] == {"gpu": 1, "small": 2}
    assert (answer["nodesEmptied"], answer["nodesHeld"]) == (["a", "b", "c"], [])
    assert "default/train" not in answer["servicesToAnnotate"]


def test_no_flavour_is_worth_more_than_packing_what_is_there_without_it(prices: Path) -> None:
    """Without large machines two small ones would be bought, for 0.78; but on one of the three nodes all has room."""
    prices.write_text(TWO_FLAVOURS.replace("0.15", "0.39"))
    answer = answer_for(prices, three_large_nodes())
    assert answer["nothingHeldPacked"]["pricePerHour"] == "0.40"
    assert {each["flavour"]: (each["mixWithoutItPerHour"], each["worthPerHour"]) for each in answer["flavours"]} == {
        "large": ("0.40", "0.00"),
        "small": ("0.40", "0.00"),
    }


def test_what_is_presumed_of_flavours_and_nodes_is_told(prices: Path) -> None:
    objects = three_large_nodes()
    objects[0]["status"]["allocatable"]["memory"] = "64Gi"
    answer = answer_for(prices, objects)
    assert answer["flavoursWithoutReserved"] == ["small"], "a node shows what large ones offer"
    [odd] = answer["nodesUnlikeTheirFlavour"]
    assert (odd["node"], odd["has"], odd["flavourHas"]) == ("a", "4 cores and 64Gi", "4 cores and 8Gi")
    shown = " ".join(table_of(prices, objects, 160).split())
    assert "1 node does not look like its flavour, whose price counts: a has 4 cores and 64Gi" in shown
    assert "small has no `reserved` in the price file" in shown


def test_nodes_without_a_price_are_told_with_their_size(prices: Path) -> None:
    gift = machine("gift", "unheard-of", "64", "256Gi")
    shown = " ".join(table_of(prices, three_large_nodes(gift), 160).split())
    assert "1 node has 64 cores and 256Gi, nearest is large (4 cores and 8Gi)" in shown


def test_the_bound_stands_beside_nothing_held(prices: Path) -> None:
    shown = table_of(prices, three_large_nodes(placed("bare", "c", "100m", "128Mi", "")), 160)
    [bound] = [line.split() for line in shown.splitlines() if line.startswith("no rules, lower bound")]
    assert bound[4] == "0.2325", "3.1 cores at 0.15 a 2 cores"


@pytest.mark.parametrize(
    ("text", "types", "told"),
    [
        pytest.param('error: the server doesn\'t have a resource type "x"', (), "an error of kubectl", id="kubectl's error"),
        pytest.param(json.dumps(placed("p", "a", "1", "1Gi")), ("--type", "a=small"), "has no nodes, so there is none that", id="pods alone"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_told_clearly(prices: Path, text: str, types: tuple[str, ...], told: str) -> None:
    dump = prices.parent / "odd.json"
    dump.write_text(text)
    said = htas_says("--from", dump, "--flavours", prices, *types)
    assert said.exit_code == 2
    assert told in said.stderr


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("InstanceManager", "HTAS does not know whether an InstanceManager starts an evicted pod again"),
        ("Cluster", "HTAS does not know whether a Cluster starts an evicted pod again"),
        ("StrimziPodSet", "Strimzi's operator starts evicted pods of Kafka again, one at a time where its Drain"),
    ],
)
def test_what_to_do_about_pods_of_a_custom_controller(prices: Path, kind: str, remedy: str) -> None:
    answer = answer_for(prices, three_large_nodes(placed("broker", "a", "100m", "128Mi", f"{kind}/x")))
    [rule] = [each for each in answer["rules"] if each["rule"] == "UnknownController"]
    assert rule["remedy"].startswith(remedy)


def test_what_is_folded_stands_under_the_text_of_its_bullet(prices: Path) -> None:
    shown = table_of(prices, three_large_nodes(placed("broker", "a", "100m", "128Mi", "Cluster/x")), 100)
    lines = shown.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("· UnknownController: "))
    assert len(lines[first]) <= 100
    assert lines[first + 1].startswith("  ")
