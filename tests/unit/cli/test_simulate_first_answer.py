"""`htas simulate` on clusters with what other clusters have, too: annotated nodes, spot and GPU pools, empty nodes. Each
case was met by somebody who tried it on clusters of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.clusters import TWO_FLAVOURS, machine, placed, three_large_nodes
from tests.unit.cli.dump import named
from tests.unit.cli.test_simulate import answer_for, table_of, volume


def empty(*names: str, **annotations: str) -> list[dict[str, Any]]:
    nodes = [machine(name, "small", "2", "4Gi") for name in names]
    for node in nodes:
        node["metadata"]["annotations"] = annotations
    return nodes


def full(*names: str) -> list[dict[str, Any]]:
    """Large nodes with a service that fills them: nothing of theirs can go anywhere else for less."""
    nodes = [machine(name, "large", "4", "8Gi") for name in names]
    return [*nodes, *(placed(f"web-{name}", name, "4", "8Gi") for name in names)]


def test_three_empty_nodes_ask_nothing_of_anybody(prices: Path) -> None:
    """They are not replaced by anything either: whoever bought them gives them back."""
    answer = answer_for(prices, [*full("a"), *empty("x", "y", "z")])
    assert (answer["packed"]["savesPerHour"], answer["servicesTakenToBeMovable"]) == ("0.45", 1)
    assert answer["servicesToAnnotate"] == []
    assert answer["presumes"] == [
        "3 nodes that are empty are deleted by hand: HTAS deletes only what it launched (x, y, z)"
    ]
    assert (answer["nodesEmptied"], answer["nodesEmptyToday"]) == ([], ["x", "y", "z"])


def test_only_the_pods_that_the_saving_moves_are_to_be_annotated(prices: Path) -> None:
    """The service that fills its node stays where it is; of the three others two move to the third."""
    prices.write_text(TWO_FLAVOURS.replace("0.15", "0.39"))
    answer = answer_for(prices, [*full("f"), *three_large_nodes()])
    assert (answer["packed"]["podsMoved"], answer["servicesTakenToBeMovable"]) == (2, 4)
    assert len(answer["servicesToAnnotate"]) == 2
    [annotated] = [each for each in answer["presumes"] if "annotated" in each]
    assert annotated.startswith("2 pods of services that move are annotated htas.io/migrate")


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("htas.io/do-not-disrupt", "DoNotDisrupt"),
        ("karpenter.sh/do-not-disrupt", "DoNotDisrupt"),
        ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "ScaleDownDisabledAnnotation"),
    ],
)
def test_an_annotation_of_an_empty_node_costs_what_the_node_does(prices: Path, key: str, rule: str) -> None:
    objects = [*full("a"), *empty("idle", **{key: "true"})]
    answer = answer_for(prices, objects)
    cost = next(each for each in answer["rules"] if each["rule"] == rule)
    assert (cost["pods"], cost["nodes"]) == (0, 1)
    assert (cost["savesMorePerHour"], cost["pricePerHour"]) == ("0.15", "0.40")
    assert cost["remedy"] == f"kubectl annotate node NODE {key}-"
    [held] = answer["nodesHeld"]
    assert (held["node"], held["rule"], held["pods"], held["message"]) == ("idle", rule, [], f"annotated {key}=true")
    assert f"With {rule} lifted (see below) it would save 0.1500 EUR/h" in table_of(prices, objects, 160)


def test_annotations_of_nodes_are_in_the_sets_of_rules(prices: Path) -> None:
    """Its pod has no controller and the node is annotated: only both together free it."""
    calm = empty("calm", **{"karpenter.sh/do-not-disrupt": "true"})
    beside = [machine("b", "large", "4", "8Gi"), placed("web-b", "b", "3", "6Gi")]
    answer = answer_for(prices, [*full("a"), *beside, *calm, placed("bare", "calm", "100m", "128Mi", "")])
    [both] = answer["ruleSets"]
    assert (both["rules"], both["pods"], both["nodes"]) == (["DoNotDisrupt", "NotReplicated"], 1, 1)
    assert both["savesMorePerHour"] == "0.15", "its pod finds room beside web-b"
    [held] = answer["nodesHeld"]
    assert held["rule"] == "DoNotDisrupt NotReplicated"


def test_no_set_of_rules_has_one_too_many(prices: Path) -> None:
    """Node c is held by three rules, and frees nothing for whoever lifts two: b alone would be as cheap with one."""
    dns = placed("dns", "b", "100m", "128Mi", namespace="kube-system")
    cache = placed("cache", "c", "4", "8Gi", "")
    cache["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    log = placed("log", "b", "100m", "128Mi", "")
    answer = answer_for(prices, three_large_nodes(dns, cache, log))
    costs = {tuple(each["rules"]): each["savesMorePerHour"] for each in answer["ruleSets"]}
    alone = {(each["rule"],): each["savesMorePerHour"] for each in answer["rules"]}
    for rules, saves in costs.items():
        for rule in rules:
            less = tuple(each for each in rules if each != rule)
            assert {**costs, **alone}.get(less, "0.00") < saves, (less, rules)


def spot(name: str, flavour: str, cpu: str, memory: str) -> dict[str, Any]:
    made = machine(name, flavour, cpu, memory)
    made["spec"]["taints"] = [{"key": "spot", "value": "true", "effect": "NoSchedule"}]
    return made


WITH_SPOT = """
apiVersion: htas.io/v1alpha1
kind: HTASConfiguration
cluster: demo
flavours: {prices}
provider: {{sandbox: {{workload: day, speed: 600}}}}
nodeGroups:
  - {{name: all, flavours: [small, large]}}
  - {{name: spot, flavours: ["*-spot"], taints: [{{key: spot, value: "true", effect: NoSchedule}}]}}
"""
SPOT_PRICES = """
currency: EUR
flavours:
  - {name: a-spot, cpu: 4, memory: 8Gi, pricePerHour: "0.10"}
  - {name: small, cpu: 2, memory: 4Gi, pricePerHour: "0.15"}
  - {name: large, cpu: 4, memory: 8Gi, pricePerHour: "0.40"}
"""


def test_a_spot_flavour_that_no_pod_tolerates_is_no_choice_and_makes_none_superfluous(prices: Path) -> None:
    prices.write_text(SPOT_PRICES)
    config = prices.parent / "htas.yaml"
    config.write_text(WITH_SPOT.format(prices=prices))
    answer = answer_for(prices, three_large_nodes(), "--config", config)
    assert [each["flavours"] for each in answer["bestFew"]] == [["small"]]
    assert {each["flavour"]: each["dominatedBy"] for each in answer["flavours"]} == {
        "a-spot": None,
        "small": None,
        "large": None,
    }


def test_a_spot_flavour_that_all_tolerate_is_the_choice(prices: Path) -> None:
    prices.write_text(SPOT_PRICES)
    config = prices.parent / "htas.yaml"
    config.write_text(WITH_SPOT.format(prices=prices))
    objects = three_large_nodes()
    for pod in objects[3:]:
        pod["spec"]["tolerations"] = [{"key": "spot", "operator": "Exists"}]
    assert [each["flavours"] for each in answer_for(prices, objects, "--config", config)["bestFew"]] == [["a-spot"]]


GPU = "nvidia.com/gpu"
GPU_PRICES = """
currency: CHF
flavours:
  - {name: small, cpu: 2, memory: 4Gi, pricePerHour: "0.15"}
  - {name: g1, cpu: 4, memory: 8Gi, extended: {nvidia.com/gpu: 1}, pricePerHour: "1.00"}
  - {name: g1b, cpu: 4, memory: 8Gi, extended: {nvidia.com/gpu: 1}, pricePerHour: "0.12"}
"""


def gpu_node(name: str, flavour: str = "g1") -> dict[str, Any]:
    made = machine(name, flavour, "4", "8Gi")
    made["status"]["allocatable"][GPU] = "1"
    made["spec"]["taints"] = [{"key": GPU, "value": "present", "effect": "NoSchedule"}]
    return made


def test_a_gpu_flavour_that_no_node_shows_is_taken_to_bear_the_taint_of_all_that_have_one(prices: Path) -> None:
    """g1b would be the cheapest for a pod without a GPU, were it as open as the price file leaves it."""
    prices.write_text(GPU_PRICES)
    train = placed("train", "g", "1", "1Gi")
    train["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
    train["spec"]["tolerations"] = [{"key": GPU, "operator": "Exists"}]
    objects = [gpu_node("g"), machine("s", "small", "2", "4Gi"), placed("web", "s", "1", "1Gi"), train]
    answer = answer_for(prices, objects)
    assert answer["consolidated"]["flavours"] == {"g1b": 1, "small": 1}
    assert answer["flavoursTakenToBeTainted"] == {"g1b": [f"{GPU}=present:NoSchedule"]}
    shown = " ".join(table_of(prices, objects, 160).split())
    assert f"g1b is taken to bear the taint {GPU}=present:NoSchedule, as all nodes with such devices do" in shown


def test_the_threshold_that_would_suffice_is_named(prices: Path) -> None:
    """Of nodes that are used by 60, 55 and 57.5 % the second is emptied into the others: 50 % is told to be too low."""
    prices.write_text(TWO_FLAVOURS.replace('"0.15"', '"0.39"'))
    nodes = [machine("a", "large", "4", "8Gi"), machine("b", "large", "4", "8Gi")]
    busy = [
        placed("web-a", "a", "2400m", "1Gi"),
        placed("web-b", "b", "1600m", "1Gi"),
        placed("db", "b", "600m", "1Gi"),
    ]
    nodes.append(machine("c", "large", "4", "8Gi"))
    busy.append(placed("c", "c", "2300m", "1Gi"))
    answer = answer_for(prices, [*nodes, *busy])
    remedies = {each["rule"]: each["remedy"] for each in answer["rules"]}
    assert remedies["UtilizationThreshold"] == "raise cleaning.utilizationThreshold from 0.5 to 0.55"


def test_zones_of_volumes_are_a_proviso_for_flavours_that_name_none(prices: Path) -> None:
    objects = three_large_nodes(*volume("z1"))
    objects[3]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data-z1"}}]
    told = "flavours without zones (small) are sold in every zone there is: give them `zones: [z1]`"
    assert told in answer_for(prices, objects)["presumes"]


def test_a_claim_of_a_pod_that_waits_is_not_asked_for(prices: Path) -> None:
    waiting = placed("late", "a", "1", "2Gi")
    waiting["spec"] |= {"nodeName": "", "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}
    waiting["status"] = {"phase": "Pending"}
    replicas = named("ReplicaSet", "web", spec={"replicas": 3})
    found = answer_for(prices, three_large_nodes(waiting, replicas))
    assert [gap["kubectlGet"] for gap in found["assumed"] if "namespace" not in gap["lacks"]] == [["pdb"]]


def test_half_a_dump_is_doubted_before_any_figure(prices: Path) -> None:
    """`-A` was forgotten: four nodes, most of their price saved, and nothing was said of it."""
    answer = table_of(prices, [*three_large_nodes(), machine("d", "large", "4", "8Gi")], 300)
    lines = answer.splitlines()
    assert lines[1] == "Do not trust these figures: the dump has the pods of one namespace only (default)"
    assert lines.index("If the dump were complete:") < next(i for i, line in enumerate(lines) if "would save" in line)
    assert "Was -A forgotten?" in answer
    assert "  Write it again: kubectl get nodes,pods," in answer


def test_nodes_without_a_price_are_in_the_first_line(prices: Path) -> None:
    shown = table_of(prices, three_large_nodes(machine("gift", "unheard-of", "64", "256Gi")), 160)
    assert shown.startswith("4 nodes (1 without a price), 3 pods,")


def test_flavours_that_nothing_is_bought_of_are_named_and_make_no_table(prices: Path) -> None:
    shown = table_of(prices, three_large_nodes(), 160)
    assert "Not in the mix: large\n" in shown
    assert "What each flavour saves" not in table_of(prices, empty("a", "b") + full()[:0] + [
        placed("log", "a", "100m", "128Mi", "DaemonSet/log")
    ], 160)  # fmt: skip


def test_savings_of_rules_have_one_base(prices: Path) -> None:
    """Held nodes alone, packed for 0.80: what rules save is against the cheaper way, as `after consolidation` is."""
    budget = named("PodDisruptionBudget", "none", spec={"selector": {}}, status={"disruptionsAllowed": 0})
    answer = answer_for(prices, three_large_nodes(budget))
    [cost] = [each for each in answer["rules"] if each["rule"] == "NotEnoughPdb"]
    assert (cost["pricePerHour"], cost["savesMorePerHour"], cost["savesMorePerMonth"]) == ("0.30", "0.90", "657.00")
    shown = table_of(prices, three_large_nodes(budget), 160)
    [as_is] = [line.split() for line in shown.splitlines() if line.startswith("none lifted")]
    [row] = [line.split() for line in shown.splitlines() if line.startswith("NotEnoughPdb ")]
    assert (as_is[2:], row[3:6]) == (["1.2000", "1.2000"], ["0.4000", "0.3000", "657.00"])


def test_the_bound_prices_work_on_flavours_that_take_it(prices: Path) -> None:
    """A GPU pod and a plain one: 1.00 for the machine with the GPU, 0.15 for another; no core at a GPU's taint is worth
    anything to the plain one, and half a small machine is a whole one.
    """
    prices.write_text(GPU_PRICES.replace('"0.12"', '"1.20"'))
    train = placed("train", "g", "1", "1Gi")
    train["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
    train["spec"]["tolerations"] = [{"key": GPU, "operator": "Exists"}]
    train["spec"]["nodeSelector"] = {"accelerator": "yes"}
    nodes = [gpu_node("g"), gpu_node("h"), machine("s", "small", "2", "4Gi")]
    for node in nodes[:2]:
        node["metadata"]["labels"]["accelerator"] = "yes"
    answer = answer_for(prices, [*nodes, placed("web", "s", "1", "1Gi"), train])
    assert (answer["consolidated"]["pricePerHour"], answer["lowerBoundPerHour"]) == ("1.15", "1.15")


def test_the_bound_counts_zones_of_volumes(prices: Path) -> None:
    """Each of two databases needs a machine of its zone, though half a machine would hold both."""
    prices.write_text(TWO_FLAVOURS.replace('"0.15"', '"0.15", zones: [z1]').replace('"0.40"', '"0.40", zones: [z2]'))
    nodes = [machine("a", "small", "2", "4Gi", "z1"), machine("b", "large", "4", "8Gi", "z2")]
    pods = [placed(f"db-{name}", name, "500m", "1Gi") for name in ("a", "b")]
    for pod, zone in zip(pods, ("z1", "z2"), strict=True):
        pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"data-{zone}"}}]
    answer = answer_for(prices, [*nodes, *pods, *volume("z1"), *volume("z2")])
    assert answer["lowerBoundPerHour"] == "0.55"


def test_disks_that_the_price_file_does_not_state_are_told(prices: Path) -> None:
    """No small machine was ever bought for pods that ask for ephemeral-storage, and nobody was told why."""
    objects = three_large_nodes()
    for item in objects:
        if item["kind"] == "Node":
            item["status"]["allocatable"]["ephemeral-storage"] = "40Gi"
        else:
            item["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "1Gi"
    told = (
        "3 pods request ephemeral-storage, and small has no `ephemeralStorage` in the price file, nor a node that shows"
    )
    assert told in table_of(prices, objects, 300)
    assert answer_for(prices, objects)["flavoursWithoutEphemeralStorage"] == ["small"]
    prices.write_text(TWO_FLAVOURS.replace("4Gi", "4Gi, ephemeralStorage: 20Gi"))
    assert answer_for(prices, objects)["consolidated"]["flavours"] == {"small": 2}
    assert answer_for(prices, objects)["flavoursWithoutEphemeralStorage"] == []


def of_a_pool(**selector: str) -> list[dict[str, Any]]:
    objects = three_large_nodes()
    for item in objects:
        if item["kind"] == "Node":
            item["metadata"]["labels"]["pool"] = "db"
        else:
            item["spec"]["nodeSelector"] = selector
    return objects


LENT = "small, without nodes so far, registers with pool=db as all nodes of today do"


def test_labels_that_only_todays_nodes_bear_are_a_proviso(prices: Path) -> None:
    """28 % were saved by machines that no database would have been let onto."""
    [told] = [each for each in answer_for(prices, of_a_pool(pool="db"))["presumes"] if "registers" in each]
    assert told == f"{LENT}, because pods select by it: nodeGroups[].labels must add it"


def test_labels_that_are_written_or_not_asked_for_are_no_proviso(prices: Path) -> None:
    assert not any("registers" in each for each in answer_for(prices, of_a_pool())["presumes"])
    prices.write_text(TWO_FLAVOURS.replace("4Gi", "4Gi, labels: {pool: db}"))
    assert not any("registers" in each for each in answer_for(prices, of_a_pool(pool="db"))["presumes"])


def claiming(claim: str) -> dict[str, Any]:
    """A pod on node a with a volume."""
    made = placed("db", "a", "0", "0")
    made["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]
    return made


WHOLE = [*full("a"), named("ReplicaSet", "web", spec={"replicas": 1})]


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        pytest.param(WHOLE, "HTAS finds nothing to save", id="all is there, and nothing is cheaper"),
        pytest.param(full("a"), "No saving is found, but the facts are incomplete", id="a ReplicaSet is missing"),
        pytest.param(
            [*WHOLE, claiming("x")], "No saving is found, but the facts are incomplete", id="a claim is missing"
        ),
        pytest.param(
            [*WHOLE, *volume("az-2"), claiming("data-az-2")],
            "Do not trust these figures: volumes contradict the nodes of 1 pod: default/db runs on a",
            id="a volume contradicts the node of its pod",
        ),
    ],
)
def test_nothing_to_save_is_said_where_all_is_known_alone(
    prices: Path, objects: list[dict[str, Any]], says: str
) -> None:
    prices.write_text(TWO_FLAVOURS.replace("0.15", "0.39"))
    shown = table_of(prices, objects, 160)
    assert says in shown
    assert ("finds nothing to save" in shown) == says.startswith("HTAS finds")
