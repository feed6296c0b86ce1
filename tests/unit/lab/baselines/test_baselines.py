"""What each baseline decides, on clusters small enough to follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState, NodeClaim
from htas.model.flavours import Catalogue
from htas.model.nodes import CLUSTER_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import MAY_MIGRATE, Pod
from htas.model.policy import Policy
from htas.model.snapshot import Memory
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.planner import Planner
from tests.builders import NECTAR, NOW, make_job, make_pod, make_snapshot, owned_node, ready_claim, running
from tools.lab.baselines import cluster_autoscaler, coca, default_kubernetes, karpenter, stratus

CATALOGUE = Catalogue(NECTAR)
CPU, MEMORY = (
    {flavour.name: flavour.capacity.cpu_m for flavour in NECTAR},
    {flavour.name: flavour.capacity.memory_bytes for flavour in NECTAR},
)
HOURS = 3600.0


def node(name: str, flavour: str, policy: Policy) -> Node:
    """A Ready node of a baseline's only group."""
    made = owned_node(name, policy.groups[0].name, flavour, cpu=f"{CPU[flavour]}m", memory=str(MEMORY[flavour]))
    return msgspec.structs.replace(made, labels={**made.labels, CLUSTER_LABEL: policy.cluster})


class Cluster:
    """A baseline's cluster: nodes by name and flavour, and pods on them."""

    def __init__(self, module: Any, **flavours: str) -> None:
        self.policy: Policy = module.settings(CATALOGUE)
        self.planner: Planner = module.plan
        self.nodes = [node(name, flavour, self.policy) for name, flavour in flavours.items()]

    def plan(
        self,
        pods: Iterable[Pod] = (),
        *,
        low_since_s: float | None = None,
        stages: frozenset[Stage] = ALL_STAGES,
        bought_since_s: float = 2 * HOURS,
        **snapshot: Any,
    ) -> Plan:
        """`low_since_s`: how long every node has been unneeded, as the baseline remembers it."""
        since = {} if low_since_s is None else {node.name: NOW - low_since_s for node in self.nodes}
        claims = [ready_claim(node, bought_since_s) for node in self.nodes] + list(snapshot.pop("claims", ()))
        fields = {"generation": 2, "memory": Memory(underutilized_since=since), **snapshot}
        made = make_snapshot(self.nodes, pods, claims=tuple(claims), **fields)
        return self.planner(made, self.policy, NOW, stages)


def bought(plan: Plan) -> dict[str, int]:
    return dict(Counter(launch.flavour for launch in plan.launch))


def binds(plan: Plan) -> dict[str, str]:
    return {bind.pod.removeprefix("default/"): bind.node for bind in plan.bind}


def removed(plan: Plan) -> list[str]:
    return [removing.node for removing in plan.remove]


def small(name: str, runs_s: float = 180.0, **fields: Any) -> Pod:
    return make_job(name, runs_s, cpu="100m", memory="307Mi", **fields)


def medium(name: str, runs_s: float = 360.0, **fields: Any) -> Pod:
    return make_job(name, runs_s, cpu="200m", memory="614Mi", **fields)


def large(name: str, runs_s: float = 660.0, **fields: Any) -> Pod:
    return make_job(name, runs_s, cpu="300m", memory="921Mi", **fields)


# Default Kubernetes as the paper had it.


def test_default_kubernetes_starts_with_two_workers_of_its_flavour() -> None:
    assert bought(Cluster(default_kubernetes).plan(generation=1)) == {"m1.medium": 2}


def test_default_kubernetes_spreads_to_the_least_used_node() -> None:
    cluster = Cluster(default_kubernetes, a="m1.medium", b="m1.medium")
    pods = [running(large("old"), "a"), small("one"), small("two")]
    assert binds(cluster.plan(pods)) == {"one": "b", "two": "b"}


@pytest.mark.parametrize(
    ("pods", "stages", "want"),
    [
        pytest.param(50, ALL_STAGES, {"m1.medium": 1}, id="work for five machines: one in a cycle"),
        pytest.param(50, frozenset({Stage.SCHEDULING}), {}, id="not in its cycle: none"),
        pytest.param(5, ALL_STAGES, {}, id="room for all: none"),
    ],
)
def test_default_kubernetes_buys_one_machine_in_a_cycle(pods: int, stages: frozenset[Stage], want: object) -> None:
    cluster = Cluster(default_kubernetes, a="m1.medium")
    assert bought(cluster.plan([medium(f"m{i}") for i in range(pods)], stages=stages)) == want


def test_default_kubernetes_waits_for_a_machine_on_its_way_that_holds_what_waits() -> None:
    cluster = Cluster(default_kubernetes, a="m1.medium")
    coming = NodeClaim("coming", "workers", "m1.medium", ClaimState.REQUESTED, NOW - 30, NOW - 30)
    full = [running(medium(f"m{i}"), "a") for i in range(10)]
    plan = cluster.plan([*full, medium("new")], claims=[coming])
    assert (bought(plan), [item.node for item in plan.nominate]) == ({}, ["coming"])


@pytest.mark.parametrize(
    ("low_since_s", "bought_since_s", "on_b", "want"),
    [
        pytest.param(601, HOURS, [small("s")], ["b"], id="half used for ten minutes: emptied"),
        pytest.param(599, HOURS, [small("s")], [], id="not for ten minutes yet"),
        pytest.param(601, 500, [small("s")], [], id="a machine was bought within ten minutes"),
        pytest.param(601, HOURS, [medium(f"m{i}") for i in range(6)], [], id="more than half used"),
        pytest.param(599, HOURS, [], [], id="empty nodes wait their ten minutes too"),
        pytest.param(601, HOURS, [], ["b"], id="empty for ten minutes"),
    ],
)
def test_scale_down_is_cluster_autoscalers(
    low_since_s: float, bought_since_s: float, on_b: list[Pod], want: list[str]
) -> None:
    cluster = Cluster(default_kubernetes, a="m1.medium", b="m1.medium")
    pods = [*(running(medium(f"a{i}"), "a") for i in range(7)), *(running(pod, "b") for pod in on_b)]
    plan = cluster.plan(pods, low_since_s=low_since_s, bought_since_s=bought_since_s)
    assert removed(plan) == want
    assert {move.method for move in plan.migrate} <= {"evict"}


def test_scale_down_keeps_a_node_whose_pods_have_no_room_elsewhere() -> None:
    cluster = Cluster(default_kubernetes, a="m1.medium", b="m1.medium")
    pods = [*(running(medium(f"a{i}"), "a") for i in range(10)), running(small("s"), "b")]
    assert removed(cluster.plan(pods, low_since_s=700)) == []


def test_the_last_worker_stays() -> None:
    cluster = Cluster(default_kubernetes, a="m1.medium")
    assert removed(cluster.plan([], low_since_s=700)) == []


def test_services_are_evicted_where_they_may_be() -> None:
    cluster = Cluster(default_kubernetes, a="m1.medium", b="m1.medium")
    opted_in = make_pod("web", disruption={MAY_MIGRATE: "true"})
    others = [running(medium(f"a{i}"), "a") for i in range(7)]
    assert removed(cluster.plan([*others, running(opted_in, "b")], low_since_s=700)) == ["b"]
    assert removed(cluster.plan([*others, running(make_pod("web"), "b")], low_since_s=700)) == []


# Today's Cluster Autoscaler.


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([small("s")], {"t3.xsmall": 1}, id="one small job: the machine it fills best"),
        pytest.param([large(f"l{i}") for i in range(8)], {"m3.xsmall": 4}, id="several at once, all of one flavour"),
        pytest.param(
            [make_job(f"w{i}", cpu="100m", memory="409Mi") for i in range(20)],
            {"m1.medium": 1},
            id="a core and four GiB in step: the flavour of that shape",
        ),
        pytest.param([make_job("w", cpu="16", memory="1Gi")], {}, id="nothing holds it"),
    ],
)
def test_cluster_autoscaler_buys_what_wastes_least(pods: list[Pod], want: dict[str, int]) -> None:
    assert bought(Cluster(cluster_autoscaler).plan(pods)) == want


def test_cluster_autoscaler_never_mixes_flavours_and_leaves_the_rest_to_the_next_loop() -> None:
    plan = Cluster(cluster_autoscaler).plan([make_job("huge", cpu="7", memory="30Gi"), small("s")])
    assert bought(plan) == {"m1.xlarge": 1}
    odd = Cluster(cluster_autoscaler).plan(
        [make_job("huge", cpu="7", memory="30Gi"), *(large(f"l{i}") for i in range(40))]
    )
    assert len(bought(odd)) == 1


def test_first_fit_decreasing_opens_as_few_machines_as_it_does() -> None:
    """Of 700m, 600m, 400m and 300m the first two open a machine each; the others fill them: 700 + 300, 600 + 400."""
    cluster = Cluster(cluster_autoscaler)
    pods = [make_job(f"j{cpu}", cpu=f"{cpu}m", memory=f"{cpu}Mi") for cpu in (300, 400, 600, 700)]
    assert bought(cluster.plan(pods)) == {"t3.xsmall": 2}


# COCA.


def test_coca_packs_the_fullest_node() -> None:
    cluster = Cluster(coca, a="m1.medium", b="m1.medium")
    assert binds(cluster.plan([running(large("old"), "a"), small("new")])) == {"new": "a"}


def test_coca_evicts_from_an_under_used_node_at_once() -> None:
    cluster = Cluster(coca, a="m1.medium", b="m1.medium")
    pods = [*(running(medium(f"a{i}"), "a") for i in range(7)), running(small("s"), "b")]
    plan = cluster.plan(pods)
    assert removed(plan) == ["b"]
    assert [(move.pod, move.target, move.method) for move in plan.migrate] == [("default/s", "a", "evict")]


def test_coca_compacts_nothing_while_work_waits() -> None:
    cluster = Cluster(coca, a="m1.medium", b="m1.medium")
    too_large = make_job("large", cpu="1900m", memory="1Gi")
    pods = [*(running(medium(f"a{i}"), "a") for i in range(7)), running(small("s"), "b"), large("x"), too_large]
    assert removed(cluster.plan([*pods, msgspec.structs.replace(too_large, name="two", uid="two")])) == []


# Stratus.


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        pytest.param(0, 0, id="over"),
        pytest.param(1, 1, id="a second"),
        pytest.param(240, 8, id="four minutes: 128 s to 255 s"),
        pytest.param(256, 9, id="the next one begins"),
        pytest.param(float("inf"), stratus.LAST_BIN, id="a service: the last"),
    ],
)
def test_stratus_bins_double(seconds: float, want: int) -> None:
    assert stratus.bin_of(seconds) == want


@pytest.mark.parametrize(
    ("runs_s", "want"),
    [
        pytest.param(200, "short", id="its own bin"),
        pytest.param(600, "long", id="its own bin, though another has more room"),
        pytest.param(100, "short", id="none of its own: the next greater one"),
        pytest.param(4000, "long", id="none greater: the next lesser one"),
    ],
)
def test_stratus_places_by_run_length(runs_s: float, want: str) -> None:
    cluster = Cluster(stratus, short="m1.medium", long="m1.medium")
    pods = [running(small("s", 250), "short", since_s=10), running(large("l", 700), "long", since_s=10)]
    assert binds(cluster.plan([*pods, small("new", runs_s)])) == {"new": want}


def test_stratus_buys_for_each_bin_by_cost_efficiency() -> None:
    """Six long jobs fill a machine of 4 GiB but for one; the short ones get none of their own as long as it has room."""
    plan = Cluster(stratus).plan([*(large(f"l{i}") for i in range(4)), small("s")])
    assert bought(plan) == {"m3.small": 1}
    assert [len(launch.pods) for launch in plan.launch] == [5]


def test_stratus_moves_tasks_with_their_progress_off_a_machine_under_used_for_five_minutes() -> None:
    cluster = Cluster(stratus, a="m1.medium", b="m1.medium")
    pods = [*(running(medium(f"a{i}"), "a") for i in range(7)), running(small("s"), "b")]
    assert removed(cluster.plan(pods, low_since_s=299)) == []
    plan = cluster.plan(pods, low_since_s=301)
    assert (removed(plan), [move.method for move in plan.migrate]) == (["b"], ["checkpoint"])


def test_stratus_buys_a_cheaper_machine_where_the_tasks_have_no_room() -> None:
    cluster = Cluster(stratus, a="m1.xlarge")
    job = running(large("l", 4000), "a", since_s=10)
    plan = cluster.plan([job], low_since_s=301)
    assert (removed(plan), bought(plan), [launch.why for launch in plan.launch]) == (
        [],
        {"t3.xsmall": 1},
        ["replaces a"],
    )
    coming = NodeClaim("coming", "machines", "t3.xsmall", ClaimState.REQUESTED, NOW - 30, NOW - 30)
    assert bought(cluster.plan([job], low_since_s=301, claims=[coming])) == {}


def test_stratus_gives_back_an_empty_machine_at_once() -> None:
    assert removed(Cluster(stratus, a="m1.medium").plan([])) == ["a"]


# Karpenter.


def test_karpenter_grows_one_claim_and_prices_it_at_the_end() -> None:
    """Eight jobs of 0.9 GiB make one claim of 2.4 cores: a machine of 4 cores, where two of 4 GiB would be cheaper."""
    plan = Cluster(karpenter).plan([large(f"l{i}") for i in range(8)])
    assert bought(plan) == {"m1.large": 1}


def test_karpenter_opens_another_claim_when_no_flavour_holds_one_more() -> None:
    plan = Cluster(karpenter).plan([make_job(f"j{i}", cpu="5", memory="1Gi") for i in range(2)])
    assert bought(plan) == {"m1.xlarge": 2}


@pytest.mark.parametrize(
    ("flavours", "on", "want_removed", "want_bought"),
    [
        pytest.param({"a": "m1.medium", "b": "m1.medium"}, {"a": 3}, ["b"], {}, id="an empty node goes"),
        pytest.param(
            {"a": "m1.medium", "b": "m1.medium"}, {"a": 3, "b": 1}, ["b"], {}, id="its pods have room: it goes"
        ),
        pytest.param({"a": "m1.xlarge"}, {"a": 1}, [], {"t3.xsmall": 1}, id="a cheaper machine is bought first"),
        pytest.param({"a": "t3.xsmall"}, {"a": 1}, [], {}, id="nothing is cheaper: nothing is done"),
    ],
)
def test_karpenter_consolidates(
    flavours: dict[str, str], on: dict[str, int], want_removed: list[str], want_bought: dict[str, int]
) -> None:
    pods = [running(small(f"{where}{i}"), where) for where, count in on.items() for i in range(count)]
    plan = Cluster(karpenter, **flavours).plan(pods)
    assert (removed(plan), bought(plan)) == (want_removed, want_bought)


def test_karpenter_keeps_to_its_budget_of_a_tenth() -> None:
    nodes = {f"n{i:02d}": "m1.medium" for i in range(11)}
    assert removed(Cluster(karpenter, **nodes).plan([])) == ["n00", "n01"]


def test_karpenter_leaves_a_node_alone_that_has_just_come() -> None:
    cluster = Cluster(karpenter, a="m1.medium")
    assert removed(cluster.plan([], bought_since_s=20)) == []
    assert removed(cluster.plan([], bought_since_s=40)) == ["a"]
