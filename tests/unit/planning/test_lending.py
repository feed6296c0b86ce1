"""Batch work in room that services leave: where, whose, and when not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState
from htas.model.moves import MigrationMethod
from htas.model.plan import Plan
from htas.model.pods import SAFE_TO_EVICT, Owner, Pod, RunLength, RunLengthSource
from htas.model.policy import Fallback, FallbackMode, NodeGroup, Policy, Workload
from htas.model.reasons import Kept, Unplaced
from htas.model.snapshot import Memory
from htas.planning.planner import plan
from tests.builders import (
    NECTAR,
    NOW,
    amounts,
    make_flavour,
    make_job,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

DAY_S = 86_400.0
ROOMY = owned_node("roomy", "services", "m3.small", cpu="2", memory="4Gi")
JOB = make_job("job", 600, cpu="500m", memory="1Gi")


def groups(*, lends: bool = True, flavours: tuple[str, ...] = ("*",)) -> tuple[NodeGroup, NodeGroup]:
    services = NodeGroup("services", Workload.SERVICE, lends_room=lends)
    return services, NodeGroup("batch", Workload.BATCH, flavours=flavours)


def service(name: str, age_s: float) -> Pod:
    owner = Owner("ReplicaSet", f"{name}-5d8", f"uid-{name}", 1)
    pod = make_pod(name, "100m", "100Mi", created_at=NOW - age_s, owner=owner, template=f"Deployment/{name}")
    return running(pod, "roomy", age_s)


def planned(pods: list[Pod], policy: Policy | None = None, *nodes: Any, **snapshot: Any) -> Plan:
    policy = policy or make_policy(groups=groups())
    return plan(make_snapshot(nodes or (ROOMY,), pods, **snapshot), policy, NOW)


def binds(result: Plan) -> dict[str, str]:
    return {each.pod: each.node for each in result.bind}


OLD = service("web", DAY_S)


def test_a_job_runs_in_room_that_services_leave() -> None:
    result = planned([OLD, JOB])
    assert binds(result) == {"default/job": "roomy"}
    assert not result.launch


def test_a_group_that_does_not_lend_keeps_its_room() -> None:
    result = planned([OLD, JOB], make_policy(groups=groups(lends=False)))
    assert not result.bind
    assert Counter(item.group for item in result.launch) == {"batch": 1}


@pytest.mark.parametrize(
    ("ages_s", "lends"),
    [
        pytest.param([DAY_S], True, id="one that has been there"),
        pytest.param([DAY_S, 600.0], True, id="one new service"),
        pytest.param([900.0, 300.0], False, id="two in twenty minutes: the third would find its room taken"),
        pytest.param([610.0, 605.0, 600.0], True, id="three deployed in one go"),
    ],
)
def test_room_is_lent_while_no_new_services_keep_coming(ages_s: list[float], lends: bool) -> None:
    there = [service(f"web-{i}", age_s) for i, age_s in enumerate(ages_s)]
    assert ("default/job" in binds(planned([*there, JOB]))) is lends


def test_no_empty_node_is_lent() -> None:
    """It would stay for the job alone, and is about to be given back."""
    assert not planned([JOB]).bind
    leaving = msgspec.structs.replace(OLD, deleted_at=NOW - 1.0)
    assert not planned([leaving, JOB]).bind


def test_a_job_goes_to_its_own_group_first() -> None:
    """Though it leaves less over on the services' node."""
    own = owned_node("own", "batch", "m1.medium", cpu="2", memory="8Gi")
    other = running(make_job("other", 900), "own")
    assert binds(planned([OLD, other, JOB], None, ROOMY, own)) == {"default/job": "own"}


def test_services_do_not_borrow_from_jobs() -> None:
    own = owned_node("own", "batch", "m3.small", cpu="2", memory="4Gi")
    waits = make_pod("waits", "100m", "100Mi")
    result = planned([running(make_job("other", 900), "own"), waits], None, own)
    assert not result.bind
    assert {item.group for item in result.launch} == {"services"}


def test_nothing_is_bought_for_jobs_in_a_group_that_lends() -> None:
    """Though only its flavours would hold the job: room that is over is lent, none is made."""
    policy = make_policy(groups=groups(flavours=("t3.xsmall",)))
    large = make_job("large", 600, cpu="3", memory="3Gi")
    result = planned([OLD, large], policy)
    assert not result.launch
    assert [waiting.reason for waiting in result.unplaced] == [Unplaced.NO_FLAVOUR_FITS]


def test_no_machine_with_gpus_is_lent() -> None:
    """A training of unknown length would hold it for a day after its notebooks have gone."""
    gpu = make_flavour("gpu", "8", "32Gi", "2.0", extended={"nvidia.com/gpu": 1})
    policy = make_policy(groups=groups(), flavours=[gpu])
    node = owned_node("roomy", "services", "gpu", cpu="8", memory="32Gi", extended={"nvidia.com/gpu": 1})
    training = make_job("training", 600, requests=amounts("1", "1Gi", 1, **{"nvidia.com/gpu": 1}))
    assert not planned([OLD, training], policy, node).bind
    assert not planned([OLD, JOB], policy, node).bind


def test_no_job_waits_for_a_services_machine_that_is_on_its_way() -> None:
    """It would come for services; for the job one of its own comes as soon, and goes when it ends."""
    starting = msgspec.structs.replace(ROOMY, is_ready=False)
    claim = msgspec.structs.replace(ready_claim(ROOMY, 30), state=ClaimState.REGISTERED)
    result = planned([OLD, JOB], None, starting, claims=(claim,))
    assert {item.group for item in result.launch} == {"batch"}


def on(node: str, name: str, memory: str, **fields: Any) -> Pod:
    """A service's pod that may be moved."""
    owner = Owner("ReplicaSet", f"{name}-5d8", f"uid-{name}", 1)
    says = {"htas.io/migrate": "true"}
    return running(make_pod(name, "100m", memory, owner=owner, disruption=says, created_at=NOW - DAY_S, **fields), node)


def test_nobody_is_preempted_on_a_services_node_for_a_job() -> None:
    """It may have what services leave, and no more."""
    policy = make_policy(groups=groups(flavours=("t3.xsmall",)), fallback=Fallback(mode=FallbackMode.PREEMPT))
    job = make_job("job", 600, cpu="1", memory="2Gi", priority=100)
    assert not planned([on("roomy", "web", "3Gi"), job], policy, claims=(ready_claim(ROOMY),)).preempt


def test_no_service_is_moved_to_make_room_for_a_job() -> None:
    a, b = (owned_node(name, "services", "m3.small", cpu="2", memory="4Gi") for name in "ab")
    pods = [on("a", "wa", "2Gi"), on("b", "wb", "2Gi"), make_job("job", 600, cpu="500m", memory="3Gi")]
    result = planned(pods, None, a, b, claims=(ready_claim(a), ready_claim(b)))
    assert not result.migrate
    assert {item.group for item in result.launch} == {"batch"}


def test_work_that_is_expected_keeps_no_services_node() -> None:
    """Jobs come steadily, and their own node is full: a node whose service fits elsewhere is emptied all the same."""
    a, b = (owned_node(name, "services", "m3.small", cpu="2", memory="4Gi") for name in "ab")
    own = owned_node("own", "batch", "m3.small", cpu="2", memory="4Gi")
    came = [make_job(f"j{age}", 600, cpu="100m", memory="500Mi", created_at=NOW - age) for age in range(5, 110, 15)]
    jobs = [running(job, "own", NOW - job.created_at) for job in came]
    memory = Memory(underutilized_since={"a": NOW - 7200, "b": NOW - 7200}, queue_empty_since=NOW - 7200)
    claims = tuple(ready_claim(node, 7200) for node in (a, b, own))
    pods = [on("a", "wa", "100Mi"), on("b", "wb", "3600Mi"), *jobs]
    result = planned(pods, make_policy(groups=groups(), look_ahead_s=120.0), a, b, own, claims=claims, memory=memory)
    assert [(move.pod, move.target) for move in result.migrate] == [("default/wa", "b")]
    assert Kept.NEEDED not in {kept.reason for kept in result.kept if kept.node in "ab"}


def test_no_node_is_lent_that_is_to_go() -> None:
    retired = [msgspec.structs.replace(each, retired=each.name == "m3.small") for each in NECTAR]
    result = planned([OLD, JOB], make_policy(groups=groups(), flavours=retired), claims=(ready_claim(ROOMY),))
    assert not result.bind
    assert {item.group for item in result.launch if not item.replaces} == {"batch"}


def test_a_job_of_hours_borrows_nothing() -> None:
    """It would hold a machine of eight cores once its services have gone, where one of its own costs a thirtieth."""
    assert not planned([OLD, make_job("long", 7200, cpu="100m", memory="300Mi")]).bind


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"run_length": RunLength(7200.0, RunLengthSource.DEADLINE)}, id="that may run for two hours"),
        pytest.param({"disruption": {"karpenter.sh/do-not-disrupt": "true"}}, id="that may not be disrupted"),
        pytest.param({"disruption": {SAFE_TO_EVICT: "false"}}, id="that is not safe to evict"),
    ],
)
def test_a_job_that_may_hold_the_node_for_long_borrows_nothing(fields: dict[str, Any]) -> None:
    assert not planned([OLD, msgspec.structs.replace(JOB, **fields)]).bind


SMALL = make_job("small", 600, cpu="100m", memory="100Mi")


@pytest.mark.parametrize(
    ("length", "borrows"),
    [
        pytest.param(RunLength(600.0, RunLengthSource.ANNOTATION), True, id="stated"),
        pytest.param(RunLength(600.0, RunLengthSource.DEADLINE), True, id="forced"),
        pytest.param(RunLength(600.0, RunLengthSource.LEARNED, "template", 3, 0.4), True, id="of which three ran"),
        pytest.param(RunLength(600.0, RunLengthSource.LEARNED, "template", 2, 1.0), False, id="of which two ran"),
        pytest.param(RunLength(600.0, RunLengthSource.LEARNED, "kind of owner", 9, 0.9), False, id="of any Job"),
        pytest.param(None, False, id="unknown"),
    ],
)
def test_who_may_outlast_the_services_borrows_no_dear_node(length: RunLength | None, borrows: bool) -> None:
    """The node costs 0.0686 an hour, a machine for it alone 0.0198: it counted as 600 s, and ran there for a day."""
    assert bool(planned([OLD, msgspec.structs.replace(SMALL, run_length=length)]).bind) is borrows


def test_a_job_of_unknown_length_borrows_what_costs_little_more_than_its_own() -> None:
    """A machine for it alone would cost 0.0344 an hour, the node 0.0686: at worst it is held at twice that."""
    larger = make_job("larger", 600, cpu="1", memory="1500Mi")
    assert planned([OLD, msgspec.structs.replace(larger, run_length=None)]).bind


def test_a_job_of_unknown_length_borrows_where_it_is_moved_with_its_progress() -> None:
    services, jobs = groups()
    rules = msgspec.structs.replace(services.cleaning, migration=MigrationMethod.CHECKPOINT)
    policy = make_policy(groups=(msgspec.structs.replace(services, cleaning=rules), jobs))
    assert planned([OLD, msgspec.structs.replace(SMALL, run_length=None)], policy).bind


@pytest.mark.parametrize("scheduler", ["htas", "default-scheduler"])
def test_a_service_that_has_just_come_is_placed_before_jobs_that_borrow(scheduler: str) -> None:
    """The job of higher priority took its room, and a machine was bought for the service, which stays."""
    waits = msgspec.structs.replace(service("new", 1.0), node=None, started_at=None, scheduler=scheduler)
    waits = msgspec.structs.replace(waits, requests=amounts("1500m", "3Gi", 1))
    job = make_job("job", 600, cpu="1", memory="2Gi", priority=10)
    result = planned([OLD, waits, job])
    assert "default/job" not in binds(result)
    assert {item.group for item in result.launch if "default/new" in item.pods} == set()


def test_many_jobs_at_once_borrow() -> None:
    """Asked about together: who has hope of room has it of lent room, too."""
    jobs = [make_job(f"j{i}", 600, cpu=f"{10 + i}m", memory="50Mi") for i in range(40)]
    assert len(binds(planned([OLD, *jobs]))) == 40


def test_no_job_is_moved_to_borrow() -> None:
    """Its node is little used; another room is lent: it stays where it is, and begins nothing again."""
    own = owned_node("own", "batch", "m3.small", cpu="2", memory="4Gi")
    moves = running(
        make_job("moves", 3000, cpu="100m", memory="100Mi", owner=Owner("Job", "moves", "uid-moves", 1)), "own", 60
    )
    memory = Memory(underutilized_since={"own": NOW - 7200}, queue_empty_since=NOW - 7200)
    result = planned(
        [OLD, moves], None, ROOMY, own, claims=(ready_claim(ROOMY, 7200), ready_claim(own, 7200)), memory=memory
    )
    assert not result.migrate


def static(node: str, age_s: float) -> Pod:
    """The kubelet's own pod, as kubeadm's nodes have them."""
    name = f"kube-proxy-{node}"
    pod = make_pod(name, "100m", "50Mi", is_mirror=True, owner=Owner("Node", node), created_at=NOW - age_s)
    return running(pod, node, age_s)


def test_the_kubelets_own_pods_are_no_services() -> None:
    """A node with such a pod alone is empty, and two new nodes are no two new services."""
    assert not planned([static("roomy", DAY_S), JOB]).bind
    news = [static("n1", 900.0), static("n2", 300.0)]
    nodes = [owned_node(name, "services", "t3.xsmall", cpu="1", memory="1Gi") for name in ("n1", "n2")]
    assert binds(planned([OLD, *news, JOB], None, ROOMY, *nodes)) == {"default/job": "roomy"}


def _two(**fields: Any) -> list[Pod]:
    return [msgspec.structs.replace(service(f"new-{age_s:g}", age_s), **fields) for age_s in (900.0, 300.0)]


@pytest.mark.parametrize(
    "came",
    [
        pytest.param(_two(node=None, started_at=None, gates=("quota",)), id="behind a gate"),
        pytest.param(_two(deleted_at=NOW - 1.0), id="leaving already"),
        pytest.param(_two(owner=None, twin_of="web"), id="copies of pods that move"),
    ],
)
def test_these_are_no_new_services(came: list[Pod]) -> None:
    assert binds(planned([OLD, *came, JOB])) == {"default/job": "roomy"}


def test_one_service_a_minute_for_long_is_no_single_deployment() -> None:
    there = [service(f"web-{number}", 10 + 50.0 * number) for number in range(24)]
    assert not planned([*there, JOB]).bind
