"""Reservations: room on a launched machine is kept for the pods that the last plan put there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import SpreadConstraint
from htas.model.flavours import Flavour
from htas.model.nodes import CLAIM_LABEL, ZONE_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import NodeGroup, Workload
from htas.model.reservations import Reservation
from htas.model.snapshot import Memory
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    constrained,
    labels_are,
    make_flavour,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    no_schedule,
    owned_node,
    ready_claim,
    running,
)

MACHINE = make_flavour("machine", "1", "2Gi", "0.1")
HALF = make_flavour("half", "500m", "1Gi", "0.06")
GROUP = NodeGroup("any", Workload.ANY)
SMALL, LARGE = make_pod("small", "500m", "1Gi", created_at=NOW - 100), make_pod("large", "1", "2Gi", created_at=NOW)


def coming(*names: str) -> tuple[NodeClaim, ...]:
    return tuple(
        NodeClaim(name, "any", "machine", ClaimState.REQUESTED, NOW - 60 + i, NOW - 60) for i, name in enumerate(names)
    )


def planned(
    pods: Iterable[Pod],
    nodes: Iterable[Node] = (),
    claims: Iterable[NodeClaim] = (),
    reserved: Mapping[str, str] = {},
    flavours: Sequence[Flavour] = (MACHINE,),
    **policy: Any,
) -> Plan:
    memory = Memory(reservations={f"default/{pod}": Reservation(claim, NOW - 60) for pod, claim in reserved.items()})
    snapshot = make_snapshot(nodes, pods, claims=tuple(claims), memory=memory)
    return plan(snapshot, make_policy([GROUP], flavours, **policy), NOW)


def reservations(made: Plan) -> dict[str, str]:
    return {pod.removeprefix("default/"): each.claim for pod, each in made.memory.reservations.items()}


def held(made: Plan) -> dict[str, str]:
    return {item.pod.removeprefix("default/"): item.node for item in made.nominate}


def bound(made: Plan) -> dict[str, str]:
    return {item.pod.removeprefix("default/"): item.node for item in made.bind}


def bought_for(made: Plan) -> list[str]:
    return [pod.removeprefix("default/") for launch in made.launch for pod in launch.pods]


@pytest.mark.parametrize("make", [make_pod, make_job])
def test_a_pod_that_waits_for_a_machine_reserves_it_whatever_it_was_launched_for(make: Callable[..., Pod]) -> None:
    small = make("small", cpu="500m", memory="1Gi", created_at=NOW - 100)
    first = planned([small])
    (launch,) = first.launch
    assert first.memory.reservations == {"default/small": Reservation(launch.claim, NOW)}
    second = planned([small, make("beside", cpu="500m", memory="1Gi")], claims=coming("m"), reserved={"small": "m"})
    assert reservations(second) == {"small": "m", "beside": "m"}
    assert [second.memory.reservations[f"default/{pod}"].since for pod in ("small", "beside")] == [NOW - 60, NOW]
    assert not planned([small], [make_node("there")]).memory.reservations


def test_a_short_job_keeps_its_machine_when_a_longer_one_comes() -> None:
    short = make_job("short", cpu="1", memory="2Gi", runs_s=240.0, created_at=NOW - 100)
    long = make_job("long", cpu="1", memory="2Gi", runs_s=7200.0, created_at=NOW)
    made = planned([short, long], claims=coming("m"), reserved={"short": "m"})
    assert (held(made), bought_for(made)) == ({"short": "m"}, ["long"])


def test_a_machine_that_has_come_is_not_given_to_a_larger_pod_that_came_as_it_was_ready() -> None:
    there = owned_node("m", flavour="machine", cpu="1", memory="2Gi")
    made = planned([SMALL, LARGE], [there], reserved={"small": "m"})
    assert (bound(made), bought_for(made)) == ({"small": "m"}, ["large"])


def test_nor_one_on_its_way() -> None:
    made = planned([SMALL, LARGE], claims=coming("m"), reserved={"small": "m"})
    assert (held(made), bought_for(made)) == ({"small": "m"}, ["large"])


def test_nor_to_one_that_has_waited_as_long_for_another_machine() -> None:
    """The small one's own comes later. Best fit alone would give the large one's to both of the small ones."""
    other = msgspec.structs.replace(SMALL, uid="other", name="other")
    reserved = {"large": "first", "small": "second", "other": "second"}
    made = planned([SMALL, other, LARGE], claims=coming("first", "second"), reserved=reserved)
    assert (held(made), bought_for(made)) == ({"large": "first", "small": "second", "other": "second"}, [])


def test_whoever_has_room_sooner_gets_that_and_others_have_the_machine() -> None:
    made = planned([SMALL, LARGE], [make_node("there", "500m", "1Gi")], coming("m"), {"small": "m"})
    assert (bound(made), held(made), bought_for(made)) == ({"small": "there"}, {"large": "m"}, [])


def test_room_that_is_there_goes_to_no_newcomer_before_them() -> None:
    twin = msgspec.structs.replace(SMALL, uid="twin", name="a-twin", created_at=NOW)
    made = planned([twin, SMALL], [make_node("there", "500m", "1Gi")], coming("m"), {"small": "m"})
    assert (bound(made), held(made)) == ({"small": "there"}, {"a-twin": "m"})


@pytest.mark.parametrize("other", ["machine", "half"])
def test_it_stays_on_its_machine_where_another_is_launched_for_the_next(other: str) -> None:
    """A reservation is not exchanged: which pod waits for which machine does not change from plan to plan."""
    claims = [*coming("m"), NodeClaim("k", "any", other, ClaimState.REQUESTED, NOW - 59, NOW - 59)]
    made = planned([SMALL, LARGE], claims=claims, reserved={"small": "m"}, flavours=[MACHINE, HALF])
    assert held(made)["small"] == "m"


def test_more_important_work_takes_it() -> None:
    made = planned([SMALL, msgspec.structs.replace(LARGE, priority=1)], claims=coming("m"), reserved={"small": "m"})
    assert (held(made), bought_for(made)) == ({"large": "m"}, ["small"])


def test_two_nodes_that_bear_one_claims_label_are_two_nodes() -> None:
    """A copied label made the plan fail, cycle after cycle: it counted nodes by their claims."""
    copied = [make_node(name, is_ready=False, labels={CLAIM_LABEL: "one"}) for name in "ab"]
    made = planned([SMALL], copied, coming("m"), {"small": "m"})
    assert held(made) == {"small": "m"}


def test_a_reservation_ends_with_the_machine() -> None:
    made = planned([SMALL, LARGE], claims=coming("other"), reserved={"small": "m"})
    assert (held(made), bought_for(made)) == ({"large": "other"}, ["small"])


def test_a_pod_whose_bind_failed_keeps_the_room_on_its_machine_until_it_is_tried_again() -> None:
    there = owned_node("m", flavour="machine", cpu="1", memory="2Gi")
    memory = Memory(reservations={"default/small": Reservation("m", NOW - 60)})
    policy = make_policy([GROUP], [MACHINE])
    for pods in ([SMALL], [SMALL, LARGE]):  # the larger one comes meanwhile
        snapshot = make_snapshot([there], pods, memory=memory, held_back={"default/small": NOW + 30})
        made = plan(snapshot, policy, NOW)
        memory = made.memory
        assert (bound(made), held(made)["small"]) == ({}, "m")
        assert memory.reservations["default/small"] == Reservation("m", NOW - 60)
    assert bound(plan(make_snapshot([there], [SMALL, LARGE], memory=memory), policy, NOW)) == {"small": "m"}


def test_room_that_is_found_sooner_breaks_no_spread() -> None:
    """Beside its own reservation in the other zone the pod would be allowed here: it would leave two and none."""
    apart = constrained(spread=(SpreadConstraint(ZONE_LABEL, 1, labels_are(app="web")),))
    pod = make_pod("web", "500m", "1Gi", labels={"app": "web"}, constraints=apart)
    here = make_node("here", "2", "4Gi", labels={ZONE_LABEL: "a"})
    there = make_node("there", "10m", "10Mi", labels={ZONE_LABEL: "b"})
    other = running(make_pod("other", "500m", "1Gi", labels={"app": "web"}), "here")
    (claim,) = coming("m")
    made = planned([other, pod], [here, there], [msgspec.structs.replace(claim, zone="b")], {"web": "m"})
    assert (bound(made), held(made)) == ({}, {"web": "m"})


def test_a_pod_does_not_leave_its_machine_for_an_outgoing_node() -> None:
    retired = make_flavour("retired", "1", "2Gi", "0.1", retired=True)
    outgoing = owned_node("outgoing", flavour="retired", cpu="1", memory="2Gi")
    made = planned([SMALL], [outgoing], coming("m"), {"small": "m"}, flavours=[MACHINE, retired])
    assert (bound(made), held(made)) == ({}, {"small": "m"})


@pytest.mark.parametrize("name", ["m", "vm-m"])
def test_a_machine_that_is_not_initialized_keeps_its_pods_until_a_node_is_free(name: str) -> None:
    """Its node bears the claim's name or another one."""
    group = msgspec.structs.replace(GROUP, startup_taints=(no_schedule("agent"),))
    node = owned_node(
        "m", flavour="machine", cpu="1", memory="2Gi", taints=(no_schedule("agent"),), ready_since=NOW - 20
    )
    node, claim = msgspec.structs.replace(node, name=name), msgspec.structs.replace(ready_claim(node), node=name)
    memory, policy = Memory(reservations={"default/small": Reservation("m", NOW)}), make_policy([group], [MACHINE])
    made = plan(make_snapshot([node], [SMALL, LARGE], claims=[claim], memory=memory), policy, NOW)
    assert (held(made)["small"], reservations(made)["small"], bought_for(made)) == (name, "m", ["large"])
    free = make_node("free", "500m", "1Gi")
    made = plan(make_snapshot([node, free], [SMALL], claims=[claim], memory=memory), policy, NOW)
    assert bound(made) == {"small": "free"}


def test_an_overdue_job_comes_before_the_reservations_of_other_jobs() -> None:
    jobs = [make_job(f"j{i}", cpu="1", memory="1Gi", created_at=NOW - 60) for i in range(2)]
    overdue = make_job("overdue", cpu="4", memory="4Gi", created_at=NOW - 100_000)
    reserved = {"j0": "first", "j1": "second"}
    made = planned([overdue, *jobs], [make_node("n", "4", "8Gi")], coming("first", "second"), reserved)
    assert (bound(made), held(made)) == ({"overdue": "n"}, {"j0": "first", "j1": "second"})
