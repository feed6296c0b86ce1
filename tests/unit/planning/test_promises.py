"""Promises: the room on a machine to come is kept for the service's pod that waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Limits, NodeGroup, Workload
from htas.model.snapshot import Memory
from htas.planning.planner import plan
from tests.builders import NOW, make_flavour, make_job, make_node, make_pod, make_policy, make_snapshot, owned_node

MACHINE = make_flavour("machine", "1", "2Gi", "0.1")
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
    promised: Mapping[str, str] = {},
    **policy: Any,
) -> Plan:
    memory = Memory(promised={f"default/{pod}": claim for pod, claim in promised.items()})
    snapshot = make_snapshot(nodes, pods, claims=tuple(claims), memory=memory)
    return plan(snapshot, make_policy([GROUP], [MACHINE], **policy), NOW)


def held(made: Plan) -> dict[str, str]:
    return {item.pod.removeprefix("default/"): item.node for item in made.nominate}


def bound(made: Plan) -> dict[str, str]:
    return {item.pod.removeprefix("default/"): item.node for item in made.bind}


def bought_for(made: Plan) -> list[str]:
    return [pod.removeprefix("default/") for launch in made.launch for pod in launch.pods]


def test_who_waits_for_a_machine_is_remembered_with_it_whoever_it_was_bought_for() -> None:
    first = planned([SMALL])
    (launch,) = first.launch
    assert first.memory.promised == {"default/small": launch.claim}
    second = planned([SMALL, make_pod("beside", "500m", "1Gi")], claims=coming("m"))
    assert second.memory.promised == {"default/small": "m", "default/beside": "m"}
    assert not planned([SMALL], [make_node("there")]).memory.promised


def test_a_machine_that_has_come_is_not_given_to_a_larger_pod_that_came_as_it_was_ready() -> None:
    there = owned_node("m", flavour="machine", cpu="1", memory="2Gi")
    made = planned([SMALL, LARGE], [there], promised={"small": "m"})
    assert (bound(made), bought_for(made)) == ({"small": "m"}, ["large"])


def test_nor_one_on_its_way() -> None:
    made = planned([SMALL, LARGE], claims=coming("m"), promised={"small": "m"})
    assert (held(made), bought_for(made)) == ({"small": "m"}, ["large"])


def test_nor_to_one_that_has_waited_as_long_for_another_machine() -> None:
    """The small one's own comes later. Best fit alone would give the large one's to both of the small ones."""
    other = msgspec.structs.replace(SMALL, uid="other", name="other")
    promised = {"large": "first", "small": "second", "other": "second"}
    made = planned([SMALL, other, LARGE], claims=coming("first", "second"), promised=promised)
    assert (held(made), bought_for(made)) == ({"large": "first", "small": "second", "other": "second"}, [])


def test_whoever_has_room_sooner_gets_that_and_others_have_the_machine() -> None:
    made = planned([SMALL, LARGE], [make_node("there", "500m", "1Gi")], coming("m"), {"small": "m"})
    assert (bound(made), held(made), bought_for(made)) == ({"small": "there"}, {"large": "m"}, [])


def test_room_that_is_there_goes_to_no_newcomer_before_them() -> None:
    twin = msgspec.structs.replace(SMALL, uid="twin", name="a-twin", created_at=NOW)
    made = planned([twin, SMALL], [make_node("there", "500m", "1Gi")], coming("m"), {"small": "m"})
    assert (bound(made), held(made)) == ({"small": "there"}, {"a-twin": "m"})


def test_more_important_work_takes_it() -> None:
    made = planned([SMALL, msgspec.structs.replace(LARGE, priority=1)], claims=coming("m"), promised={"small": "m"})
    assert (held(made), bought_for(made)) == ({"large": "m"}, ["small"])


def test_a_promise_ends_with_the_machine() -> None:
    made = planned([SMALL, LARGE], claims=coming("other"), promised={"small": "m"})
    assert (held(made), bought_for(made)) == ({"large": "other"}, ["small"])


def test_batch_work_is_promised_nothing() -> None:
    job = make_job("job", cpu="500m", memory="1Gi", created_at=NOW)
    made = planned([job], claims=coming("m"), limits=Limits())
    assert (held(made), made.memory.promised) == ({"job": "m"}, {})


def test_a_pod_whose_bind_failed_keeps_the_room_on_its_machine_until_it_is_tried_again() -> None:
    there = owned_node("m", flavour="machine", cpu="1", memory="2Gi")
    memory = Memory(promised={"default/small": "m"})
    policy = make_policy([GROUP], [MACHINE])
    for pods in ([SMALL], [SMALL, LARGE]):  # the larger one comes meanwhile
        snapshot = make_snapshot([there], pods, memory=memory, held_back={"default/small": NOW + 30})
        made = plan(snapshot, policy, NOW)
        memory = made.memory
        assert (bound(made), held(made)["small"]) == ({}, "m")
        assert memory.promised["default/small"] == "m"
    assert bound(plan(make_snapshot([there], [SMALL, LARGE], memory=memory), policy, NOW)) == {"small": "m"}
