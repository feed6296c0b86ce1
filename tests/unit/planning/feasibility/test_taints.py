"""TaintToleration and NodeUnschedulable, after kube-scheduler's tables of the plugins of those names."""

from __future__ import annotations

import pytest

from htas.model.constraints import Effect, Taint, Toleration
from htas.planning.cluster.feasibility import taints
from tests.builders import make_node, verdicts
from tests.unit.planning.feasibility.situations import pod, refusals

UNTOLERATED = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"
NO_SCHEDULE, NO_EXECUTE, PREFER = Effect.NO_SCHEDULE, Effect.NO_EXECUTE, Effect.PREFER_NO_SCHEDULE
DEDICATED = Taint("dedicated", NO_SCHEDULE, "user1")
FOO = Taint("foo", NO_SCHEDULE, "bar")
SIZE_5 = Taint("size", NO_SCHEDULE, "5")


@pytest.mark.parametrize(
    ("on_node", "tolerations", "fits"),
    [
        pytest.param((), (), True, id="no taint"),
        pytest.param((DEDICATED,), (), False, id="no toleration"),
        pytest.param(
            (DEDICATED,), (Toleration("dedicated", "Equal", "user1", NO_SCHEDULE),), True, id="the very taint"
        ),
        pytest.param((DEDICATED,), (Toleration("dedicated", "", "user1", NO_SCHEDULE),), True, id="no operator: Equal"),
        pytest.param(
            (DEDICATED,), (Toleration("dedicated", "Equal", "user2", NO_SCHEDULE),), False, id="another value"
        ),
        pytest.param((DEDICATED,), (Toleration("devoted", "Equal", "user1", NO_SCHEDULE),), False, id="another key"),
        pytest.param((FOO,), (Toleration("foo", "Exists", "", NO_SCHEDULE),), True, id="any value"),
        pytest.param((FOO,), (Toleration("foo", "Exists", "other", NO_SCHEDULE),), True, id="Exists reads no value"),
        pytest.param((FOO,), (Toleration("", "Exists"),), True, id="any taint"),
        pytest.param((FOO,), (Toleration("", "Exists", "", NO_EXECUTE),), False, id="any taint of another effect"),
        pytest.param((FOO,), (Toleration("foo", "Equal", "bar", PREFER),), False, id="of a milder effect"),
        pytest.param((FOO,), (Toleration("foo", "Equal", "bar", NO_EXECUTE),), False, id="of a harder effect"),
        pytest.param((FOO,), (Toleration("foo", "Equal", "bar"),), True, id="of every effect"),
        pytest.param(
            (Taint("dedicated", NO_SCHEDULE, "user2"), FOO),
            (Toleration("dedicated", "Equal", "user2", NO_SCHEDULE), Toleration("foo", "Exists", "", NO_SCHEDULE)),
            True,
            id="two taints, both tolerated",
        ),
        pytest.param((DEDICATED, FOO), (Toleration("foo", "Exists"),), False, id="two taints, one tolerated"),
        pytest.param((Taint("dedicated", PREFER, "user1"),), (), True, id="a preference keeps nobody out"),
        pytest.param((Taint("gone", NO_EXECUTE),), (), False, id="NoExecute keeps new pods out too"),
        pytest.param((Taint("gone", NO_EXECUTE),), (Toleration("gone", "Exists"),), True, id="NoExecute tolerated"),
        pytest.param(
            (Taint("key", NO_SCHEDULE),), (Toleration("key", "Equal", ""),), True, id="a taint without a value"
        ),
        pytest.param((SIZE_5,), (Toleration("size", "Gt", "3"),), True, id="Gt: the taint's value is greater"),
        pytest.param((SIZE_5,), (Toleration("size", "Gt", "5"),), False, id="Gt is strict"),
        pytest.param((SIZE_5,), (Toleration("size", "Gt", "12"),), False, id="Gt compares numbers, not text"),
        pytest.param((SIZE_5,), (Toleration("size", "Lt", "12"),), True, id="Lt: it is less"),
        pytest.param((SIZE_5,), (Toleration("size", "Lt", "5"),), False, id="Lt is strict"),
        pytest.param((SIZE_5,), (Toleration("size", "Gt", "-3"),), True, id="Gt than a negative number"),
        pytest.param((SIZE_5,), (Toleration("size", "Gt", "03"),), False, id="no number has leading zeros"),
        pytest.param((SIZE_5,), (Toleration("size", "Lt", str(2**63)),), False, id="nor more than 64 bits"),
        pytest.param((FOO,), (Toleration("foo", "Gt", "3"),), False, id="a taint whose value is no number"),
        pytest.param(
            (SIZE_5,), (Toleration("size", "Gt", "9"), Toleration("size", "Exists")), True, id="another one suffices"
        ),
        pytest.param((), (Toleration("size", "Gt", "9"),), True, id="a comparison is no wish: it forbids no node"),
    ],
)
def test_taints(on_node: tuple[Taint, ...], tolerations: tuple[Toleration, ...], fits: bool) -> None:
    nodes = [make_node("n", taints=on_node), make_node("free")]
    assert refusals(taints.refuse, nodes, pod(tolerations=tolerations)) == ({} if fits else {"n": UNTOLERATED})


def test_a_node_is_counted_once_however_many_taints_it_has() -> None:
    nodes = [make_node("a", taints=(DEDICATED, FOO)), make_node("b", taints=(FOO,)), make_node("c", taints=(FOO,))]
    assert refusals(taints.refuse, nodes, pod()) == dict.fromkeys("abc", UNTOLERATED)


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        pytest.param((), False, id="no toleration"),
        pytest.param((Toleration("node.kubernetes.io/unschedulable", "Exists"),), True, id="the cordon, as daemons do"),
        pytest.param(
            (Toleration("node.kubernetes.io/unschedulable", "Exists", "", NO_EXECUTE),), False, id="its eviction"
        ),
        pytest.param((Toleration("", "Exists"),), True, id="everything"),
    ],
)
def test_cordons(tolerations: tuple[Toleration, ...], fits: bool) -> None:
    nodes = [make_node("n", is_unschedulable=True), make_node("free")]
    found = refusals(taints.refuse_unschedulable, nodes, pod(tolerations=tolerations))
    assert found == ({} if fits else {"n": CORDONED})


def test_a_cordoned_nodes_taint_is_not_told_beside_the_cordon() -> None:
    cordon = Taint("node.kubernetes.io/unschedulable", NO_SCHEDULE)
    assert verdicts([make_node("n", is_unschedulable=True, taints=(cordon,))], pod()) == {"n": CORDONED}
