"""Autoscaling: what is bought, and what is not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState, Headroom, NodeClaim
from htas.model.constraints import Constraints, NodeSelectorTerm, PodAffinityTerm, SpreadConstraint
from htas.model.nodes import INSTANCE_TYPE_LABEL
from htas.model.pods import DAEMONSET_POD, Owner, Phase, Pod
from htas.model.policy import AutoscalingAlgorithm, Limits, NodeGroup, Workload
from htas.model.reasons import Unplaced
from htas.model.resources import Resources
from htas.model.selectors import Operator, Requirement
from htas.model.snapshot import Backoff
from htas.model.stages import Stage
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim, Volumes
from htas.planning.planner import plan
from htas.planning.provision.bound import lower_bound_nanos
from htas.planning.provision.offers import claim_id
from tests.builders import (
    NECTAR,
    NOW,
    amounts,
    batch_group,
    labels_are,
    make_flavour,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    no_schedule,
    owned_node,
    running,
)
from tests.unit.planning.plans import bought, planned

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([make_pod("p", "100m", "300Mi")], {"t3.xsmall": 1}, id="one small pod: the smallest machine"),
        pytest.param([make_pod("p", "100m", "1536Mi")], {"m3.xsmall": 1}, id="1.5 GiB: the smallest that holds it"),
        pytest.param([make_pod("p", "7", "1Gi")], {"m1.xlarge": 1}, id="seven cores: only one flavour holds it"),
        pytest.param([make_pod(f"p{i}", "1", "1Gi") for i in range(4)], {"t3.xsmall": 4}, id="a core and a GiB each"),
        pytest.param([make_pod(f"p{i}", "100m", "4Gi") for i in range(8)], {"m1.xlarge": 1}, id="memory by the bulk"),
    ],
)
def test_greedy_buys_what_is_cheapest_for_the_work(pods: list[Pod], want: dict[str, int]) -> None:
    result = planned(pods)
    assert bought(result) == want
    assert sorted(pod for item in result.launch for pod in item.pods) == sorted(pod.key for pod in pods)


def test_a_machine_for_those_that_few_hold_is_judged_with_what_else_fills_it() -> None:
    """Alone, five of 9 GiB are cheapest on machines of 8 cores; with fifteen small ones a large bargain holds all."""
    flavours = [
        make_flavour("s", "4", "8Gi", "0.136"),
        make_flavour("b", "8", "32Gi", "0.33"),
        make_flavour("blade", "48", "192Gi", "0.79"),
    ]
    large = [make_pod(f"large{i}", "2", "9Gi") for i in range(5)]
    small = [make_pod(f"small{i}", "1", "2Gi") for i in range(15)]
    policy = make_policy(flavours=flavours)
    assert bought(planned(large, policy)) == {"b": 2}
    assert bought(planned([*large, *small], policy)) == {"blade": 1}


def test_both_ways_of_judging_are_tried_and_the_cheaper_one_is_bought() -> None:
    """Judged with the three small ones, the large machine scores best, at 0.45; one for each kind of work costs 0.35."""
    flavours = [
        make_flavour("s", "4", "8Gi", "0.09"),
        make_flavour("m", "4", "32Gi", "0.26"),
        make_flavour("l", "16", "64Gi", "0.45"),
    ]
    pods = [make_pod("large", "2", "12Gi"), *(make_pod(f"small{i}", "2", "4Gi") for i in range(3))]
    assert bought(planned(pods, make_policy(flavours=flavours))) == {"m": 1, "s": 1}


def test_work_of_other_priorities_shares_a_machine() -> None:
    """Each priority bought for alone had three machines, for 0.15 an hour, where one of 0.06 holds all."""
    flavours = [make_flavour("s", "1", "2Gi", "0.05"), make_flavour("b", "8", "16Gi", "0.06")]
    pods = [make_job(f"p{i}", 600, cpu="1", memory="1Gi", priority=i) for i in range(3)]
    assert bought(planned(pods, make_policy(flavours=flavours))) == {"b": 1}


def test_one_pod_without_cpu_does_not_buy_the_largest_machine() -> None:
    """Of 2 TiB on sale the score makes next to nothing of 8 GiB: one machine for 6.464, where two of 0.1472 hold all."""
    flavours = [make_flavour("s", "8", "8Gi", "0.1472"), make_flavour("big", "16", "2048Gi", "6.464")]
    pods = [make_pod("db", "0", "7900Mi"), *(make_pod(f"web-{i}", "1", "900Mi") for i in range(4))]
    assert bought(planned(pods, make_policy(flavours=flavours))) == {"s": 2}


@pytest.mark.parametrize("algorithm", list(AutoscalingAlgorithm))
def test_a_long_job_is_not_put_with_short_ones_on_the_machine_that_scores_best(algorithm: AutoscalingAlgorithm) -> None:
    """Ten hours beside jobs of a minute hold a machine of 0.60 an hour for 6.02 in all; apart they cost 0.54."""
    flavours = [make_flavour("s", "1", "4Gi", "0.05"), make_flavour("b", "16", "64Gi", "0.60")]
    pods = [make_job("long", 36_000, cpu="500m", memory="1Gi")]
    pods += [make_job(f"short{i}", 60, cpu="1", memory="1Gi") for i in range(15)]
    result = planned(pods, make_policy([batch_group(autoscaling=algorithm)], flavours))
    assert {item.flavour for item in result.launch if "default/long" in item.pods} == {"s"}
    assert bought(result) == {"s": 1, "b": 1}


def test_what_fits_nowhere_buys_nothing_and_says_why() -> None:
    result = planned([make_pod("huge", "64", "1Gi")])
    assert result.launch == ()
    assert result.unplaced[0].reason is Unplaced.NO_FLAVOUR_FITS
    assert "m1.xlarge has not enough cpu (64 cores asked, 8 cores offered)" in result.unplaced[0].message


def asking_for_disk(name: str, cpu: str) -> Pod:
    pod = make_pod(name, cpu, "1Gi")
    return msgspec.structs.replace(pod, requests=msgspec.structs.replace(pod.requests, ephemeral_bytes=2**30))


def test_a_price_file_that_says_nothing_of_disks_is_named() -> None:
    """ "1073741824 asked, 0 offered" sent somebody to the cloud, whose machines have 100 GB."""
    result = planned([asking_for_disk("p", "1")])
    assert result.launch == ()
    assert (
        "; the price file states no ephemeralStorage for m1.xlarge, and no node shows it" in result.unplaced[0].message
    )


@pytest.mark.parametrize("reserved_m", [0, 100])
def test_a_node_that_shows_its_disk_speaks_for_its_flavour(reserved_m: int) -> None:
    """Whoever bought it, and whatever the price file reserves."""
    flavour = make_flavour("m1.large", "4", "16Gi", "0.2746", reserved=Resources(reserved_m))
    there = make_node("n", "3900m", "15Gi", labels={INSTANCE_TYPE_LABEL: "m1.large"})
    there = msgspec.structs.replace(
        there, allocatable=msgspec.structs.replace(there.allocatable, ephemeral_bytes=2**35)
    )
    full = running(make_pod("full", "3500m", "1Gi"), "n")
    result = planned([full, asking_for_disk("p", "2")], make_policy(flavours=[flavour]), nodes=[there])
    assert bought(result) == {"m1.large": 1}


def test_daemon_sets_take_their_share_of_new_machines() -> None:
    """1 GiB of a 1 GiB machine does not fit once the agent has its 64 MiB."""
    result = planned(
        [agent("agent", "50m", "n"), make_pod("p", "100m", "1Gi")], nodes=[make_node("n", "100m", "100Mi")]
    )
    assert bought(result) == {"m3.xsmall": 1}


def test_a_daemon_sets_own_node_pin_is_not_taken_for_a_wish() -> None:
    pin = NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("n",)),))
    pinned = agent("agent", "50m", "n", constraints=Constraints(node_affinity=(pin,)))
    result = planned([pinned, make_pod("p", "100m", "1Gi")], nodes=[make_node("n", "100m", "100Mi")])
    assert bought(result) == {"m3.xsmall": 1}


def test_anti_affinity_buys_a_machine_each() -> None:
    apart = Constraints(anti_affinity=(PodAffinityTerm(HOST, labels_are(app="web")),))
    pods = [make_pod(f"p{i}", labels={"app": "web"}, constraints=apart) for i in range(5)]
    result = planned(pods)
    assert [len(item.pods) for item in result.launch] == [1] * 5


def zoned() -> list[Any]:
    return [msgspec.structs.replace(flavour, zones=("a", "b", "c")) for flavour in NECTAR]


def test_spread_over_zones_is_bought_as_it_must_be() -> None:
    even = Constraints(spread=(SpreadConstraint(ZONE, 1, labels_are(app="web"), min_domains=3),))
    pods = [make_pod(f"p{i}", "500m", "500Mi", labels={"app": "web"}, constraints=even) for i in range(6)]
    result = planned(pods, make_policy(flavours=zoned()))
    assert not result.unplaced
    per_zone = Counter(item.zone for item in result.launch for _ in item.pods)
    assert per_zone == {"a": 2, "b": 2, "c": 2}


def test_machines_are_balanced_over_zones() -> None:
    result = planned([make_pod(f"p{i}", "1", "1Gi") for i in range(6)], make_policy(flavours=zoned()))
    assert Counter(item.zone for item in result.launch) == {"a": 2, "b": 2, "c": 2}


@pytest.mark.parametrize(
    ("limits", "machines", "word"),
    [
        pytest.param(Limits(max_nodes=2), 2, "maxNodes (2)", id="nodes"),
        pytest.param(Limits(max_cpu_m=3000), 3, "maxCpu", id="cpu"),
        pytest.param(Limits(max_memory_bytes=2 * 2**30), 2, "maxMemory", id="memory"),
        pytest.param(Limits(max_nanos_per_hour=40_000_000), 2, "maxPricePerHour (0.04)", id="price"),
    ],
)
@pytest.mark.parametrize("scope", ["cluster", "group"])
def test_limits_hold(limits: Limits, machines: int, word: str, scope: str) -> None:
    flavours = [make_flavour("t3.xsmall", "1", "1Gi", "0.0198")]
    group = NodeGroup("any", limits=limits if scope == "group" else Limits())
    policy = make_policy([group], flavours, limits=limits if scope == "cluster" else Limits())
    result = planned([make_pod(f"p{i}", "1", "1Gi") for i in range(5)], policy)
    assert len(result.launch) == machines
    assert {item.reason for item in result.unplaced} == {Unplaced.LIMIT_REACHED}
    assert word in result.unplaced[0].message


@pytest.mark.parametrize(
    ("instance", "machines"),
    [
        pytest.param(None, 0, id="nobody has answered for it: no usage shows it yet"),
        pytest.param("vm-1", 1, id="the cloud counts it itself"),
    ],
)
def test_a_machine_that_is_wanted_takes_its_share_of_the_quota(instance: str | None, machines: int) -> None:
    """The cloud would grant one more; one of two pods has a machine on its way."""
    wanted = NodeClaim("c1", "any", "one", ClaimState.WANTED, NOW - 5, NOW - 5, instance=instance)
    policy = make_policy(flavours=[make_flavour("one", "1", "1Gi", "0.1")])
    pods = [make_pod(f"p{i}", "1", "1Gi") for i in range(2)]
    result = planned(pods, policy, claims=(wanted,), headroom=Headroom(instances=1))
    assert len(result.launch) == machines
    assert [item.reason for item in result.unplaced] == [Unplaced.QUOTA_REACHED] * (1 - machines)


def test_under_a_limit_of_nodes_large_machines_are_bought() -> None:
    """Thirty jobs of 0.9 GiB need 27 GiB: one node may be bought, so it must be the one that holds them."""
    pods = [make_job(f"j{i}", cpu="100m", memory="900Mi") for i in range(30)]
    result = planned(pods, make_policy([batch_group()], limits=Limits(max_nodes=1)))
    assert bought(result) == {"m1.xlarge": 1}
    assert not result.unplaced


def test_the_most_important_work_gets_what_may_be_bought() -> None:
    pods = [make_pod(f"low-{i}", "1", "1Gi") for i in range(3)] + [make_pod("high", "1", "1Gi", priority=9)]
    policy = make_policy(flavours=[make_flavour("one", "1", "1Gi", "0.1")], limits=Limits(max_nodes=1))
    assert planned(pods, policy).launch[0].pods == ("default/high",)


@pytest.mark.parametrize(
    ("headroom", "machines"),
    [
        pytest.param(Headroom(instances=1), 1, id="instances"),
        pytest.param(Headroom(cpu_m=2000), 2, id="cores"),
        pytest.param(Headroom(memory_bytes=0), 0, id="memory"),
    ],
)
def test_what_the_cloud_will_not_grant_is_not_asked_for(headroom: Headroom, machines: int) -> None:
    policy = make_policy(flavours=[make_flavour("one", "1", "1Gi", "0.1")])
    result = planned([make_pod(f"p{i}", "1", "1Gi") for i in range(3)], policy, headroom=headroom)
    assert len(result.launch) == machines
    assert {item.reason for item in result.unplaced} == {Unplaced.QUOTA_REACHED}


def test_a_flavour_that_failed_gives_way_to_the_next_cheapest() -> None:
    backoff = Backoff("t3.xsmall", None, NOW + 60, "no valid host")
    assert bought(planned([make_pod()], backoffs=(backoff,))) == {"m3.xsmall": 1}
    over = Backoff("t3.xsmall", None, NOW - 1, "no valid host")
    assert bought(planned([make_pod()], backoffs=(over,))) == {"t3.xsmall": 1}


def test_stock_is_a_limit() -> None:
    policy = make_policy(flavours=[make_flavour("rare", "1", "1Gi", "0.1", stock=1)])
    assert len(planned([make_pod(f"p{i}", "1", "1Gi") for i in range(3)], policy).launch) == 1


def coming(claim_id: str = "c1", flavour: str = "m1.large") -> NodeClaim:
    return NodeClaim(claim_id, "any", flavour, ClaimState.REQUESTED, NOW - 10, NOW - 10, instance="vm-1")


def test_machines_on_their_way_are_capacity() -> None:
    result = planned([make_pod("p", "3", "8Gi")], claims=(coming(),))
    assert result.launch == ()
    assert [(item.pod, item.node) for item in result.nominate] == [("default/p", "c1")]


def test_machines_on_their_way_count_against_limits() -> None:
    policy = make_policy(limits=Limits(max_nodes=1))
    result = planned([make_pod("p", "7", "8Gi")], policy, claims=(coming(),))
    assert result.launch == ()
    assert result.unplaced[0].reason is Unplaced.LIMIT_REACHED


def test_pods_of_other_schedulers_are_bought_for_but_not_bound() -> None:
    foreign = make_pod("p", scheduler="default-scheduler", is_unschedulable=True)
    assert bought(planned([foreign])) == {"t3.xsmall": 1}
    with_room = planned([foreign], nodes=[make_node()])
    assert with_room.bind == ()
    assert with_room.nominate[0].why == "bound by default-scheduler"
    unseen = make_pod("p", scheduler="default-scheduler")
    assert planned([unseen]).launch == ()


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(make_pod(gates=("wait",)), Unplaced.SCHEDULING_GATED, id="gated"),
        pytest.param(
            make_pod(constraints=Constraints(unsupported=("DRA",))), Unplaced.NOT_SUPPORTED, id="not understood"
        ),
    ],
)
def test_some_pods_are_never_bought_for(pod: Pod, reason: Unplaced) -> None:
    result = planned([pod])
    assert result.launch == ()
    assert result.unplaced[0].reason is reason


def test_nothing_is_bought_between_autoscaling_cycles() -> None:
    result = plan(make_snapshot([], [make_pod()]), make_policy(), NOW, frozenset({Stage.SCHEDULING}))
    assert result.launch == ()
    assert result.unplaced[0].reason is Unplaced.AUTOSCALING_NOT_DUE


def test_groups_keep_their_minimum_size() -> None:
    policy = make_policy([NodeGroup("any", min_nodes=2)])
    result = planned([make_pod()], policy)
    assert bought(result) == {"t3.xsmall": 2}


def test_no_group_takes_it() -> None:
    result = planned([make_pod()], make_policy([NodeGroup("batch", Workload.BATCH)]))
    assert result.unplaced[0].reason is Unplaced.NO_NODE_GROUP


def ending(runs_s: float, since_s: float) -> tuple[list[Any], list[Pod]]:
    """A full batch node whose one job has run for `since_s` of `runs_s`."""
    node = owned_node("busy", "batch", "m3.small", cpu="2", memory="4Gi")
    return [node], [running(make_job("running", runs_s, cpu="2", memory="3Gi"), "busy", since_s)]


@pytest.mark.parametrize(
    ("runs_s", "since_s", "buys"),
    [
        pytest.param(120, 110, 0, id="it ends in 10 s: wait"),
        pytest.param(120, 60, 1, id="it ends in a minute: buy"),
        pytest.param(120, 500, 1, id="it should have ended: its estimate is believed no more"),
    ],
)
def test_zero_bin(runs_s: float, since_s: float, buys: int) -> None:
    """The paper's rule, by itself: without looking ahead."""
    nodes, pods = ending(runs_s, since_s)
    policy = make_policy([batch_group()], look_ahead_s=0.0)
    result = planned([*pods, make_job("waiting", cpu="1", memory="2Gi")], policy, nodes=nodes)
    assert len(result.launch) == buys
    reasons = [item.reason for item in result.unplaced]
    assert reasons == ([] if buys else [Unplaced.CAPACITY_FREES_SOON])


def test_zero_bin_is_waited_for_no_longer_than_allowed() -> None:
    nodes, pods = ending(120, 110)
    impatient = make_job("waiting", cpu="1", memory="2Gi", created_at=NOW - 181)
    assert len(planned([*pods, impatient], make_policy([batch_group()]), nodes=nodes).launch) == 1


def test_zero_bin_holds_only_so_much() -> None:
    nodes, pods = ending(120, 110)
    waiting = [make_job(f"w{i}", cpu="1", memory="1536Mi") for i in range(5)]
    result = planned([*pods, *waiting], make_policy([batch_group()]), nodes=nodes)
    waits = [item for item in result.unplaced if item.reason is Unplaced.CAPACITY_FREES_SOON]
    assert len(waits) == 2
    assert sum(len(item.pods) for item in result.launch) == 3


def test_51_000_pods_need_2595_nodes() -> None:
    """50,000 of 50m and 1,000 of 95m on one-core nodes of 100 pods: 100 nodes hold ten large and one small each."""
    pods = [make_pod(f"a{i}", "50m", "0") for i in range(50_000)] + [make_pod(f"b{i}", "95m", "0") for i in range(1000)]
    policy = make_policy(flavours=[make_flavour("one", "1", "4Gi", "0.01", pods=100)])
    result = planned(pods, policy)
    assert len(result.launch) == 2595
    assert not result.unplaced


@pytest.mark.parametrize(
    ("demand", "want"),
    [
        pytest.param((0, 0), 0, id="nothing"),
        pytest.param((4, 0), 20, id="one resource: the cheapest per unit"),
        pytest.param((4, 4), 24, id="both: two of each, not the dearer of one resource"),
    ],
)
def test_lower_bound(demand: tuple[int, int], want: int) -> None:
    capacities, prices = [(2, 0), (0, 2), (1, 1)], [10, 2, 7]
    assert lower_bound_nanos(demand, capacities, prices) == want


def test_costs_stand_in_the_plan() -> None:
    node = owned_node("n", flavour="m1.medium", cpu="2", memory="8Gi")
    result = planned([running(make_pod("a", "1", "4Gi"), "n"), make_pod("b", "2", "8Gi")], nodes=[node])
    assert (result.cost.before_nanos, result.cost.after_nanos) == (137_100_000, 274_200_000)


def test_a_flavours_real_offer_replaces_the_catalogues() -> None:
    """m3.small promises 4 GiB; its first node had 3 GiB allocatable, so 3.5 GiB need the next flavour."""
    learned = {"m3.small": amounts("2", "3Gi", 110)}
    assert bought(planned([make_pod("p", "1", "3584Mi")], learned=learned)) == {"m1.medium": 1}


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        pytest.param("3584Mi", "; nodes of m3.small offer less than the price file says: 3 GiB of 4 GiB memory", id="the price file's size would hold it"),
        pytest.param("5Gi", "", id="it is too large for the price file's size as well"),
    ],
)  # fmt: skip
def test_a_pod_that_no_flavour_holds_names_the_flavour_that_offers_less(memory: str, says: str) -> None:
    """It was reported once, in the log, and the pod's reason did not say why a flavour of 4 GiB holds no 3.5 GiB."""
    small = make_flavour("m3.small", "2", "4Gi", "0.05")
    learned = {"m3.small": amounts("2", "3Gi", 110)}
    (waiting,) = planned([make_pod("p", "1", memory)], make_policy(flavours=[small]), learned=learned).unplaced
    assert waiting.reason is Unplaced.NO_FLAVOUR_FITS
    assert ("offer less" in waiting.message) is bool(says)
    assert says in waiting.message


@pytest.mark.parametrize(
    ("ours", "is_ready", "reserved", "want"),
    [
        pytest.param(False, True, "0", 3, id="somebody else's node shows that two do not fit on one"),
        pytest.param(False, True, "256Mi", 2, id="the price file says itself what is kept for the system"),
        pytest.param(False, False, "0", 2, id="one that is not ready shows nothing"),
        pytest.param(True, True, "256Mi", 3, id="a node of ours is believed whatever the file says"),
    ],
)
def test_what_the_price_file_leaves_open_is_read_from_any_node_of_the_flavour(
    ours: bool, is_ready: bool, reserved: str, want: int
) -> None:
    """8 GiB by the list, 6.5 GiB on the node that is there: of three pods of 3.5 GiB two fit by the list alone."""
    flavour = msgspec.structs.replace(make_flavour("medium", "4", "8Gi", "0.1"), reserved=amounts(memory=reserved))
    made = (
        owned_node("n", memory="6656Mi")
        if ours
        else make_node("n", memory="6656Mi", labels={INSTANCE_TYPE_LABEL: "medium"})
    )
    node = msgspec.structs.replace(made, is_ready=is_ready, taints=(no_schedule("mine"),))
    pods = [make_pod(f"p{i}", "1", "3584Mi") for i in range(3)]
    assert bought(planned(pods, make_policy(flavours=[flavour]), nodes=[node])) == {"medium": want}


@pytest.mark.parametrize(
    ("shows", "asks", "want"),
    [
        pytest.param(
            amounts("4", "8Gi", 250), amounts("10m", "10Mi", 1), {"medium": 2}, id="more pods than a kubelet takes"
        ),
        pytest.param(
            amounts("4", "8Gi", 110, vendor__device=9), amounts("10m", "10Mi", 1, vendor__device=1), {}, id="a device"
        ),
        pytest.param(amounts("5", "8Gi", 110), amounts("4500m", "1Gi", 1), {}, id="more cores than are sold"),
    ],
)
def test_what_somebody_elses_node_has_besides_is_not_bought(
    shows: Resources, asks: Resources, want: dict[str, int]
) -> None:
    """A device of a plugin of theirs had a machine bought that did not take the pods it was bought for."""
    policy = make_policy(flavours=[make_flavour("medium", "4", "8Gi", "0.1")])
    shown = make_node("n", labels={INSTANCE_TYPE_LABEL: "medium"})
    node = msgspec.structs.replace(shown, allocatable=shows, taints=(no_schedule("theirs"),))
    pods = [msgspec.structs.replace(make_pod(f"p{i}"), requests=asks) for i in range(200)]
    assert bought(planned(pods, policy, nodes=[node])) == want


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param(amounts("1000", "2000Gi", 110), 20, id="far more than the flavour has"),
        pytest.param(amounts("4", "2000Gi", 110), 20, id="more memory alone"),
        pytest.param(amounts("10m", "10Mi", 110), 20, id="nearly nothing, so that larger ones would be bought"),
        pytest.param(amounts("2", "3Gi", 110), 40, id="what a kubelet may well leave"),
    ],
)
@pytest.mark.parametrize("is_remembered", [False, True])
def test_a_node_that_lies_of_itself_says_nothing_of_its_flavour(
    said: Resources, want: int, *, is_remembered: bool
) -> None:
    flavours = [make_flavour("medium", "4", "8Gi", "0.1"), make_flavour("huge", "64", "128Gi", "9")]
    node = msgspec.structs.replace(owned_node("n"), allocatable=said, taints=(no_schedule("mine"),))
    pods = [make_pod(f"p{i}", "2", "2Gi") for i in range(40)]
    shown = {"learned": {"medium": said}} if is_remembered else {"nodes": [node]}
    assert bought(planned(pods, make_policy(flavours=flavours), **shown)) == {"medium": want}


def test_a_shortage_counts_nodes_not_reasons() -> None:
    """One node that is short of cpu and memory is one node."""
    result = planned([make_pod("huge", "64", "900Gi")], nodes=[make_node("n")])
    assert "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory." in result.unplaced[0].message


def test_machines_bought_in_the_same_plan_are_no_nodes_that_refused() -> None:
    made = plan(
        make_snapshot([make_node("full", "1")], [make_pod("huge", "900"), make_pod("fits", "2")]), make_policy(), NOW
    )
    assert len(made.launch) == 1
    (huge,) = made.unplaced
    assert "0/1 nodes are available: 1 Insufficient cpu." in huge.message


def test_attach_limits_are_learned_from_a_flavours_first_node() -> None:
    """A machine that attaches one volume is not taken for one that attaches two."""
    node = owned_node("n", flavour="t3.xsmall", cpu="1", memory="1Gi", attach_limits=(("cinder", 1),))
    volumes = Volumes(
        (),
        tuple(VolumeClaim("default", name, None, "lazy") for name in "ab"),
        (StorageClass("lazy", "cinder", True),),
    )
    pods = [make_pod(f"p{i}", constraints=Constraints(claims=(name,))) for i, name in enumerate("ab")]
    full = running(make_pod("full", "1", "1Gi"), "n")
    result = planned([full, *pods], make_policy(flavours=NECTAR[:1]), nodes=[node], volumes=volumes)
    assert [len(item.pods) for item in result.launch] == [1, 1]


def test_a_namespace_that_only_pods_tell_of_can_be_selected_by_its_name() -> None:
    by_name = labels_are(**{"kubernetes.io/metadata.name": "blue"})
    near = Constraints(affinity=(PodAffinityTerm(HOST, labels_are(app="web"), (), by_name),))
    there = running(make_pod("web", namespace="blue", labels={"app": "web"}), "n")
    result = planned([there, make_pod("p", constraints=near)], nodes=[make_node("n"), make_node("m")])
    assert [item.node for item in result.bind] == ["n"]


def test_what_was_learned_of_resources_nobody_has_now_is_no_obstacle() -> None:
    learned = {"t3.xsmall": amounts("1", "1Gi", 110, vendor__device=1)}
    assert bought(planned([make_pod()], learned=learned)) == {"t3.xsmall": 1}


def test_a_node_whose_devices_have_not_registered_teaches_nothing() -> None:
    gpu = make_flavour("gpu", "2", "4Gi", "1", extended={"x__gpu": 1})
    bare = owned_node("n", flavour="gpu", cpu="2", memory="4Gi")
    wants = msgspec.structs.replace(make_pod("p"), requests=amounts("100m", "1Gi", 1, x__gpu=1))
    assert bought(planned([wants], make_policy(flavours=[gpu]), nodes=[bare])) == {"gpu": 1}


def agent(name: str, cpu: str, node: str | None, **fields: Any) -> Pod:
    owner, phase = Owner("DaemonSet", "agent"), Phase.PENDING if node is None else Phase.RUNNING
    return make_pod(name, cpu, "64Mi", owner=owner, scheduler="default-scheduler", node=node, phase=phase, **fields)


TWO_CORES = make_flavour("two", "2", "4Gi", "0.1")


def test_daemons_of_a_registered_machine_are_counted_once() -> None:
    claim = NodeClaim("c1", "any", "two", ClaimState.REGISTERED, NOW - 10, NOW - 10, instance="vm-1")
    node = owned_node("c1", flavour="two", cpu="2", memory="4Gi", is_ready=False)
    pods = [agent("a", "500m", "c1"), make_pod("p", "1500m", "1Gi")]
    result = planned(pods, make_policy(flavours=[TWO_CORES]), nodes=[node], claims=(claim,))
    assert (result.launch, [item.node for item in result.nominate]) == ((), ["c1"])


@pytest.mark.parametrize("order", [1, -1])
def test_the_newest_daemon_pod_is_the_template(order: int) -> None:
    daemons = [agent("old", "100m", "n", created_at=NOW - 900), agent("new", "900m", "m", created_at=NOW - 9)]
    nodes = [make_node("n", "100m"), make_node("m", "900m")]
    pods = [make_pod(f"p{i}", "1", "64Mi") for i in range(4)]
    result = planned([*daemons[::order], *pods], make_policy(flavours=[TWO_CORES]), nodes=nodes)
    assert len(result.launch) == 4


@pytest.mark.parametrize(
    ("said", "asked", "machines"),
    [
        pytest.param("500m", "500m", 4, id="as its template says"),
        pytest.param("500m", "1000", 4, id="a pod that asks for 1000 cores changes nothing"),
        pytest.param("500m", "1800m", 4, id="a pod that asks for more than the template changes nothing"),
        pytest.param("1000", "500m", 2, id="a template that fits no machine runs on none"),
        pytest.param(None, "1800m", 2, id="no such DaemonSet"),
    ],
)
def test_templates_say_what_a_new_machine_runs_and_no_pods_do(said: str | None, asked: str, machines: int) -> None:
    """Four pods of a core each, on machines of two cores: two to a machine, or one beside half a core of an agent."""
    forged = [agent(f"forged-{i}", asked, None) for i in range(3)]
    known = () if said is None else (msgspec.structs.replace(agent("logs", said, None), uid=""),)
    waiting = [make_pod(f"p{i}", "1", "64Mi") for i in range(4)]
    snapshot = make_snapshot([], [*forged, *waiting])
    cluster = msgspec.structs.replace(snapshot.cluster, daemons=known)
    snapshot = msgspec.structs.replace(snapshot, cluster=cluster)
    assert len(plan(snapshot, make_policy(flavours=[TWO_CORES]), NOW).launch) == machines


@pytest.mark.parametrize(
    ("phase", "machines"),
    [
        pytest.param(Phase.RUNNING, 4, id="what runs tells what admission added"),
        pytest.param(Phase.PENDING, 2, id="what waits may have been made up"),
    ],
)
def test_what_admission_added_to_a_template_counts_on_new_machines(phase: Phase, machines: int) -> None:
    """A template without requests, and a pod of it that a LimitRange gave half a core: machines of two cores, four jobs of one."""
    owner = Owner("DaemonSet", "agent", "real")
    pods = [msgspec.structs.replace(agent("a", "500m", "n"), owner=owner, phase=phase)]
    pods += [make_pod(f"p{i}", "1", "64Mi") for i in range(4)]
    snapshot = make_snapshot([make_node("n", "500m")], pods)
    template = msgspec.structs.replace(agent("agent", "0", None), owner=owner, uid="real")
    snapshot = msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, daemons=(template,)))
    assert len(plan(snapshot, make_policy(flavours=[TWO_CORES]), NOW).launch) == machines


def test_a_pod_whose_volume_is_being_made_for_a_node_keeps_its_room_there() -> None:
    """As kube-scheduler does between Reserve and PreBind: a larger pod that comes meanwhile does not take it."""
    claim = VolumeClaim("default", "data", storage_class="local", selected_node="n")
    volumes = Volumes((), (claim,), (StorageClass("local", "topolvm.io", waits_for_first_consumer=True),))
    early = make_pod("early", "1", "64Mi", constraints=Constraints(claims=("data",)))
    late = make_pod("late", "1500m", "64Mi")
    snapshot = make_snapshot([make_node("n", "2")], [late, early])
    snapshot = msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, volumes=volumes))
    held = msgspec.structs.replace(snapshot, held_back={"default/early": NOW + 5})
    none = make_policy(limits=Limits(max_nodes=0))
    assert [(item.pod, item.node) for item in plan(snapshot, none, NOW).bind] == [("default/early", "n")]
    assert [item.pod for item in plan(held, none, NOW).bind] == []


def test_an_annotation_keeps_no_room_for_a_pod_that_waits() -> None:
    """Cluster Autoscaler's mark says how a pod ends; anybody may write it, and a node's name into the affinity."""
    pin = NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("n",)),))
    forged = make_pod("forged", "1000", constraints=Constraints(node_affinity=(pin,)), scheduler="default-scheduler")
    forged = msgspec.structs.replace(forged, disruption={DAEMONSET_POD: "true"})
    result = planned([forged, make_pod("p", "1", "64Mi")], nodes=[make_node("n", "2")])
    assert [item.pod for item in result.bind] == ["default/p"]


def test_where_no_daemon_sets_are_known_those_that_wait_speak_for_none() -> None:
    waiting = [make_pod(f"p{i}", "1", "64Mi") for i in range(4)]
    result = planned([agent("forged", "1800m", None), *waiting], make_policy(flavours=[TWO_CORES]))
    assert len(result.launch) == 2


def test_a_pod_that_asks_for_more_than_its_template_takes_no_room_of_a_node() -> None:
    pin = NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("n",)),))
    forged = agent("a", "1000", None, constraints=Constraints(node_affinity=(pin,)))
    forged = msgspec.structs.replace(forged, owner=Owner("DaemonSet", "agent", "real"))
    snapshot = make_snapshot([make_node("n", "2")], [forged, make_pod("p", "1", "64Mi")])
    known = msgspec.structs.replace(agent("agent", "100m", None), uid="real")
    snapshot = msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, daemons=(known,)))
    assert [item.pod for item in plan(snapshot, make_policy(), NOW).bind] == ["default/p"]


def test_a_daemon_pod_that_waits_for_its_node_has_its_room() -> None:
    pin = NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("n",)),))
    waiting = agent("a", "500m", None, constraints=Constraints(node_affinity=(pin,)))
    result = planned(
        [waiting, make_pod("p", "2", "1Gi")], make_policy(flavours=[TWO_CORES]), nodes=[make_node("n", "2")]
    )
    assert result.bind == ()


@pytest.mark.parametrize("is_watched", [True, False])
@pytest.mark.parametrize(
    ("kind", "on", "others", "machines"),
    [
        pytest.param("AdvancedDaemonSet", ["a", "b", "c"], 0, 2, id="on each node: half a core of a new one"),
        pytest.param("AdvancedDaemonSet", ["a", "b", "c"], 3, 2, id="on half of the nodes"),
        pytest.param("AdvancedDaemonSet", ["a", "b", "c"], 4, 1, id="on fewer than half: anybody's pods"),
        pytest.param("AdvancedDaemonSet", ["a", "b"], 0, 1, id="on two nodes: too few to tell"),
        pytest.param("AdvancedDaemonSet", ["a", "b", "c", "c"], 0, 1, id="two on one node: no DaemonSet's"),
        pytest.param("ReplicaSet", ["a", "b", "c"], 0, 1, id="three replicas make no DaemonSet"),
        pytest.param("DaemonSet that does not exist", ["a", "b", "c"], 0, 1, id="nor does an owner that is made up"),
        pytest.param("DaemonSet.apps.kruise.io", ["a", "b", "c"], 0, 2, id="OpenKruise's DaemonSet"),
    ],
)
def test_a_custom_daemon_set_is_known_by_where_its_pods_run(
    kind: str, on: list[str], others: int, machines: int, is_watched: bool
) -> None:
    """Two jobs of a core share a machine of two cores, unless an agent takes half a core of it; none is bought for."""
    mark = {"disruption": {DAEMONSET_POD: "true"}, "owner": Owner(kind, "agent"), "scheduler": "default-scheduler"}
    there = [running(make_pod(f"a{i}", "500m", **mark), node) for i, node in enumerate(on)]
    waits = make_pod("waits", "1", is_unschedulable=True, **mark)
    nodes = [make_node(name, "1") for name in "abc"] + [make_node(f"other-{i}", "500m") for i in range(others)]
    jobs = [make_pod(f"p{i}", "1", "64Mi") for i in range(2)]
    snapshot = make_snapshot(nodes, [*there, waits, *jobs])
    view = msgspec.structs.replace(snapshot.cluster, daemons=() if is_watched else None)
    bought = plan(msgspec.structs.replace(snapshot, cluster=view), make_policy(flavours=[TWO_CORES]), NOW).launch
    assert len(bought) == machines


def test_a_custom_daemon_pod_of_our_scheduler_is_bound_like_any_other() -> None:
    pin = NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("n",)),))
    mark = {"disruption": {DAEMONSET_POD: "true"}, "owner": Owner("AdvancedDaemonSet", "agent")}
    waits = make_pod("a", constraints=Constraints(node_affinity=(pin,)), **mark)
    result = planned([waits], make_policy(flavours=[TWO_CORES]), nodes=[make_node("n"), make_node("m")])
    assert [(bind.pod, bind.node) for bind in result.bind] == [("default/a", "n")]


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        pytest.param(
            Constraints(node_selector=(("disk", "tape"),)),
            "every one refuses it: node(s) didn't match Pod's node affinity/selector",
            id="its selector",
        ),
        pytest.param(
            Constraints(claims=("gone",)),
            'every one refuses it: persistentvolumeclaim "gone" not found',
            id="its volume",
        ),
        pytest.param(
            Constraints(spread=(SpreadConstraint(ZONE, 1, labels_are(app="web")),)),
            "a new two would not admit it either: node(s) didn't match pod topology spread constraints "
            "(missing required label)",
            id="its spread, over zones that no machine is in",
        ),
        pytest.param(
            Constraints(affinity=(PodAffinityTerm(HOST, labels_are(app="db")),)),
            "a new two would not admit it either: node(s) didn't match pod affinity rules",
            id="its affinity to who is nowhere",
        ),
    ],
)
@pytest.mark.parametrize("most", [0, 9])
def test_the_constraint_is_named_that_really_refuses(constraints: Constraints, why: str, most: int) -> None:
    """Whether or not a limit would forbid another machine as well."""
    policy = make_policy(flavours=[TWO_CORES], limits=Limits(max_nodes=most))
    (waiting,) = planned([make_pod("p", "1", labels={"app": "web"}, constraints=constraints)], policy).unplaced
    assert waiting.reason is Unplaced.NO_FLAVOUR_FITS
    assert why in waiting.message


def test_pods_that_keep_apart_get_small_machines() -> None:
    """64 replicas, one a node: 64 of the smallest flavour that holds one, not the one that would hold many."""
    small, large = make_flavour("s", "1", "2Gi", "0.05"), make_flavour("l", "8", "16Gi", "0.39")
    apart = Constraints(anti_affinity=(PodAffinityTerm(HOST, labels_are(app="web")),))
    pods = [make_pod(f"p{i}", "500m", "1Gi", labels={"app": "web"}, constraints=apart) for i in range(64)]
    assert bought(planned(pods, make_policy(flavours=[small, large]))) == {"s": 64}


def test_spread_is_bought_for_on_one_side_only_where_the_other_has_room() -> None:
    """Zone a has 64 free cores, zone b none: of 8 pods that spread, b needs room for four, a for none."""
    plain = make_flavour("s", "1", "4Gi", "0.05", zones=("a", "b"))
    nodes = [
        make_node("roomy", "64", "64Gi", labels={ZONE: "a"}),
        make_node("full", "100m", "64Mi", labels={ZONE: "b"}),
    ]
    even = Constraints(spread=(SpreadConstraint(ZONE, 1, labels_are(app="web")),))
    pods = [make_pod(f"p{i}", "1", "1Gi", labels={"app": "web"}, constraints=even) for i in range(8)]
    result = planned(pods, make_policy(flavours=[plain]), nodes=nodes)
    assert Counter(item.zone for item in result.launch) == {"b": 4}
    assert [item.node for item in result.bind] == ["roomy"]
    assert [item.node for item in result.nominate] == ["roomy"] * 3
    assert not result.unplaced


def test_a_claims_id_is_a_label_and_a_host_name_whatever_cluster_and_group_are_called() -> None:
    policy = make_policy(cluster="c" * 30)
    found = claim_id(policy, make_snapshot(), "g" * 30, 0)
    assert len(found) == 63
    assert claim_id(policy, make_snapshot(), "g" * 30, 1) != found
    assert "--" not in claim_id(policy, make_snapshot(), "g" * 21 + "-x", 0)


def test_a_pod_whose_volume_is_there_waits_like_others_whatever_node_the_volume_was_made_for() -> None:
    """The annotation stays on the claim for ever; room is kept only while the volume is being made."""
    claim = VolumeClaim("default", "data", volume="pv", storage_class="net", selected_node="n")
    classes = (StorageClass("net", "cinder", waits_for_first_consumer=True),)
    early = make_pod("early", "1", "64Mi", constraints=Constraints(claims=("data",)))
    late = make_pod("late", "1500m", "64Mi")
    snapshot = make_snapshot([make_node("n", "2")], [late, early])
    volumes = Volumes((PersistentVolume("pv"),), (claim,), classes)
    snapshot = msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, volumes=volumes))
    none = make_policy(limits=Limits(max_nodes=0))
    assert [item.pod for item in plan(snapshot, none, NOW).bind] == ["default/late"]
