"""Whose machine a node runs on: its providerID, then the journal, and labels only where nothing else is known."""

from __future__ import annotations

import msgspec
import pytest

from htas.execution.identity import identify, nodes_of_machine
from htas.model.claims import ClaimState, Instance, InstanceState, NodeClaim
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL, Node
from tests.builders import make_node

RIGHT = {CLUSTER_LABEL: "test", CLAIM_LABEL: "c", GROUP_LABEL: "batch"}
VM = Instance("vm", "c", "medium", InstanceState.ACTIVE, 0.0, cluster="test", claim="c", group="batch")
SECOND = msgspec.structs.replace(VM, id="vm-2", name="d", claim="d")
CLAIM = NodeClaim("c", "batch", "medium", ClaimState.READY, 0.0, 0.0, instance="vm", node="c", ready_at=1.0)
NEW = msgspec.structs.replace(CLAIM, state=ClaimState.ACTIVE, node=None, ready_at=None)


def node(name: str = "c", machine: str = "openstack:///vm", **labels: str) -> Node:
    """A node with the labels of claim c, but for those that are given; an empty one is not there."""
    said = RIGHT | {f"htas.io/{key}": text for key, text in labels.items()}
    return make_node(name, labels={key: text for key, text in said.items() if text}, provider_id=machine)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(node(claim="x"), id="another claim"),
        pytest.param(node(claim="d"), id="the claim of another machine"),
        pytest.param(node(cluster="other"), id="another cluster"),
        pytest.param(node(group="none"), id="another group"),
        pytest.param(node(cluster="", claim="", group=""), id="all labels removed"),
        pytest.param(node("renamed", claim="x"), id="another name as well"),
        pytest.param(node(machine="openstack://north/vm", claim="x"), id="a providerID with a region"),
        pytest.param(node(machine="", claim="x"), id="no providerID: the journal knows its name"),
        pytest.param(node(machine="k3s://c", claim="x"), id="a providerID of another form: the journal knows its name"),
    ],
)
@pytest.mark.parametrize("instances", [[VM], [VM, SECOND], []], ids=["listed", "beside another", "not listed"])
def test_labels_do_not_change_whose_a_node_is(seen: Node, instances: list[Instance]) -> None:
    found = identify([seen], [CLAIM], instances, "test")
    assert found.of_claim["c"].name == seen.name
    assert {key: found.nodes[0].labels[key] for key in RIGHT} == RIGHT, "plans go by the true labels"
    assert found.as_labelled == {seen.name: seen}


def test_without_a_journal_the_clouds_metadata_tell() -> None:
    found = identify([node(claim="x", group="none")], [], [VM], "test")
    assert found.of_claim["c"].labels[GROUP_LABEL] == "batch"


@pytest.mark.parametrize(
    ("seen", "is_known"),
    [
        pytest.param(node(machine=""), True, id="no providerID: its label counts"),
        pytest.param(node("other", machine=""), True, id="under another name, too"),
        pytest.param(node(machine="k3s://c"), True, id="another form of providerID, and the name agrees"),
        pytest.param(node("other", machine="k3s://other"), False, id="another form, and another name"),
        pytest.param(node(machine="openstack:///vm-2"), False, id="the machine of another claim"),
        pytest.param(node(machine="", cluster="other"), False, id="another cluster's"),
    ],
)
def test_a_node_that_the_journal_does_not_know_is_believed_only_where_nothing_speaks_against_it(
    seen: Node, is_known: bool
) -> None:
    assert ("c" in identify([seen], [NEW], [VM, SECOND], "test").of_claim) is is_known


def test_a_copied_label_does_not_make_a_node_ours() -> None:
    theirs = node("theirs", machine="aws:///i-1")
    found = identify([theirs, node()], [CLAIM], [VM], "test")
    assert found.of_claim["c"].name == "c"
    assert (found.nodes[0].claim, found.nodes[0].cluster) == (None, None)
    assert [problem.where for problem in found.problems] == ["Node theirs"]


def test_of_two_nodes_with_one_providerid_the_known_one_is_right_and_the_other_takes_no_pods() -> None:
    for nodes in ([node(), node("forged")], [node("forged"), node()]):
        found = identify(nodes, [CLAIM], [VM], "test")
        assert (found.of_claim["c"].name, found.doubles) == ("c", {"forged": "c"})
        (double,) = [each for each in found.nodes if each.name == "forged"]
        assert (double.takes_pods, double.claim) == (False, None)
        assert [problem.where for problem in found.problems] == ["Node forged"]


def test_a_kubelet_that_registers_under_another_name_is_known_though_its_old_object_stays() -> None:
    old = msgspec.structs.replace(node(), is_ready=False)
    assert identify([old, node("renamed")], [CLAIM], [VM], "test").of_claim["c"].name == "renamed"


def test_a_node_that_came_without_labels_is_no_ones_until_it_is_set_up() -> None:
    bare = node(cluster="", claim="", group="")
    found = identify([bare], [NEW], [VM], "test")
    assert (found.of_claim["c"], found.nodes, found.as_labelled) == (bare, (bare,), {})


def test_right_labels_cost_nothing() -> None:
    seen = (node(), make_node("fixed"))
    assert all(now is was for now, was in zip(identify(seen, [CLAIM], [VM], "test").nodes, seen, strict=True))


def test_a_machine_of_another_cluster_of_htas_is_nobodys_here_whatever_the_journal_says() -> None:
    strange = msgspec.structs.replace(VM, cluster="old")
    found = identify([node(cluster="old")], [CLAIM], [strange], "test")
    assert (dict(found.of_claim), found.as_labelled) == ({}, {})


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node(), node("forged")], ["c", "forged"], id="both that name it: either may run on it"),
        pytest.param([node("renamed"), node("x", machine="")], ["renamed"], id="by its label only where none names it"),
        pytest.param([node(machine="")], ["c"], id="by its label"),
        pytest.param([node(machine="", claim="x")], ["c"], id="by its name"),
        pytest.param([node("known", machine="", claim="x")], ["known"], id="by the journal"),
        pytest.param([node(machine="k3s://c", claim="x")], ["c"], id="by its name, with a providerID of another form"),
        pytest.param([node("other", machine="openstack:///vm-2")], [], id="not one that runs on another machine"),
        pytest.param([node(machine="openstack:///vm-2")], ["c"], id="its name, though it says that it runs elsewhere"),
        pytest.param([node(machine="openstack:///vm-b")], [], id="not one that runs on the other machine of its claim"),
    ],
)
def test_every_node_that_may_run_on_a_machine_speaks_against_its_deletion(
    nodes: list[Node], expected: list[str]
) -> None:
    assert [
        each.name for each in nodes_of_machine(nodes, "vm", "c", "known", {"vm": "c", "vm-2": "d", "vm-b": "c"})
    ] == expected


def test_a_node_that_the_journal_knows_is_not_taken_for_the_machine_that_it_names_falsely() -> None:
    second = msgspec.structs.replace(CLAIM, id="d", instance="vm-2", node="d")
    nodes = [node(), node("d", machine="openstack:///vm", claim="d")]
    found = identify(nodes, [CLAIM, second], [VM, SECOND], "test")
    assert {claim: each.name for claim, each in found.of_claim.items()} == {"c": "c", "d": "d"}
    assert [problem.where for problem in found.problems] == ["Node d"]


DOUBLE = msgspec.structs.replace(VM, id="vm-2")


@pytest.mark.parametrize(
    ("seen", "machines", "where"),
    [
        pytest.param(node(machine=""), [VM, DOUBLE], ["Machine vm-2"], id="no providerID: it is paid for twice"),
        pytest.param(node(machine="k3s://c"), [VM, DOUBLE], ["Machine vm-2"], id="a providerID of another form"),
        pytest.param(node(), [VM, DOUBLE], [], id="the providerID tells: the second one is deleted"),
        pytest.param(node(machine=""), [VM], [], id="one machine"),
        pytest.param(
            node(machine=""),
            [VM, msgspec.structs.replace(DOUBLE, state=InstanceState.DELETING)],
            [],
            id="the second one is being deleted",
        ),
        pytest.param(
            node(machine=""), [VM, msgspec.structs.replace(DOUBLE, cluster="other")], [], id="another cluster's"
        ),
    ],
)
def test_a_second_machine_that_pods_may_hold_is_reported(
    seen: Node, machines: list[Instance], where: list[str]
) -> None:
    problems = identify([seen], [CLAIM], machines, "test").problems
    assert [each.where for each in problems] == where
    assert all("claim c has 2 machines" in each.what for each in problems)


def test_where_the_journal_is_lost_every_machine_of_the_claim_is_named() -> None:
    problems = identify([node(machine="")], [], [VM, DOUBLE], "test").problems
    assert [each.where for each in problems] == ["Machine vm", "Machine vm-2"]
