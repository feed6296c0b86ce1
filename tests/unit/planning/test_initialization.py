"""What a registered node still waits for; what nodes offer compared with the price file."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import Effect, Taint
from htas.model.flavours import Catalogue, Learned
from htas.model.nodes import DRAINING_TAINT
from htas.model.policy import NodeGroup
from htas.model.resources import Resources
from htas.model.snapshot import ClusterView
from htas.planning.cluster.initialization import is_unusable, still_awaited
from htas.planning.cluster.offered import capped_view, learned_from, shortfall, valid
from tests.builders import NOW, amounts, make_flavour, make_node, make_policy, no_schedule, owned_node

GPU = "nvidia.com/gpu"
FLAVOUR = make_flavour("medium", "4", "16Gi", "1", extended={GPU: 2}, taints=(no_schedule("gpu"),))
GROUP = NodeGroup("any", taints=(no_schedule("site"),), startup_taints=(no_schedule("agent"),))
POLICY = make_policy([GROUP], (FLAVOUR,))
FULL = amounts("3900m", "14Gi", 110, **{GPU: 2})
DECLARED = (no_schedule("gpu"), no_schedule("site"))


def claim(state: ClaimState = ClaimState.REGISTERED, **fields: Any) -> NodeClaim:
    return NodeClaim("c", "any", "medium", state, NOW - 90, NOW - 30, **fields)


@pytest.mark.parametrize(
    ("node", "awaited", "unusable"),
    [
        pytest.param({}, (), False, id="all is there: a kubelet keeps some for itself"),
        pytest.param(
            {"allocatable": amounts("1900m", "7Gi", 110, **{GPU: 2})}, (), False, id="half the machine comes no later"
        ),
        pytest.param(
            {"allocatable": amounts("3900m", "14Gi", 110)}, (GPU,), True, id="its device plugin has not started"
        ),
        pytest.param({"allocatable": amounts("3900m", "14Gi", 110, **{GPU: 1})}, (GPU,), False, id="one of two GPUs"),
        pytest.param({"allocatable": Resources()}, ("cpu", "memory", "pods", GPU), True, id="nothing is reported yet"),
        pytest.param(
            {"allocatable": amounts("100m", "14Gi", 110, **{GPU: 2})}, ("cpu",), True, id="a fortieth of its cores"
        ),
        pytest.param(
            {"taints": (*DECLARED, no_schedule("agent"))}, ("taint agent",), True, id="a declared start-up taint"
        ),
        pytest.param(
            {"taints": (*DECLARED, Taint("x", Effect.NO_EXECUTE))}, ("taint x",), False, id="an undeclared taint"
        ),
        pytest.param(
            {"taints": (Taint("gpu", Effect.NO_SCHEDULE, "v"),)}, ("taint gpu",), False, id="with another value"
        ),
        pytest.param(
            {"taints": (*DECLARED, Taint("x", Effect.PREFER_NO_SCHEDULE))}, (), False, id="it keeps nothing out"
        ),
        pytest.param({"taints": (no_schedule("node.kubernetes.io/disk-pressure"),)}, (), False, id="a condition"),
        pytest.param({"taints": (DRAINING_TAINT,), "is_unschedulable": True}, (), False, id="we drain it ourselves"),
        pytest.param({"is_unschedulable": True}, ("kubectl uncordon",), False, id="it registered cordoned"),
    ],
)
def test_what_a_registered_node_waits_for(node: dict[str, Any], awaited: tuple[str, ...], unusable: bool) -> None:
    registered = msgspec.structs.replace(owned_node("c"), **{"allocatable": FULL, "taints": DECLARED, **node})
    assert still_awaited(claim(), registered, POLICY) == awaited
    assert is_unusable(registered, GROUP, FLAVOUR) is unusable


@pytest.mark.parametrize("state", [ClaimState.READY, ClaimState.DRAINING])
def test_what_was_initialized_waits_for_nothing(state: ClaimState) -> None:
    bare = msgspec.structs.replace(owned_node("c"), allocatable=Resources(), taints=(no_schedule("agent"),))
    assert still_awaited(claim(state), bare, POLICY) == ()
    assert still_awaited(claim(ready_at=NOW - 60), bare, POLICY) == ()


def test_what_was_learned_of_a_flavour_is_waited_for() -> None:
    node = msgspec.structs.replace(owned_node("c"), allocatable=amounts("4", "16Gi", 110, **{GPU: 1}), taints=DECLARED)
    assert still_awaited(claim(), node, POLICY, {"medium": node.allocatable}) == ()


ONE = make_flavour("one", "4", "16Gi", "1")


@pytest.mark.parametrize(
    ("offered", "known", "others", "want"),
    [
        pytest.param(amounts("2", "8Gi", 110), None, [], amounts("2", "8Gi", 110), id="half"),
        pytest.param(
            amounts("2", "8Gi", 110), amounts("4", "16Gi", 110), [], amounts("2", "8Gi", 110), id="less than the last"
        ),
        pytest.param(
            amounts("2", "8Gi", 110),
            amounts("4", "16Gi", 110),
            [amounts("4", "16Gi", 110)],
            amounts("4", "16Gi", 110),
            id="others offer more: this one is odd",
        ),
        pytest.param(
            amounts("4", "16Gi", 110), amounts("2", "8Gi", 110), [], amounts("4", "16Gi", 110), id="it shows otherwise"
        ),
        pytest.param(
            amounts("3990m", "16Gi", 110),
            amounts("4", "15.9Gi", 110),
            [],
            amounts("3990m", "15.9Gi", 110),
            id="alike: the least",
        ),
    ],
)
def test_what_is_learned_from_a_node(
    offered: Resources, known: Resources | None, others: list[Resources], want: Resources
) -> None:
    assert learned_from(offered, ONE, known, others) == want


def test_a_device_that_did_not_come_is_not_learned_as_none() -> None:
    assert learned_from(amounts("4", "16Gi", 110), FLAVOUR, None, []).amount(GPU) == 2


def test_a_device_that_is_missing_on_one_machine_is_learned_once_another_lacks_it_too() -> None:
    one = amounts("4", "16Gi", 110, **{GPU: 1})
    assert learned_from(one, FLAVOUR, None, []).amount(GPU) == 2, "a broken card says nothing of the next machine"
    assert learned_from(one, FLAVOUR, None, [one]).amount(GPU) == 1


def test_what_was_learned_counts_until_the_price_file_changes() -> None:
    half = amounts("2", "8Gi", 110)
    learned = {"one": Learned(*half.parts, promised=ONE.allocatable), "gone": Learned(*half.parts)}
    assert valid(learned, Catalogue((ONE,))) == {"one": half}
    assert valid(learned, Catalogue((make_flavour("one", "2", "8Gi", "1"),))) == {}


def test_a_shortfall_names_what_is_less() -> None:
    assert shortfall(amounts("1900m", "8Gi", 110), FLAVOUR.allocatable) == (
        f"1.9 of 4 cores, 8 GiB of 16 GiB memory, 0 of 2 {GPU}"
    )
    assert shortfall(FLAVOUR.allocatable, FLAVOUR.allocatable) == ""


@pytest.mark.parametrize(
    ("says", "believed"),
    [
        pytest.param(amounts("1000", "16Gi", 110), amounts("4", "16Gi", 110), id="1,000 cores"),
        pytest.param(amounts("4", "16Gi", 110, **{GPU: 8}), amounts("4", "16Gi", 110), id="GPUs of another flavour"),
        pytest.param(
            amounts("4", "15Gi", 250, **{"x.io/fuse": 9}),
            amounts("4", "15Gi", 250, **{"x.io/fuse": 9}),
            id="what no price file says",
        ),
    ],
)
@pytest.mark.parametrize("is_ours", [True, False])
def test_a_node_of_a_known_flavour_has_no_more_than_the_flavour(
    says: Resources, believed: Resources, *, is_ours: bool
) -> None:
    """A kubelet may write another instance type on its own node: what was launched counts."""
    labels = {"node.kubernetes.io/instance-type": "medium" if is_ours else "one"}
    node = msgspec.structs.replace(
        make_node("n"), allocatable=says, labels=labels | ({"htas.io/claim": "c"} if is_ours else {})
    )
    launched = msgspec.structs.replace(claim(), flavour="one")
    view = capped_view(ClusterView(nodes=(node,)), [launched], Catalogue((ONE, FLAVOUR)))
    assert view.nodes[0].allocatable == believed
    assert [problem.where for problem in view.problems] == (["Node n: status.allocatable"] if says != believed else [])
