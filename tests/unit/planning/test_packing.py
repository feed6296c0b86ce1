"""The task packer: bundling, best fit, time bins, scores."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from htas.model.constraints import Constraints, SpreadConstraint
from htas.model.packing import Packing, PackingAlgorithm, Scoring, ScoringStrategy, ShapePoint
from htas.model.policy import Cycles, NodeGroup, Policy, Workload
from htas.model.resources import Resources
from htas.planning.place.queue import bundle
from htas.planning.place.scoring import node_scores, ratio_score
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    batch_group,
    labels_are,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    opened,
    owned_node,
    running,
)


def bound(result: object) -> dict[str, str]:
    return {bind.pod.removeprefix("default/"): bind.node for bind in result.bind}  # type: ignore[attr-defined]


def test_bundling_orders_by_priority_kind_and_size() -> None:
    pods = [
        make_job("short", 60),
        make_job("long", 600),
        make_pod("small", memory="1Gi"),
        make_pod("large", memory="2Gi"),
        make_pod("wide", cpu="2", memory="1Gi"),
        make_job("urgent", 60, priority=10),
    ]
    simulated = opened([make_node()], pods)
    order = [cls.example.name for cls in bundle(simulated.waiting, simulated.book)]
    assert order == ["urgent", "large", "wide", "small", "long", "short"]


def test_best_fit_takes_the_fullest_node_memory_before_cpu() -> None:
    nodes = [make_node("more-cpu", "2", "4Gi"), make_node("less-memory", "4", "3Gi"), make_node("roomy", "8", "8Gi")]
    result = plan(make_snapshot(nodes, [make_pod("p", "1", "1Gi")]), make_policy(), NOW)
    assert bound(result) == {"p": "less-memory"}


def test_decreasing_sizes_leave_no_gap() -> None:
    """First fit in order of arrival would put 1 + 1 on the first node and strand the 3."""
    nodes = [make_node("a", "4", "4Gi"), make_node("b", "4", "4Gi")]
    pods = [make_pod(f"p{i}", "100m", memory) for i, memory in enumerate(["1Gi", "1Gi", "3Gi", "3Gi"])]
    result = plan(make_snapshot(nodes, pods), make_policy(), NOW)
    assert len(result.bind) == 4


BINS = [
    pytest.param(130, "own", id="own bin first"),
    pytest.param(205, "greater", id="no node in its own bin: the next greater one"),
    pytest.param(1000, "greatest", id="no greater bin: the greatest lesser one"),
]


@pytest.mark.parametrize(("runs_s", "want"), BINS)
def test_time_bins(runs_s: float, want: str) -> None:
    nodes = [owned_node(name, "batch") for name in ("lesser", "own", "greater", "greatest")]
    placed = [
        running(make_job("j-lesser", 60), "lesser", 0),
        running(make_job("j-own", 130), "own", 0),
        running(make_job("j-greater", 230), "greater", 0),
        running(make_job("j-greatest", 900), "greatest", 0),
    ]
    result = plan(make_snapshot(nodes, [*placed, make_job("p", runs_s)]), make_policy([batch_group()]), NOW)
    assert bound(result) == {"p": want}


def test_a_bin_is_as_wide_as_an_autoscaling_cycle() -> None:
    """HTAS paper 5.1: run length ÷ scaling cycle, and not ÷ the shorter one in which work is placed."""
    policy = make_policy(cycles=Cycles(scheduling_s=20.0, autoscaling_s=300.0))
    sim = opened([owned_node("a")], [running(make_job("long", 700), "a", 0)], policy).sim
    assert [sim.bin_of(run) for run in (20, 299, 300, 700)] == [0, 0, 1, 2]
    assert sim.bins(sim.all_rows).tolist() == [2]


def test_a_placed_job_lifts_its_nodes_bin() -> None:
    """The first long job opens a node; the second one finds it in its own bin, though another node is fuller."""
    nodes = [owned_node("a", "batch"), owned_node("b", "batch")]
    short = running(make_job("short", 60, memory="2Gi"), "a", 0)
    jobs = [make_job(f"long-{i}", 600, memory="5Gi" if i == 0 else "1Gi") for i in range(2)]
    result = plan(make_snapshot(nodes, [short, *jobs]), make_policy([batch_group()]), NOW)
    assert set(bound(result).values()) == {"a"}


def test_a_shorter_job_leaves_its_nodes_bin_where_a_longer_one_runs() -> None:
    long, short = running(make_job("long", 600), "a", 0), make_job("short", 60)
    sim = (simulated := opened([owned_node("a", "batch")], [long, short])).sim
    before = sim.bins(sim.all_rows).tolist()
    sim.place(simulated.book.class_of(short), 0)
    assert sim.bins(sim.all_rows).tolist() == before == [sim.bin_of(600)]


def test_work_goes_to_the_groups_that_take_it() -> None:
    nodes = [owned_node("s", "services"), owned_node("b", "batch"), make_node("fixed", "100m", "1Gi")]
    policy = make_policy([NodeGroup("services", Workload.SERVICE), batch_group()])
    pods = [make_pod("web", "1", "2Gi"), make_job("job", cpu="1", memory="2Gi"), make_pod("tiny", "100m", "64Mi")]
    result = plan(make_snapshot(nodes, pods), policy, NOW)
    assert bound(result) == {"web": "s", "job": "b", "tiny": "fixed"}


def scored(strategy: ScoringStrategy) -> Policy:
    return make_policy([NodeGroup("any", packing=Packing(PackingAlgorithm.SCORED, Scoring(strategy)))])


GIB = 2**30
FOO, BAR = "intel.com/foo", "intel.com/bar"


@pytest.mark.parametrize(
    ("strategy", "used", "want"),
    [
        pytest.param(ScoringStrategy.LEAST_ALLOCATED, ("3", "4000"), 55, id="least: (50 + 60) / 2"),
        pytest.param(ScoringStrategy.MOST_ALLOCATED, ("3", "4000"), 45, id="most: (50 + 40) / 2"),
    ],
)
def test_allocation_scores(strategy: ScoringStrategy, used: tuple[str, str], want: int) -> None:
    """kube-scheduler's own example: 3000 of 6000 millicores and 4000 of 10000 bytes with the pod."""
    incoming = make_pod("p", *used, scoring_cpu_m=3000, scoring_memory_bytes=4000)
    simulated = opened([make_node("n", "6", "10000")], [incoming])
    scores = node_scores(simulated.sim, simulated.book.class_of(incoming), np.array([0]), Scoring(strategy))
    assert scores.tolist() == [want]


@pytest.mark.parametrize(
    ("strategy", "want"),
    [
        pytest.param(ScoringStrategy.LEAST_ALLOCATED, 62, id="least: (50 + 75) / 2"),
        pytest.param(ScoringStrategy.MOST_ALLOCATED, 37, id="most: (50 + 25) / 2"),
        pytest.param(ScoringStrategy.REQUESTED_TO_CAPACITY_RATIO, 38, id="ratio: 37.5, rounded"),
    ],
)
def test_ephemeral_storage_that_is_not_asked_for_counts_and_a_gpu_does_not(
    strategy: ScoringStrategy, want: int
) -> None:
    """kube-scheduler 1.36 passes over scalar resources (extended ones, hugepages) that a pod does not ask for, no others."""
    there = running(make_pod("there", "1"), "n")
    there = msgspec.structs.replace(there, requests=there.requests + Resources(ephemeral_bytes=GIB))
    node = make_node("n", "4", extended={"example__gpu": 8})
    node = msgspec.structs.replace(node, allocatable=node.allocatable + Resources(ephemeral_bytes=4 * GIB))
    incoming = make_pod("p", "1")
    simulated = opened([node], [there, incoming], scored(strategy))
    resources = (("cpu", 1), ("ephemeral-storage", 1), ("example/gpu", 1))
    scoring = Scoring(strategy, resources, (ShapePoint(0, 0), ShapePoint(100, 10)))
    assert node_scores(simulated.sim, simulated.book.class_of(incoming), np.array([0]), scoring).tolist() == [want]


def test_requested_to_capacity_ratio_follows_the_documentations_example() -> None:
    """Kubernetes documentation, resource bin packing: Node 1 scores 5, Node 2 scores 7."""
    shape = [ShapePoint(0, 0), ShapePoint(100, 10)]
    requested = np.array([[3, 4], [512, 768], [3, 8]])
    capacity = np.array([[4, 8], [1024, 1024], [8, 8]])
    assert ratio_score(requested, capacity, [5, 1, 3], shape).tolist() == [5, 7]


@pytest.mark.parametrize(
    ("scoring", "want"),
    [
        pytest.param(
            Scoring(ScoringStrategy.MOST_ALLOCATED, (("cpu", 1), ("memory", 1), (FOO, 3), (BAR, 3))),
            46,
            id="MostAllocated: (25 + 50 + 3·75 + 3·25) / 8, cut off",
        ),
        pytest.param(
            Scoring(
                ScoringStrategy.REQUESTED_TO_CAPACITY_RATIO,
                ((FOO, 3), (BAR, 3)),
                (ShapePoint(0, 0), ShapePoint(100, 10)),
            ),
            50,
            id="RequestedToCapacityRatio of foo and bar alone: (75 + 25) / 2",
        ),
    ],
)
def test_the_documentations_two_configurations(scoring: Scoring, want: int) -> None:
    """Kubernetes documentation, resource bin packing: its two KubeSchedulerConfigurations, on one node."""
    node = make_node("n", "8", "8Gi", extended={FOO: 4, BAR: 4})
    requests = Resources(2000, 4 * GIB, 0, 1, ((BAR, 1), (FOO, 3)))
    incoming = make_pod("p", requests=requests, scoring_cpu_m=2000, scoring_memory_bytes=4 * GIB)
    simulated = opened([node], [incoming], scored(scoring.strategy))
    scores = node_scores(simulated.sim, simulated.book.class_of(incoming), np.array([0]), scoring)
    assert scores.tolist() == [want]


@pytest.mark.parametrize(
    ("shape", "utilization", "want"),
    [
        pytest.param([(0, 10), (100, 0)], 40, 6, id="falling"),
        pytest.param([(20, 0), (60, 10), (100, 5)], 60, 10, id="a peak"),
        pytest.param([(20, 0), (60, 10), (100, 5)], 80, 8, id="between, truncated towards zero: 10 - 2"),
        pytest.param([(20, 1), (60, 10)], 5, 1, id="before the first point"),
        pytest.param([(20, 1), (60, 10)], 95, 10, id="after the last point"),
    ],
)
def test_shapes(shape: list[tuple[int, int]], utilization: int, want: int) -> None:
    points = [ShapePoint(*point) for point in shape]
    assert ratio_score(np.array([[utilization]]), np.array([[100]]), [1], points).tolist() == [want]


@pytest.mark.parametrize(
    ("strategy", "want"),
    [
        pytest.param(ScoringStrategy.LEAST_ALLOCATED, 70, id="least: (80 + 60) / 2"),
        pytest.param(ScoringStrategy.MOST_ALLOCATED, 30, id="most: (20 + 40) / 2"),
    ],
)
def test_pods_without_requests_count_as_kube_scheduler_assumes_them(strategy: ScoringStrategy, want: int) -> None:
    """One runs, another comes: 100m and 200 MiB each, of a core and 1000 MiB."""
    fields = {"cpu": "0", "memory": "0", "scoring_cpu_m": 100, "scoring_memory_bytes": 200 * 2**20}
    there, incoming = running(make_pod("there", **fields), "n"), make_pod("p", **fields)
    simulated = opened([make_node("n", "1", "1000Mi")], [there, incoming], scored(strategy))
    cls = simulated.book.class_of(incoming)
    with simulated.sim.fork():
        simulated.sim.place(cls, 0)
        simulated.sim.place(cls, 0)
    assert node_scores(simulated.sim, cls, np.array([0]), Scoring(strategy)).tolist() == [want]


def test_pods_without_requests_count_on_nodes_of_no_group_too() -> None:
    """Seven run on the first node and two on the second: with the newcomer 800m and 300m of a core each."""
    how = make_policy(packing=Packing(PackingAlgorithm.SCORED, Scoring(ScoringStrategy.MOST_ALLOCATED)))
    fields = {"cpu": "0", "memory": "0", "scoring_cpu_m": 100, "scoring_memory_bytes": 0}
    there = [
        running(make_pod(f"{node}-{i}", **fields), node) for node, many in (("a", 7), ("b", 2)) for i in range(many)
    ]
    incoming = make_pod("p", **fields)
    simulated = opened([make_node(name, "1") for name in "ab"], [*there, incoming], how)
    scoring = Scoring(ScoringStrategy.MOST_ALLOCATED, (("cpu", 1),))
    assert node_scores(simulated.sim, simulated.book.class_of(incoming), np.array([0, 1]), scoring).tolist() == [80, 30]
    best = plan(make_snapshot([make_node(name, "1") for name in "ba"], [*there, incoming]), how, NOW)
    assert bound(best) == {"p": "a"}


def test_pods_without_requests_are_told_apart_by_their_containers() -> None:
    """Three containers count three times as much as one, though neither pod asks for anything."""
    one, three = (make_pod(f"p{n}", "0", "0", scoring_cpu_m=100 * n, scoring_memory_bytes=GIB) for n in (1, 3))
    simulated = opened([make_node("n", "1", "8Gi")], [one, three], scored(ScoringStrategy.MOST_ALLOCATED))
    assert simulated.book.class_of(one) is not simulated.book.class_of(three)


def test_what_a_node_does_not_have_is_left_out_of_its_ratio() -> None:
    """Half of its cpu is asked for, and it has no GPU: 50, not the mean of 50 and 100."""
    shape = [ShapePoint(0, 0), ShapePoint(100, 100)]
    requested, capacity = np.array([[2, 2], [1, 1]]), np.array([[4, 4], [0, 1]])
    assert ratio_score(requested, capacity, [1, 1], shape).tolist() == [50, 75]


def test_scored_placement_packs_or_spreads() -> None:
    nodes = [owned_node(name) for name in "ab"]
    pods = [msgspec.structs.replace(make_pod(f"p{i}"), scoring_cpu_m=100) for i in range(4)]
    snapshot = make_snapshot(nodes, pods)
    spread = bound(plan(snapshot, scored(ScoringStrategy.LEAST_ALLOCATED), NOW))
    packed = bound(plan(snapshot, scored(ScoringStrategy.MOST_ALLOCATED), NOW))
    assert sorted(spread.values()) == ["a", "a", "b", "b"]
    assert len(set(packed.values())) == 1


@pytest.mark.parametrize(
    ("packing", "nodes"),
    [
        pytest.param(
            Packing(PackingAlgorithm.SCORED, Scoring(ScoringStrategy.LEAST_ALLOCATED)), {"a", "b"}, id="spread"
        ),
        pytest.param(Packing(PackingAlgorithm.SCORED, Scoring(ScoringStrategy.MOST_ALLOCATED)), {"a"}, id="packed"),
        pytest.param(None, {"a"}, id="best fit where nothing is said"),
    ],
)
def test_nodes_of_no_group_are_placed_on_as_the_policy_says(packing: Packing | None, nodes: set[str]) -> None:
    snapshot = make_snapshot(
        [make_node(name) for name in "ab"], [make_pod(f"p{i}", scoring_cpu_m=100) for i in range(4)]
    )
    assert set(bound(plan(snapshot, make_policy(packing=packing), NOW)).values()) == nodes


def test_spread_over_two_pools_takes_turns_between_them() -> None:
    """One zone is fixed capacity, the other a group's: with maxSkew 1 they are filled one pod at a time."""
    zone = "topology.kubernetes.io/zone"
    nodes = [
        make_node("fixed", "40", "40Gi", 600, labels={zone: "a"}),
        owned_node("mine", cpu="40", memory="40Gi", pods=600, labels={zone: "b"}),
    ]
    even = Constraints(spread=(SpreadConstraint(zone, 1, labels_are(app="web")),))
    pods = [make_pod(f"p{i}", "10m", "1Mi", labels={"app": "web"}, constraints=even) for i in range(1100)]
    result = plan(make_snapshot(nodes, pods), make_policy(), NOW)
    assert len(result.bind) == 1100


def test_a_service_without_an_end_is_bought_for_in_a_group_of_time_bins() -> None:
    """One group for all work packs by time bins; a service has none and goes where it fits best."""
    group = batch_group(name="any", workload=Workload.ANY)
    made = plan(make_snapshot([], [make_pod("web"), make_job("job", 120)]), make_policy([group]), NOW)
    assert sorted(pod for launch in made.launch for pod in launch.pods) == ["default/job", "default/web"]
