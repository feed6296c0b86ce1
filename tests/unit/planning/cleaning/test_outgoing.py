"""Outgoing nodes: which are to go however well they are used, and that none stands in another's way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.claims import NodeClaim
from htas.model.edge import Tier
from htas.model.flavours import Catalogue
from htas.model.nodes import DO_NOT_DISRUPT, Node
from htas.model.plan import Plan
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.model.reasons import Kept, ProposalReason
from htas.planning.cluster.outgoing import age_text, expires_at, outgoing, outgoing_nodes
from tests.builders import NOW, constrained, make_flavour, make_node, make_policy, owned_node, ready_claim
from tests.unit.planning.cleaning.world import (
    MEDIUM,
    cleaned,
    job_on,
    kept,
    message,
    moves,
    policy_with,
    quiet_snapshot,
    removed,
)

HOUR, DAY = 3600.0, 86_400.0
OLD = owned_node("n1")


def claim(age_s: float, **fields: Any) -> NodeClaim:
    return msgspec.structs.replace(ready_claim(OLD, age_s), **fields)


def aged(age_s: float | None = DAY, **group: Any) -> Policy:
    return policy_with({"max_node_age_s": age_s}, group)


@pytest.mark.parametrize(
    ("node", "held", "policy", "why"),
    [
        pytest.param(OLD, claim(DAY - 1), aged(), None, id="just younger"),
        pytest.param(OLD, claim(DAY), aged(), "1d old, 1d at most", id="just as old"),
        pytest.param(OLD, claim(40 * DAY + 7000), aged(30 * DAY), "40d1h old, 30d at most", id="older"),
        pytest.param(OLD, claim(400 * DAY), aged(None), None, id="no age is set"),
        pytest.param(OLD, claim(0.0, rented_at=NOW - DAY), aged(), "1d old, 1d at most", id="from when it was rented"),
        pytest.param(OLD, claim(2 * DAY, rented_at=NOW - 5), aged(), None, id="not from when it was wanted"),
        pytest.param(
            OLD, claim(2 * DAY, since=NOW - 5), aged(), "2d old, 1d at most", id="however lately it was Ready"
        ),
        pytest.param(OLD, claim(-DAY), aged(), None, id="from the future"),
        pytest.param(OLD, None, aged(), None, id="no claim is known for it"),
        pytest.param(make_node("n1"), claim(2 * DAY), aged(), None, id="not ours"),
        pytest.param(
            OLD, claim(2 * DAY), aged(tier=Tier.EDGE, is_elastic=False), None, id="where nothing is bought or released"
        ),
        pytest.param(OLD, claim(2 * DAY, group="gone"), aged(), None, id="of a group that is no more"),
    ],
)
def test_a_machine_expires(node: Node, held: NodeClaim | None, policy: Policy, why: str | None) -> None:
    found = outgoing(node, held, policy, NOW)
    assert (found and found.why) == why
    assert (found and found.reason) == (why and ProposalReason.EXPIRED)


def least(version: str | None = "v1.34.1", group: dict[str, Any] | None = None, **rules: Any) -> Policy:
    return policy_with({"min_kubelet_version": version, **rules}, group)


def with_kubelet(version: str, name: str = "n1") -> Node:
    return owned_node(name, kubelet=version)


@pytest.mark.parametrize(
    ("node", "policy", "why"),
    [
        pytest.param(with_kubelet("v1.33.4"), least(), "kubelet v1.33.4, v1.34.1 at least", id="older"),
        pytest.param(with_kubelet("v1.34.1+k3s1"), least(), None, id="just as old"),
        pytest.param(with_kubelet("v1.35.0"), least(), None, id="newer"),
        pytest.param(with_kubelet("v1.2.3"), least(None), None, id="no version is asked for"),
        pytest.param(OLD, least(), None, id="it tells none"),
        pytest.param(make_node("n1", kubelet="v1.33.4"), least(), None, id="not ours"),
        pytest.param(owned_node("n1", "gone", kubelet="v1.33.4"), least(), None, id="of a group that is no more"),
        pytest.param(
            with_kubelet("v1.33.4"),
            least(group={"tier": Tier.EDGE, "is_elastic": False}),
            None,
            id="where nothing is bought or released",
        ),
    ],
)
def test_a_kubelet_is_outdated(node: Node, policy: Policy, why: str | None) -> None:
    found = outgoing(node, claim(DAY), policy, NOW)
    assert (found and found.why) == why
    assert (found and found.reason) == (why and ProposalReason.OUTDATED)


def test_a_retired_flavour_is_the_first_reason_and_counts_for_nodes_of_others_too() -> None:
    policy = aged()
    catalogue = Catalogue((msgspec.structs.replace(MEDIUM, retired=True),), "USD", policy.catalogue.billing)
    policy = msgspec.structs.replace(policy, catalogue=catalogue)
    found = outgoing(OLD, claim(2 * DAY), policy, NOW)
    assert found is not None
    assert (found.reason, found.why, found.keeps_size) == (ProposalReason.RETIRED, "flavour medium is retired", False)
    assert outgoing_nodes([OLD, owned_node("n2", flavour="large")], (), policy, NOW) == {"n1"}


def test_each_group_has_an_age_of_its_own() -> None:
    groups = [
        NodeGroup("any", cleaning=CleaningRules(max_node_age_s=HOUR)),
        NodeGroup("other", cleaning=CleaningRules(max_node_age_s=3 * HOUR)),
    ]
    policy = make_policy(groups, (MEDIUM,))
    held = ready_claim(OLD, 2 * HOUR)
    assert expires_at(held, policy) == NOW - HOUR
    assert expires_at(msgspec.structs.replace(held, group="other"), policy) == NOW + HOUR


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (59.9, "59s"),
        (90, "1m30s"),
        (5400, "1h30m"),
        (36_000, "10h"),
        (86_400, "1d"),
        (90_061, "1d1h"),
        (86_461, "1d"),
        (30 * 86_400, "30d"),
    ],
)
def test_an_age_is_told_as_the_configuration_has_it(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


def expired(*pods: Any, young: tuple[str, ...] = (), policy: Policy | None = None, **circumstances: Any) -> Plan:
    """Nodes n1 to n3, two days old where one is allowed; `young` ones are an hour old."""
    nodes = [owned_node(name) for name in ("n1", "n2", "n3")]
    claims = tuple(ready_claim(node, HOUR if node.name in young else 2 * DAY) for node in nodes)
    return cleaned(quiet_snapshot(nodes, pods, claims=claims), policy or aged(), **circumstances)


def test_a_node_that_is_well_used_is_emptied_without_having_been_under_used() -> None:
    pods = [job_on("n1", "a", cpu="3"), job_on("n2", "b", cpu="1"), job_on("n3", "c", cpu="3500m")]
    found = expired(*pods, young=("n2", "n3"))
    assert [(item.node, item.reason, item.message) for item in found.remove] == [
        ("n1", ProposalReason.EXPIRED, "2d old, 1d at most, 1 pod moves")
    ]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"annotations": {DO_NOT_DISRUPT: "true"}}, Kept.DO_NOT_DISRUPT, id="annotated"),
        pytest.param({"is_ready": False}, Kept.NOT_READY, id="not Ready"),
    ],
)
def test_what_keeps_other_nodes_keeps_it(fields: dict[str, Any], reason: Kept) -> None:
    node, other = owned_node("n1", **fields), owned_node("n2")
    snapshot = quiet_snapshot(
        [node, other], [job_on("n1", "a")], claims=(ready_claim(node, 2 * DAY), ready_claim(other, HOUR))
    )
    assert kept(cleaned(snapshot, aged()))["n1"] is reason


def test_no_more_at_once_than_of_others() -> None:
    pods = [job_on("n1", "a"), job_on("n2", "b"), job_on("n3", "c")]
    found = expired(*pods, young=("n3",), policy=policy_with({"max_node_age_s": DAY, "max_nodes_at_once": 1}))
    assert len(removed(found)) == 1
    assert kept(found)[("n1" if removed(found) == ["n2"] else "n2")] is Kept.TOO_MANY_AT_ONCE


def test_while_work_waits_it_stays_and_both_are_told() -> None:
    memory = quiet_snapshot([owned_node(f"n{i}") for i in (1, 2, 3)]).memory
    nodes = [owned_node(f"n{i}") for i in (1, 2, 3)]
    snapshot = quiet_snapshot(
        nodes, [job_on("n1", "a", cpu="3")], claims=tuple(ready_claim(n, 2 * DAY) for n in nodes), memory=memory
    )
    found = cleaned(snapshot, aged(), work_is_waiting=True)
    assert message(found, "n1") == "2d old, 1d at most, utilisation 75%, but work is waiting"


def only_there(node: str) -> dict[str, Any]:
    return {"constraints": constrained(node_selector=(("kubernetes.io/hostname", node),))}


def test_one_that_nothing_could_take_over_from_is_in_no_others_way() -> None:
    """The least used was tried again and again, and no other of the group was ever replaced, nor consolidated."""
    long = {"left_s": 20 * HOUR}
    pods = [
        job_on("n1", "pinned", cpu="1", **long, **only_there("n1")),
        job_on("n2", "b", cpu="4", **long),
        job_on("n3", "c", cpu="4", **long),
    ]
    found = expired(*pods, young=("n3",), may_replace=True)
    assert [launch.replaces for proposal in found.proposals for launch in proposal.launches] == [("n2",)]
    assert kept(found)["n1"] is Kept.NO_PLACE_TO_MOVE_PODS


def test_restarts_are_worth_less_than_the_age() -> None:
    policy = aged()
    policy = msgspec.structs.replace(policy, value=msgspec.structs.replace(policy.value, restart_nanos=10**15))
    pods = [job_on("n1", "a", cpu="3"), job_on("n2", "b", cpu="1"), job_on("n3", "c", cpu="4")]
    assert removed(expired(*pods, young=("n2", "n3"), policy=policy)) == ["n1"]


def test_nothing_is_asked_of_machines_that_cannot_be_bought_again() -> None:
    """A group at its least size whose flavours are all too small now keeps what it has."""
    policy = aged(min_nodes=3)
    tiny = make_flavour("medium", "1", "1Gi", "0.01")
    policy = msgspec.structs.replace(policy, catalogue=Catalogue((tiny,), "USD", policy.catalogue.billing))
    found = expired(job_on("n1", "a", cpu="2", left_s=20 * HOUR), policy=policy, young=("n2", "n3"), may_replace=True)
    assert (found.proposals, kept(found)["n1"]) == ((), Kept.MIN_SIZE_REACHED)


def outdated(*pods: Any, kubelets: tuple[str, ...], policy: Policy | None = None, **fields: Any) -> Plan:
    """Nodes n1, n2, … with these kubelets, where v1.34.1 is asked for."""
    nodes = [with_kubelet(version, f"n{number}") for number, version in enumerate(kubelets, 1)]
    return cleaned(quiet_snapshot(nodes, pods, **fields), policy or least())


def test_a_well_used_node_with_an_older_kubelet_is_emptied_to_newer_ones() -> None:
    pods = [job_on("n1", "a", cpu="3"), job_on("n2", "b", cpu="500m"), job_on("n3", "c", cpu="1")]
    found = outdated(*pods, kubelets=("v1.33.4", "v1.33.4", "v1.34.1"), policy=least(max_nodes_at_once=1))
    assert [(item.node, item.reason, item.message) for item in found.remove] == [
        ("n2", ProposalReason.OUTDATED, "kubelet v1.33.4, v1.34.1 at least, 1 pod moves")
    ]
    assert moves(found) == [("b", "n2", "n3")]
    assert kept(found)["n1"] is Kept.TOO_MANY_AT_ONCE


@pytest.mark.parametrize(
    ("constraints", "reason"),
    [
        pytest.param(
            {"disruption": {"htas.io/do-not-disrupt": "true"}}, Kept.BLOCKED_BY_POD, id="a pod that asks to stay"
        ),
        pytest.param({"has_local_storage": True}, Kept.BLOCKED_BY_POD, id="local storage"),
    ],
)
def test_drain_rules_hold_one_with_an_older_kubelet(constraints: dict[str, Any], reason: Kept) -> None:
    found = outdated(job_on("n1", "a", **constraints), kubelets=("v1.33.4", "v1.34.1"))
    assert (kept(found)["n1"], removed(found)) == (reason, ["n2"])


@pytest.mark.parametrize(
    ("kubelet", "told", "gone"),
    [
        pytest.param("v1.34.1", None, ["n1"], id="it has a newer one"),
        pytest.param(
            "v1.33.9",
            "n2, bought to take over from it, is to go itself: kubelet v1.33.9, v1.34.1 at least",
            [],
            id="its image has an older one, too",
        ),
    ],
)
def test_nobody_moves_to_a_replacement_that_is_to_go_itself(kubelet: str, told: str | None, gone: list[str]) -> None:
    old, new = with_kubelet("v1.33.4"), with_kubelet(kubelet, "n2")
    claims = (ready_claim(old), msgspec.structs.replace(ready_claim(new, 60.0), replaces=("n1",)))
    found = outdated(job_on("n1", "a", cpu="4"), kubelets=("v1.33.4", kubelet), claims=claims)
    assert removed(found) == gone
    assert [keeping.message for keeping in found.kept if keeping.node == "n1"] == ([told] if told else [])


def test_nor_do_pods_of_other_nodes() -> None:
    nodes = [with_kubelet("v1.33.4", f"n{number}") for number in (1, 2, 3)]
    claims = (*map(ready_claim, nodes[:2]), msgspec.structs.replace(ready_claim(nodes[2], 60.0), replaces=("n1",)))
    pods = [job_on("n1", "a", cpu="4"), job_on("n2", "b", cpu="4")]
    found = outdated(*pods, kubelets=("v1.33.4",) * 3, claims=claims)
    assert (removed(found), kept(found)["n2"]) == ([], Kept.NO_PLACE_TO_MOVE_PODS)


def test_a_machine_bought_in_vain_goes_and_no_other_of_a_group_at_its_least_size() -> None:
    """Counted, it made the group larger, and an empty node went that had been there before it."""
    nodes = [with_kubelet("v1.33.4", f"n{number}") for number in (1, 2, 3)]
    bought = msgspec.structs.replace(ready_claim(nodes[2], 1200.0), replaces=("n1",))
    claims = (*map(ready_claim, nodes[:2]), bought)
    policy = least(group={"min_nodes": 2})
    found = outdated(kubelets=("v1.33.4",) * 3, claims=claims, policy=policy)
    assert removed(found) == ["n3"]
