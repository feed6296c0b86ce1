"""The paper's Algorithms 1 to 5 as printed, on clusters small enough to follow, each by the lines it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from htas.model.flavours import Catalogue
from htas.model.nodes import CLUSTER_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.snapshot import Memory
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.planner import Planner
from tests.builders import NECTAR, NOW, make_job, make_pod, make_snapshot, owned_node, ready_claim, running
from tools.lab.baselines.as_printed import cycle
from tools.lab.baselines.as_printed.readings import readings

CATALOGUE = Catalogue(NECTAR)
POLICY = cycle.settings(CATALOGUE)
CLEANING = frozenset({Stage.SCHEDULING, Stage.CLEANING})


def node(name: str, flavour: str = "m1.medium", group: str = cycle.BATCH) -> Node:
    capacity = next(each.capacity for each in NECTAR if each.name == flavour)
    made = owned_node(name, group, flavour, cpu=f"{capacity.cpu_m}m", memory=str(capacity.memory_bytes))
    return msgspec.structs.replace(made, labels={**made.labels, CLUSTER_LABEL: POLICY.cluster})


def planned(
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    *,
    low_since_s: float | None = None,
    queue_empty_since_s: float | None = None,
    stages: frozenset[Stage] = ALL_STAGES,
    reading: str = "",
    generation: int = 2,
) -> Plan:
    nodes = list(nodes)
    since = {} if low_since_s is None else {node.name: NOW - low_since_s for node in nodes}
    queue = None if queue_empty_since_s is None else NOW - queue_empty_since_s
    claims = tuple(ready_claim(node, 3600.0) for node in nodes)
    memory = Memory(underutilized_since=since, queue_empty_since=queue)
    snapshot = make_snapshot(nodes, pods, claims=claims, memory=memory, generation=generation)
    plan: Planner = cycle.plan
    policy = POLICY
    if reading:
        _, policy, plan = readings(CATALOGUE)[reading]
    return plan(snapshot, policy, NOW, stages)


def bought(plan: Plan) -> dict[tuple[str, str], int]:
    return dict(Counter((launch.group, launch.flavour) for launch in plan.launch))


def binds(plan: Plan) -> dict[str, str]:
    return {bind.pod.removeprefix("default/"): bind.node for bind in plan.bind}


def removed(plan: Plan) -> list[str]:
    return [removing.node for removing in plan.remove]


def job(name: str, minutes: float, gib: float = 0.3, cpu: str = "100m", **fields: Any) -> Pod:
    return make_job(name, minutes * 60, cpu=cpu, memory=str(int(gib * 2**30)), **fields)


def service(name: str, gib: float = 0.4) -> Pod:
    return make_pod(name, cpu="100m", memory=str(int(gib * 2**30)))


def test_a_cluster_starts_with_table_5s_two_workers_one_for_each_group() -> None:
    want = {(cycle.SERVICES, "m1.medium"): 1, (cycle.BATCH, "m1.medium"): 1}
    assert bought(planned((), generation=1)) == want


# Algorithm 1.


@pytest.mark.parametrize(
    ("on_a", "on_b", "want"),
    [
        pytest.param({"gib": 2.0}, {"gib": 1.0}, "a", id="line 1: the least memory free"),
        pytest.param({"gib": 1.0, "cpu": "900m"}, {"gib": 2.0}, "b", id="memory before CPU"),
        pytest.param({"gib": 1.0}, {"gib": 1.0, "cpu": "900m"}, "b", id="as much memory free: the least CPU"),
        pytest.param({"gib": 7.8}, {"gib": 1.0}, "b", id="line 2: it has to hold the pod"),
    ],
)
def test_bfd_takes_the_fullest_node_that_holds_a_service(on_a: dict[str, Any], on_b: dict[str, Any], want: str) -> None:
    def old(name: str, gib: float, cpu: str = "100m") -> Pod:
        return running(make_pod(f"old-{name}", cpu=cpu, memory=str(int(gib * 2**30))), name)

    nodes = [node(name, group=cycle.SERVICES) for name in "ab"]
    assert binds(planned(nodes, [old("a", **on_a), old("b", **on_b), service("new")])) == {"new": want}


# Algorithm 2: with a scaling cycle of five minutes jobs of 0 to 5 minutes lie in bin 0, of 5 to 10 in bin 1.


@pytest.mark.parametrize(
    ("minutes", "ends", "want"),
    [
        pytest.param(7, {"a": 3, "b": 8, "c": 12}, "b", id="line 1: its own bin"),
        pytest.param(7, {"a": 3, "c": 12, "d": 18}, "c", id="line 2: the next greater bin"),
        pytest.param(12, {"a": 3, "b": 8}, "b", id="line 8: then the next lesser one"),
        pytest.param(12, {"a": 3, "b": None}, "a", id="a node without work is in bin 0, and emptier than one with"),
    ],
)
def test_time_bins_are_looked_at_from_a_jobs_own_upwards_then_downwards(
    minutes: float, ends: dict[str, float | None], want: str
) -> None:
    old = [running(job(f"old-{name}", ends_in), name) for name, ends_in in ends.items() if ends_in is not None]
    assert binds(planned(map(node, ends), [*old, job("new", minutes)])) == {"new": want}


def test_a_longer_job_lifts_its_nodes_run_length_for_the_next() -> None:
    """Algorithm 1, lines 4 to 6. The longest goes first (4.3 (1)): it lifts `a` into bin 2, where the second looks."""
    plan = planned([node("a"), node("b")], [running(job("old", 1), "a"), job("second", 11), job("longest", 12)])
    assert binds(plan) == {"longest": "a", "second": "a"}


# Algorithms 3 and 4.


@pytest.mark.parametrize(
    ("sizes", "want"),
    [
        pytest.param([0.6, 0.6], 2, id="1.2 GiB: two machines of 1 GiB"),
        pytest.param([0.6, 0.6, 0.6], 2, id="1.8 GiB: two again, though they hold two of the three"),
        pytest.param([0.3, 0.3, 0.3], 1, id="0.9 GiB: one"),
    ],
)
def test_ga_covers_the_volume_with_the_flavour_of_the_best_score(sizes: list[float], want: int) -> None:
    pods = [job(f"j{i}", 12, gib) for i, gib in enumerate(sizes)]
    assert bought(planned((), pods)) == {(cycle.BATCH, "t3.xsmall"): want}


def test_services_are_bought_for_apart() -> None:
    assert bought(planned((), [service("s"), job("j", 12)])) == {
        (cycle.SERVICES, "t3.xsmall"): 1,
        (cycle.BATCH, "t3.xsmall"): 1,
    }


@pytest.mark.parametrize(
    ("runs_minutes", "want"),
    [
        pytest.param(4, {}, id="it ends within the scaling cycle: its capacity is deducted, full as it is"),
        pytest.param(6, {(cycle.BATCH, "t3.xsmall"): 1}, id="it does not: a machine is bought"),
    ],
)
def test_the_zero_bins_capacity_is_deducted(runs_minutes: float, want: object) -> None:
    full = running(job("old", runs_minutes, 7.9), "a")
    assert bought(planned([node("a")], [full, job("new", 12, 0.9)])) == want


def test_nothing_is_bought_between_scaling_cycles() -> None:
    assert bought(planned((), [job("new", 12)], stages=CLEANING)) == {}


# Algorithm 5.


@pytest.mark.parametrize(
    ("low_since_s", "on_a", "waiting", "want"),
    [
        pytest.param(20, 5.0, None, ["b"], id="lines 8 and 9: all of it has room: it is shut down"),
        pytest.param(20, 7.9, None, [], id="lines 4 to 6: it has no room: nothing is moved"),
        pytest.param(0, 5.0, None, [], id="it has only just become under-used"),
        pytest.param(20, 5.0, 9.0, [], id="a batch job is left in the queue (4.4)"),
    ],
)
def test_rescheduling_is_all_or_nothing(
    low_since_s: float, on_a: float, waiting: float | None, want: list[str]
) -> None:
    pods = [running(job("a", 12, on_a), "a"), running(job("b1", 12), "b"), running(job("b2", 12), "b")]
    pods += [] if waiting is None else [job("waits", 12, waiting)]
    plan = planned([node("a"), node("b")], pods, low_since_s=low_since_s, stages=CLEANING)
    assert removed(plan) == want
    moves = [("default/b1", "a", "checkpoint"), ("default/b2", "a", "checkpoint")] if want else []
    assert [(move.pod, move.target, move.method) for move in plan.migrate] == moves


def test_services_are_never_rescheduled() -> None:
    nodes = [node(name, group=cycle.SERVICES) for name in "ab"]
    pods = [running(service("a", 5.0), "a"), running(service("b"), "b")]
    assert removed(planned(nodes, pods, low_since_s=600)) == []


# Read otherwise.


def test_pod_by_pod_each_pod_has_room_on_what_is_bought() -> None:
    plan = planned((), [job(f"j{i}", 12, 0.6) for i in range(3)], reading="pod-by-pod")
    assert bought(plan) == {(cycle.BATCH, "t3.xsmall"): 3}


def test_in_cores_and_gib_a_flavour_is_worth_what_it_gives_for_its_price() -> None:
    """Sixty jobs of 300m and 0.9 GiB: 18 cores by the cheapest of them, and the 36 GiB still left by large machines."""
    pods = [job(f"j{i}", 12, 0.9, "300m") for i in range(60)]
    want = {(cycle.BATCH, "t3.xsmall"): 18, (cycle.BATCH, "m1.xlarge"): 1, (cycle.BATCH, "m3.small"): 1}
    assert bought(planned((), pods, reading="cores-and-gib")) == want


def test_pod_by_pod_in_cores_and_gib_the_flavour_is_bought_that_the_pods_fill_best() -> None:
    """docs/algorithms.md's example: of twenty large jobs an m3.small holds four, a t3.xsmall one."""
    pods = [job(f"j{i}", 12, 0.9, "300m") for i in range(20)]
    assert bought(planned((), pods, reading="pod-by-pod-cores-and-gib")) == {(cycle.BATCH, "m3.small"): 5}


def test_the_first_workers_may_be_small() -> None:
    want = {(cycle.SERVICES, "t3.xsmall"): 1, (cycle.BATCH, "t3.xsmall"): 1}
    assert bought(planned((), generation=1, reading="small-workers")) == want


def test_without_the_zero_bin_nothing_is_deducted() -> None:
    full = running(job("old", 4, 7.9), "a")
    plan = planned([node("a")], [full, job("new", 12, 0.9)], reading="no-zero-bin")
    assert bought(plan) == {(cycle.BATCH, "t3.xsmall"): 1}


def test_pod_by_pod_waits_for_the_pods_that_the_zero_bin_would_hold() -> None:
    full = running(job("old", 4, 7.9), "a")
    waiting = [job(f"new{i}", 12, 0.9) for i in range(9)]
    assert bought(planned([node("a")], [full, *waiting], reading="pod-by-pod")) == {(cycle.BATCH, "t3.xsmall"): 1}


@pytest.mark.parametrize(
    ("queue_empty_since_s", "want"),
    [pytest.param(301, ["b"], id="empty for five minutes"), pytest.param(299, [], id="not for so long yet")],
)
def test_the_cleaner_may_wait_for_a_queue_that_stays_empty(queue_empty_since_s: float, want: list[str]) -> None:
    pods = [running(job("a", 12, 5.0), "a"), running(job("b", 12), "b")]
    plan = planned(
        [node("a"), node("b")],
        pods,
        low_since_s=600,
        queue_empty_since_s=queue_empty_since_s,
        stages=CLEANING,
        reading="five-minutes",
    )
    assert removed(plan) == want
