"""Outgoing nodes: which are to go however well they are used, and that none stands in another's way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState, NodeClaim
from htas.model.edge import Tier
from htas.model.flavours import Catalogue
from htas.model.nodes import DO_NOT_DISRUPT, Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import CleaningRules, Consolidation, Limits, NodeGroup, Policy
from htas.model.reasons import Kept, ProposalReason
from htas.planning.cluster.outgoing import (
    Grounds,
    age_text,
    changes_of_outgoing,
    expires_at,
    outgoing,
    outgoing_nodes,
    why_not_repaired,
)
from htas.planning.cluster.unhealthy import too_many_unhealthy
from htas.planning.disrupt.search_request import circumstances
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    constrained,
    make_flavour,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
)
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
            OLD,
            claim(2 * DAY),
            aged(tier=Tier.EDGE, is_elastic=False),
            None,
            id="where HTAS launches and deletes nothing",
        ),
        pytest.param(OLD, claim(2 * DAY, group="gone"), aged(), None, id="of a group that is no more"),
    ],
)
def test_a_machine_expires(node: Node, held: NodeClaim | None, policy: Policy, why: str | None) -> None:
    found = outgoing(node, held, Grounds(policy, NOW))
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
            id="where HTAS launches and deletes nothing",
        ),
    ],
)
def test_a_kubelet_is_outdated(node: Node, policy: Policy, why: str | None) -> None:
    found = outgoing(node, claim(DAY), Grounds(policy, NOW))
    assert (found and found.why) == why
    assert (found and found.reason) == (why and ProposalReason.OUTDATED)


MINUTE = 60.0


def repairing(borne: dict[str, float] | None = None, group: dict[str, Any] | None = None, **rules: Any) -> Policy:
    borne = {"KernelDeadlock": 10 * MINUTE} if borne is None else borne
    return policy_with({"repair_s": tuple(borne.items()), **rules}, group)


def bearing(for_s: float, condition: str = "KernelDeadlock", name: str = "n1", **fields: Any) -> Node:
    return owned_node(name, conditions=((condition, NOW - for_s),), **fields)


def grounds(policy: Policy, *others: Node) -> Grounds:
    """Of a group of four nodes that are well beside the others."""
    return Grounds.of(make_snapshot([*(owned_node(f"w{i}") for i in range(4)), *others]), policy, NOW)


BOTH = {"KernelDeadlock": 10 * MINUTE, "DiskPressure": 30 * MINUTE}
TOO_LONG = "KernelDeadlock for 10m, 10m at most"


@pytest.mark.parametrize(
    ("node", "policy", "why"),
    [
        pytest.param(bearing(10 * MINUTE - 1), repairing(), None, id="not for long enough"),
        pytest.param(bearing(10 * MINUTE), repairing(), TOO_LONG, id="for just long enough"),
        pytest.param(
            bearing(DAY), repairing(), "KernelDeadlock for 1d, 10m at most", id="since long before it was asked for"
        ),
        pytest.param(bearing(DAY, "DiskPressure"), repairing(), None, id="a condition that nobody named"),
        pytest.param(
            owned_node("n1", conditions=(("DiskPressure", NOW - 31 * MINUTE), ("KernelDeadlock", NOW - MINUTE))),
            repairing(BOTH),
            "DiskPressure for 31m, 30m at most",
            id="of two that which has lasted too long",
        ),
        pytest.param(
            owned_node("n1", conditions=(("DiskPressure", NOW - 31 * MINUTE), ("KernelDeadlock", NOW - 12 * MINUTE))),
            repairing(BOTH),
            "KernelDeadlock for 12m, 10m at most",
            id="of two that have that which is overdue for longer",
        ),
        pytest.param(bearing(-MINUTE), repairing({"KernelDeadlock": 0.0}), None, id="from the future"),
        pytest.param(
            bearing(0.0), repairing({"KernelDeadlock": 0.0}), "KernelDeadlock for 0s, 0s at most", id="at once"
        ),
        pytest.param(bearing(DAY), repairing({}), None, id="nothing is repaired"),
        pytest.param(OLD, repairing(), None, id="it is well"),
        pytest.param(
            make_node("n1", conditions=(("KernelDeadlock", NOW - DAY),)), repairing(), None, id="somebody else's node"
        ),
        pytest.param(bearing(DAY, group="gone"), repairing(), None, id="of a group that is no more"),
        pytest.param(
            bearing(DAY),
            repairing(group={"tier": Tier.EDGE, "is_elastic": False}),
            None,
            id="where HTAS launches and deletes nothing",
        ),
    ],
)
def test_a_node_is_unhealthy(node: Node, policy: Policy, why: str | None) -> None:
    found = outgoing(node, claim(DAY), grounds(policy, node))
    assert (found and found.why) == why
    assert (found and (found.reason, found.keeps_size, found.is_urgent)) == (
        why and (ProposalReason.UNHEALTHY, True, True)
    )


@pytest.mark.parametrize(
    ("size", "unhealthy", "is_repaired"),
    [
        pytest.param(1, 1, True, id="the only one"),
        pytest.param(2, 2, False, id="both"),
        pytest.param(5, 1, True, id="one of five"),
        pytest.param(5, 2, False, id="two of five"),
        pytest.param(6, 2, True, id="two of six, rounded up"),
        pytest.param(10, 2, True, id="a fifth"),
        pytest.param(10, 3, False, id="more than a fifth"),
    ],
)
def test_none_is_repaired_where_more_than_a_fifth_are_unhealthy(size: int, unhealthy: int, is_repaired: bool) -> None:
    """One that bears a condition since a moment ago counts; other groups and others' nodes do not."""
    sick = [bearing(0.0 if i else DAY, name=f"s{i}") for i in range(unhealthy)]
    well = [owned_node(f"w{i}") for i in range(size - unhealthy)]
    apart = [bearing(DAY, name="other", group="gone"), make_node("foreign", conditions=(("KernelDeadlock", NOW),))]
    seen = Grounds.of(make_snapshot([*sick, *well, *apart]), repairing(), NOW)
    assert (outgoing(sick[0], None, seen) is not None) is is_repaired
    told = f"{unhealthy} of {size} nodes of group any are unhealthy, repaired up to {-(-size // 5)}"
    assert why_not_repaired(sick[0], seen) == (
        None if is_repaired else f"KernelDeadlock for 1d, 10m at most, but {told}"
    )
    assert why_not_repaired(sick[-1], seen) is None or unhealthy == 1, "its own time has not come"


def test_an_unhealthy_node_goes_for_that_first() -> None:
    node, policy = bearing(DAY), repairing(max_node_age_s=HOUR)
    for seen, reason in (
        (grounds(policy, node), ProposalReason.UNHEALTHY),
        (grounds(policy, node, bearing(DAY, name="n2"), bearing(DAY, name="n3")), ProposalReason.EXPIRED),
    ):
        found = outgoing(node, claim(DAY), seen)
        assert found is not None
        assert found.reason is reason


def test_time_alone_makes_nodes_outgoing_at_these_instants() -> None:
    nodes = [OLD, bearing(MINUTE, name="n2"), bearing(MINUTE, "DiskPressure", name="n3")]
    policy = repairing(max_node_age_s=DAY)
    instants = changes_of_outgoing(nodes, [claim(HOUR)], policy)
    assert sorted(instants) == [NOW + 9 * MINUTE, NOW + DAY - HOUR]


def test_a_retired_flavour_is_the_first_reason_and_counts_for_nodes_of_others_too() -> None:
    policy = aged()
    catalogue = Catalogue((msgspec.structs.replace(MEDIUM, retired=True),), "USD", policy.catalogue.billing)
    policy = msgspec.structs.replace(policy, catalogue=catalogue)
    found = outgoing(OLD, claim(2 * DAY), Grounds(policy, NOW))
    assert found is not None
    assert (found.reason, found.why, found.keeps_size) == (ProposalReason.RETIRED, "flavour medium is retired", False)
    assert set(outgoing_nodes([OLD, owned_node("n2", flavour="large")], (), Grounds(policy, NOW))) == {"n1"}


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
    assert message(found, "n1") == "2d old, 1d at most, utilisation 75%, but pods are pending"


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
            "n2, launched to replace it, is to be deleted itself: kubelet v1.33.9, v1.34.1 at least",
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


def unhealthy(*pods: Any, sick: int = 1, policy: Policy | None = None, **fields: Any) -> Plan:
    """Six nodes n1 to n6, the first of which have borne a condition for a day."""
    nodes = [
        bearing(DAY, name=f"n{number}", **fields) if number <= sick else owned_node(f"n{number}")
        for number in range(1, 7)
    ]
    return cleaned(quiet_snapshot(nodes, pods), policy or repairing())


FULL = [job_on(f"n{number}", f"full-{number}", cpu="4") for number in range(3, 7)]


def test_a_well_used_unhealthy_node_is_emptied_to_one_that_is_well() -> None:
    found = unhealthy(job_on("n1", "a", cpu="3"), job_on("n2", "b", cpu="1"), *FULL)
    assert [(item.node, item.reason, item.message) for item in found.remove] == [
        ("n1", ProposalReason.UNHEALTHY, "KernelDeadlock for 1d, 10m at most, 1 pod moves")
    ]
    assert moves(found) == [("a", "n1", "n2")]


def test_no_pod_moves_to_an_unhealthy_node() -> None:
    found = unhealthy(job_on("n1", "a", cpu="2"), job_on("n2", "b", cpu="1"), *FULL, policy=repairing({}))
    assert moves(found) == [("b", "n2", "n1")]
    found = unhealthy(job_on("n1", "a", cpu="2", **only_there("n1")), job_on("n2", "b", cpu="1"), *FULL)
    assert (moves(found), kept(found)["n1"]) == ([], Kept.NO_PLACE_TO_MOVE_PODS)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"annotations": {DO_NOT_DISRUPT: "true"}}, Kept.DO_NOT_DISRUPT, id="annotated"),
        pytest.param({"is_ready": False}, Kept.NOT_READY, id="not Ready"),
    ],
)
def test_what_keeps_other_nodes_keeps_an_unhealthy_one(fields: dict[str, Any], reason: Kept) -> None:
    assert kept(unhealthy(job_on("n1", "a"), **fields))["n1"] is reason


@pytest.mark.parametrize(
    "constraints",
    [
        pytest.param({"disruption": {"htas.io/do-not-disrupt": "true"}}, id="a pod that asks to stay"),
        pytest.param({"has_local_storage": True}, id="local storage"),
    ],
)
def test_drain_rules_hold_an_unhealthy_one(constraints: dict[str, Any]) -> None:
    assert kept(unhealthy(job_on("n1", "a", **constraints)))["n1"] is Kept.BLOCKED_BY_POD


@pytest.mark.parametrize(
    ("sick", "reason"),
    [
        pytest.param(2, Kept.NO_PLACE_TO_MOVE_PODS, id="a fifth, rounded up"),
        pytest.param(3, Kept.TOO_MANY_UNHEALTHY, id="more"),
        pytest.param(6, Kept.TOO_MANY_UNHEALTHY, id="all, as a detector that is wrong would have it"),
    ],
)
def test_too_many_unhealthy_nodes_stay_with_a_reason(sick: int, reason: Kept) -> None:
    pods = [job_on(f"n{number}", f"full-{number}", cpu="4", left_s=20 * HOUR) for number in range(1, 7)]
    found = unhealthy(*pods, sick=sick)
    assert {kept(found)[f"n{number}"] for number in range(1, sick + 1)} == {reason}
    assert removed(found) == []


@pytest.mark.parametrize(
    ("sick", "lost", "lost_as", "why"),
    [
        pytest.param(1, 0, {}, None, id="one of five that bears a condition"),
        pytest.param(
            1, 1, {}, "2 of 5 nodes of group any are unhealthy (1 not Ready), repaired up to 1", id="one lost"
        ),
        pytest.param(
            1, 3, {}, "4 of 5 nodes of group any are unhealthy (3 not Ready), repaired up to 1", id="three lost"
        ),
        pytest.param(
            1,
            3,
            {"state": ClaimState.REGISTERED, "ready_at": NOW - HOUR},
            "4 of 5 nodes of group any are unhealthy (3 not Ready), repaired up to 1",
            id="lost, as their claims know",
        ),
        pytest.param(1, 3, {"state": ClaimState.REGISTERED}, None, id="they come up for the first time"),
        pytest.param(
            1, 3, {"state": ClaimState.DRAINING, "ready_at": NOW - HOUR}, None, id="they are being given back"
        ),
        pytest.param(2, 0, {}, "2 of 5 nodes of group any are unhealthy, repaired up to 1", id="two ill"),
    ],
)
def test_nodes_that_are_not_ready_count_among_the_unhealthy(
    sick: int, lost: int, lost_as: dict[str, Any], why: str | None
) -> None:
    """A machine was bought for the fifth of five nodes when three had lost their network and one had a condition."""
    ill = [bearing(DAY, name=f"ill-{i}") for i in range(sick)]
    gone = [owned_node(f"lost-{i}", is_ready=False) for i in range(lost)]
    well = [owned_node(f"well-{i}") for i in range(5 - sick - lost)]
    claims = [
        *map(ready_claim, [*ill, *well]),
        *(msgspec.structs.replace(ready_claim(node), **lost_as) for node in gone),
    ]
    told = too_many_unhealthy([*ill, *gone, *well], claims, repairing())
    assert told == ({"any": why} if why is not None else {})


BUSY = make_job("waits", 600, cpu="4")


@pytest.mark.parametrize(
    ("policy", "most", "replaced"),
    [
        pytest.param(repairing(), 9, 1, id="it is bought for beside the work that waits"),
        pytest.param(repairing(), 6, 0, id="the last machine of a limit is the work's"),
        pytest.param(repairing(), 7, 1, id="and the next one its own"),
        pytest.param(aged(), 9, 0, id="one that is only too old waits for the queue"),
    ],
)
def test_work_that_waits_comes_first_and_an_urgent_replacement_beside_it(
    policy: Policy, most: int, replaced: int
) -> None:
    """Five full nodes, one of which is to go, while a job waits that none has room for: 0 or 1 replacements."""
    nodes = [bearing(DAY, name="n1"), *(owned_node(f"n{i}") for i in range(2, 6))]
    pods = [job_on(f"n{i}", f"full-{i}", cpu="4", left_s=20 * HOUR) for i in range(1, 6)]
    claims = tuple(ready_claim(node, 2 * DAY if node.name == "n1" else 3600.0) for node in nodes)
    policy = msgspec.structs.replace(policy, limits=Limits(max_nodes=most))
    made = plan(quiet_snapshot(nodes, [*pods, BUSY], claims=claims), policy, NOW)
    assert [launch.pods for launch in made.launches] == [("default/waits",)] + [()] * replaced
    assert [launch.replaces for launch in made.launches if launch.replaces] == [("n1",)] * replaced
    assert len({launch.claim for launch in made.launches}) == 1 + replaced


@pytest.mark.parametrize(
    ("waiting", "moved"),
    [
        pytest.param((), [("full-1", "n1", "n2")], id="nobody waits"),
        pytest.param((make_job("small", 600, cpu="3"),), [], id="a job that has this room"),
        pytest.param((make_job("huge", 600, cpu="8"),), [("full-1", "n1", "n2")], id="a job that has none there"),
    ],
)
def test_an_urgent_node_is_emptied_to_the_room_that_waiting_work_leaves(
    waiting: tuple[Pod, ...], moved: list[tuple[str, str, str]]
) -> None:
    """The job of three cores has the three that are free, in the same plan."""
    nodes = [bearing(DAY, name="n1"), *(owned_node(f"n{i}") for i in range(2, 6))]
    cores = {1: "3", 2: "1", 3: "4", 4: "4", 5: "4"}
    pods = [job_on(f"n{i}", f"full-{i}", cpu=cpu, left_s=20 * HOUR) for i, cpu in cores.items()]
    made = plan(quiet_snapshot(nodes, [*pods, *waiting]), repairing(), NOW)
    assert moves(made) == moved


def test_work_that_waits_does_not_get_what_takes_over_from_an_urgent_node() -> None:
    """Of six machines, as many as there may be, one is empty: the ill node's pod goes there, and the job waits on."""
    nodes = [bearing(DAY, name="n1"), *(owned_node(f"n{i}") for i in range(2, 7))]
    pods = [job_on(f"n{i}", f"full-{i}", cpu="4", left_s=20 * HOUR) for i in range(1, 6)]
    taking_over = msgspec.structs.replace(ready_claim(nodes[5], 60.0), replaces=("n1",))
    claims = (*map(ready_claim, nodes[:5]), taking_over)
    policy = msgspec.structs.replace(repairing(), limits=Limits(max_nodes=6))
    made = plan(quiet_snapshot(nodes, [*pods, BUSY], claims=claims), policy, NOW)
    assert (moves(made), made.bind, made.launches) == ([("full-1", "n1", "n6")], (), ())
    [waits] = made.unplaced
    assert waits.nodes["node(s) were launched to replace another"] == 1


def test_where_too_many_are_unhealthy_a_cheaper_machine_may_take_over_as_ever() -> None:
    policy = repairing(utilization_threshold=0.3, consolidation=Consolidation(enabled=True))
    nodes = [bearing(DAY, name=name, flavour="large", cpu="8", memory="16Gi") for name in ("n1", "n2")]
    pods = [job_on("n1", "a", cpu="4", left_s=20 * HOUR), job_on("n2", "b", cpu="5", left_s=20 * HOUR)]
    found = cleaned(quiet_snapshot(nodes, pods), policy, may_replace=True)
    assert kept(found) == {"n1": Kept.TOO_MANY_UNHEALTHY, "n2": Kept.TOO_MANY_UNHEALTHY}
    bought = [(each.reason, launch.replaces) for each in found.proposals for launch in each.launches]
    assert bought == [(ProposalReason.CONSOLIDATED, ("n1",))]


@pytest.mark.parametrize("sick", [1, 3], ids=["one that is repaired", "more than a fifth, of which none is"])
def test_pods_go_to_what_is_well_first(sick: int) -> None:
    """Too many were ill, so that none was replaced, and the best fit sent new pods to these again."""
    ill = [bearing(DAY, name=f"a{i}", cpu="2", memory="4Gi") for i in range(sick)]
    well = [owned_node(f"w{i}") for i in range(6 - sick)]
    policy = repairing()
    made = plan(
        make_snapshot([*ill, *well], [make_pod("new")], claims=tuple(map(ready_claim, [*ill, *well]))), policy, NOW
    )
    [bind] = made.bind
    assert bind.node.startswith("w")


def test_a_proof_ends_where_a_node_is_well_again() -> None:
    def now(node: Node) -> str:
        return circumstances(make_snapshot([node, owned_node("other")]), repairing())

    assert now(bearing(DAY)) != now(OLD)
    assert now(bearing(DAY)) != now(bearing(60.0)), "it is borne for ten minutes"
