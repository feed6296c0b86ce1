"""Promises: the room on a machine to come is kept for the service's pod that waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState, NodeClaim
from htas.model.flavours import Flavour
from htas.model.nodes import CLAIM_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Limits, NodeGroup, Workload
from htas.model.snapshot import Memory
from htas.planning.place import queue
from htas.planning.planner import plan
from tests.builders import NOW, make_flavour, make_job, make_node, make_pod, make_policy, make_snapshot, owned_node

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
    promised: Mapping[str, str] = {},
    put_off: Mapping[str, float] = {},
    flavours: Sequence[Flavour] = (MACHINE,),
    **policy: Any,
) -> Plan:
    memory = Memory(promised={f"default/{pod}": claim for pod, claim in promised.items()}, put_off=put_off)
    snapshot = make_snapshot(nodes, pods, claims=tuple(claims), memory=memory)
    return plan(snapshot, make_policy([GROUP], flavours, **policy), NOW)


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


def pair(state: ClaimState, apart: float, ready_for: float = 1.0) -> tuple[list[Node], list[NodeClaim]]:
    """Machine `m` of a core, Ready for so long or on its way, and `k` of half a core, requested so much later."""
    is_ready, asked = state is ClaimState.READY, NOW - 60
    m = NodeClaim("m", "any", "machine", state, asked, asked, ready_at=NOW - ready_for if is_ready else None)
    k = NodeClaim("k", "any", "half", ClaimState.REQUESTED, asked + apart, asked + apart)
    there = [owned_node("m", flavour="machine", cpu="1", memory="2Gi")] if is_ready else []
    return there, [m, k]


@pytest.mark.parametrize("state", [ClaimState.REQUESTED, ClaimState.READY])
@pytest.mark.parametrize("apart", [-5.0, 0.0, 1.0, 10.0])
def test_it_moves_to_another_that_comes_as_soon_before_one_is_bought(state: ClaimState, apart: float) -> None:
    """The pod that `k` was bought for is gone. Small was put off by `apart`, and will not be by as much again."""
    made = planned([SMALL, LARGE], *pair(state, apart), {"small": "m"}, flavours=[MACHINE, HALF])
    assert ({**held(made), **bound(made)}, bought_for(made)) == ({"small": "k", "large": "m"}, [])
    assert made.memory.put_off == ({"default/small": NOW - 60} if apart > 0 else {})


@pytest.mark.parametrize("state", [ClaimState.REQUESTED, ClaimState.READY])
def test_but_to_none_that_comes_later(state: ClaimState) -> None:
    made = planned([SMALL, LARGE], *pair(state, 11), {"small": "m"}, flavours=[MACHINE, HALF])
    assert ({**held(made), **bound(made)}, bought_for(made)) == ({"small": "m"}, ["large"])


@pytest.mark.parametrize(("apart", "ready_for"), [(0.0, 11.0), (-11.0, 1.0)])
def test_nor_from_a_machine_that_is_there_to_one_that_is_late(apart: float, ready_for: float) -> None:
    there, claims = pair(ClaimState.READY, apart, ready_for)
    made = planned([SMALL, LARGE], there, claims, {"small": "m"}, flavours=[MACHINE, HALF])
    assert (bound(made), bought_for(made)) == ({"small": "m"}, ["large"])


def test_room_that_is_there_is_left_to_a_newcomer_where_else_one_would_be_bought() -> None:
    """Small has its own machine still, and waits no longer than for that."""
    there, (_, k) = [make_node("there", "1", "2Gi")], pair(ClaimState.REQUESTED, 0)[1]
    made = planned([SMALL, LARGE], there, [k], {"small": "k"}, flavours=[MACHINE, HALF])
    assert (bound(made), held(made), bought_for(made)) == ({"large": "there"}, {"small": "k"}, [])


def test_after_a_machine_that_never_came_a_promise_begins_anew() -> None:
    there, (m, k) = pair(ClaimState.REQUESTED, 20)
    for state, put_off in ((ClaimState.REQUESTED, {"default/small": NOW - 60}), (ClaimState.FAILED, {})):
        more_important = msgspec.structs.replace(LARGE, priority=1)
        claims = [msgspec.structs.replace(m, state=state), k]
        made = planned([SMALL, more_important], there, claims, {"small": "m"}, flavours=[MACHINE, HALF])
        assert (held(made)["small"], made.memory.put_off) == ("k", put_off)


def test_many_that_are_all_unlike_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_CLASSES", 1)
    made = planned([SMALL, LARGE], *pair(ClaimState.REQUESTED, 1), {"small": "m"}, flavours=[MACHINE, HALF])
    assert (held(made), bought_for(made)) == ({"small": "m"}, ["large"])


def test_it_is_not_put_off_again_for_each_that_comes() -> None:
    there, claims = pair(ClaimState.REQUESTED, 6)
    for first, where, bought in ((NOW - 60, "k", []), (NOW - 65, "m", ["large"])):
        put_off = {"default/small": first}
        made = planned([SMALL, LARGE], there, claims, {"small": "m"}, put_off, flavours=[MACHINE, HALF])
        assert (held(made)["small"], bought_for(made)) == (where, bought)
        assert made.memory.put_off == put_off


def test_it_stays_where_nothing_is_saved_by_moving() -> None:
    """The larger one has room on no machine, or a job would have some."""
    there, claims = pair(ClaimState.REQUESTED, 1)
    for other in (make_pod("large", "1", "3Gi"), make_job("large", cpu="1", memory="2Gi")):
        made = planned([SMALL, other], there, claims, {"small": "m"}, flavours=[MACHINE, HALF])
        assert held(made) == {"small": "m"}


def test_nobody_else_who_was_promised_a_machine_loses_it() -> None:
    """Small would take the room of one that is less important."""
    small, less = (msgspec.structs.replace(SMALL, priority=1), msgspec.structs.replace(SMALL, uid="less", name="less"))
    large, promised = msgspec.structs.replace(LARGE, priority=1), {"small": "m", "less": "k"}
    made = planned([small, less, large], *pair(ClaimState.REQUESTED, 0), promised, flavours=[MACHINE, HALF])
    assert (held(made), bought_for(made)) == (promised, ["large"])


def test_more_important_work_takes_it() -> None:
    made = planned([SMALL, msgspec.structs.replace(LARGE, priority=1)], claims=coming("m"), promised={"small": "m"})
    assert (held(made), bought_for(made)) == ({"large": "m"}, ["small"])


def test_two_nodes_that_bear_one_claims_label_are_two_nodes() -> None:
    """A copied label made the plan fail, cycle after cycle: it counted nodes by their claims."""
    copied = [make_node(name, is_ready=False, labels={CLAIM_LABEL: "one"}) for name in "ab"]
    made = planned([SMALL], copied, coming("m"), {"small": "m"})
    assert held(made) == {"small": "m"}


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
