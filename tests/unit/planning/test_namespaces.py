"""Limits of namespaces: who is charged for what is bought, and who waits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import Constraints, PodAffinityTerm
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.plan import Plan
from htas.model.pods import DAEMONSET_POD, Owner, Pod
from htas.model.policy import Fallback, FallbackMode, Limits, NamespaceLimit, Policy, Promises
from htas.model.reasons import Unplaced
from htas.model.snapshot import Memory
from htas.planning.namespaces.charges import charges
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    labels_are,
    make_flavour,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)

CENT = 10_000_000
"""In billionths."""
BIG = make_flavour("big", "8", "32Gi", "0.40")
SMALL = make_flavour("small", "2", "8Gi", "0.10")


def of(namespace: str, name: str, cpu: str = "1", memory: str = "1Gi", **how: Any) -> Pod:
    return make_pod(name, cpu, memory, namespace=namespace, uid=f"{namespace}-{name}", **how)


def limited(cores: int | None = None, cents: int | None = None, name: str = "greedy", **how: Any) -> Policy:
    limit = NamespaceLimit((name,), None if cores is None else cores * 1000, None if cents is None else cents * CENT)
    return make_policy(flavours=[SMALL, BIG], namespaces=(limit,), **how)


def waiting_for_limits(made: Plan) -> set[str]:
    return {item.pod for item in made.unplaced if item.reason is Unplaced.NAMESPACE_LIMIT}


def big_node(name: str) -> Any:
    return owned_node(name, flavour="big", cpu="8", memory="32Gi")


CHARGED = [
    pytest.param(
        [of("a", "x", "4"), of("b", "y", "2")], {"a/x": (5333, 26), "b/y": (2666, 13)}, id="by what each uses of it"
    ),
    pytest.param([of("a", "tiny", "1m", "1Mi")], {"a/tiny": (8000, 40)}, id="who is alone pays for all of it"),
    pytest.param(
        [of("a", "cores", "4", "1Gi"), of("b", "memory", "1m", "16Gi")],
        {"a/cores": (4000, 20), "b/memory": (4000, 20)},
        id="memory counts as much as cores",
    ),
    pytest.param(
        [of("a", "x"), of("k", "d", "4", owner=Owner("DaemonSet", "d", "d"))],
        {"a/x": (8000, 40)},
        id="what runs on every node is nobody's",
    ),
    pytest.param(
        [of("a", "x"), of("b", "says-so", disruption={DAEMONSET_POD: "true"})],
        {"a/x": (4000, 20), "b/says-so": (4000, 20)},
        id="but not what only says that it does",
    ),
]


@pytest.mark.parametrize(("pods", "want"), CHARGED)
def test_a_machine_is_charged_to_the_pods_on_it(pods: list[Pod], want: dict[str, tuple[int, int]]) -> None:
    snapshot = make_snapshot([big_node("n")], [running(pod, "n") for pod in pods])
    found = charges(snapshot, limited())
    assert {key: (charge.cpu_m, charge.nanos // CENT) for key, charge in found.items()} == want


def test_nodes_that_were_not_bought_are_nobodys_bill() -> None:
    assert charges(make_snapshot([make_node("n")], [running(of("a", "x"), "n")]), limited()) == {}


HELD = [
    pytest.param(limited(cores=4), 4, id="cores"),
    pytest.param(limited(cents=20), 4, id="price"),
    pytest.param(limited(cores=1), 1, id="less than the smallest machine: one shares another's"),
    pytest.param(limited(cores=100), 20, id="more than they ask for"),
    pytest.param(limited(cores=4, name="gre*"), 4, id="by a pattern"),
    pytest.param(limited(cores=4, name="other"), 20, id="of another namespace"),
]


@pytest.mark.parametrize(("policy", "served"), HELD)
def test_a_namespace_gets_machines_up_to_its_limit_and_others_get_theirs(policy: Policy, served: int) -> None:
    """Twenty pods of a core are there first; a small machine of two cores holds one, beside what the system takes."""
    greedy = [of("greedy", f"g{i:02}", created_at=NOW - 100) for i in range(20)]
    quiet = [of("quiet", f"q{i}", created_at=NOW - 1) for i in range(3)]
    made = plan(make_snapshot(pods=[*greedy, *quiet]), policy, NOW)
    bought_for = Counter(key.partition("/")[0] for item in made.launch for key in item.pods)
    assert bought_for["quiet"] == 3
    assert bought_for["greedy"] <= served
    assert bought_for["greedy"] >= served // 2
    assert len(waiting_for_limits(made)) == 20 - bought_for["greedy"]


def test_who_keeps_others_off_its_machines_pays_for_them() -> None:
    """Pods of a millicore that share no node: each has a machine of its own, and two are within 20 cents."""
    apart = Constraints(anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app="x")),))
    pods = [of("greedy", f"g{i}", "1m", "1Mi", labels={"app": "x"}, constraints=apart) for i in range(9)]
    made = plan(make_snapshot(pods=pods), limited(cents=20), NOW)
    assert Counter(item.flavour for item in made.launch) == {"small": 2}


def test_what_was_bought_for_others_is_not_filled_by_who_has_enough() -> None:
    there = [running(of("greedy", "r", "8"), "full"), running(of("quiet", "q", "1"), "roomy")]
    made = plan(
        make_snapshot([big_node("full"), big_node("roomy")], [*there, of("greedy", "g")]), limited(cores=8), NOW
    )
    assert not made.bind
    assert waiting_for_limits(made) == {"greedy/g"}
    why = next(item.message for item in made.unplaced)
    assert "namespace greedy has 8 of 8 cores of the launched machines" in why


def test_a_machine_that_a_namespace_pays_for_alone_takes_more_of_its_pods() -> None:
    """It is charged all of it already, so a pod more costs nothing."""
    there = running(of("greedy", "r", "4"), "full")
    made = plan(make_snapshot([big_node("full")], [there, of("greedy", "g")]), limited(cores=8), NOW)
    assert [(bind.pod, bind.node) for bind in made.bind] == [("greedy/g", "full")]


def test_a_machine_launched_for_others_is_charged_in_full_and_then_by_shares() -> None:
    """A pod of a namespace of one core waits until the machine starts, and then shares it."""
    pods = [of("quiet", "q", "6"), of("greedy", "g", "100m", "100Mi")]
    policy = limited(cores=1)
    made = plan(make_snapshot(pods=pods), policy, NOW)
    (launch,) = made.launch
    assert launch.pods == ("quiet/q",)
    assert waiting_for_limits(made) == {"greedy/g"}
    coming = NodeClaim(launch.claim, launch.group, launch.flavour, ClaimState.REQUESTED, NOW, NOW)
    then = plan(make_snapshot(pods=pods, claims=(coming,)), policy, NOW)
    assert {(hold.pod, hold.node) for hold in then.nominate} == {("quiet/q", launch.claim), ("greedy/g", launch.claim)}
    assert not then.launch


def test_two_namespaces_share_a_launch_of_one_that_has_a_limit() -> None:
    """The limited one is charged all of the machine, and may have it: one machine holds both."""
    pods = [of("quiet", "q", "4"), of("greedy", "g", "2")]
    made = plan(make_snapshot(pods=pods), limited(cores=8, cents=40), NOW)
    assert [set(item.pods) for item in made.launch] == [{"quiet/q", "greedy/g"}]


def test_a_pod_beyond_the_limit_keeps_no_node() -> None:
    """An empty node is deleted although a pod is pending that it would hold."""
    there = running(of("greedy", "r", "8"), "full")
    nodes, long_ago = [big_node("full"), big_node("empty")], dict.fromkeys(("full", "empty"), NOW - 1000)
    snapshot = make_snapshot(
        nodes,
        [there, of("greedy", "g")],
        claims=tuple(map(ready_claim, nodes)),
        memory=Memory(long_ago, long_ago, NOW - 1000),
    )
    made = plan(snapshot, limited(cores=8), NOW)
    assert waiting_for_limits(made) == {"greedy/g"}
    assert [item.node for item in made.remove] == ["empty"]


def test_nodes_that_were_not_bought_take_them_all_the_same() -> None:
    there = [running(of("greedy", "r", "4"), "full")]
    made = plan(make_snapshot([big_node("full"), make_node("own")], [*there, of("greedy", "g")]), limited(cores=8), NOW)
    assert [(bind.pod, bind.node) for bind in made.bind] == [("greedy/g", "own")]


def test_a_smaller_pod_behind_one_that_is_beyond_the_limit_gets_what_is_left() -> None:
    pods = [of("greedy", "large", "7", "1Gi", created_at=NOW - 9), of("greedy", "little", "1", created_at=NOW - 1)]
    made = plan(make_snapshot(pods=pods), limited(cores=2), NOW)
    assert [item.pods for item in made.launch] == [("greedy/little",)]
    assert waiting_for_limits(made) == {"greedy/large"}


def test_nobody_is_preempted_beyond_the_limit() -> None:
    """The node is full of another's lesser work, and nothing can be bought."""
    victim = running(of("quiet", "q", "8"), "n")
    mine = running(of("greedy", "r", "8", priority=2000), "m")
    important = of("greedy", "g", "4", priority=1000)
    fallback = Fallback(mode=FallbackMode.PREEMPT, promises=Promises.KEEP)
    snapshot = make_snapshot([big_node("n"), big_node("m")], [victim, mine, important])
    free = limited(cores=100, limits=Limits(max_nodes=0), fallback=fallback)
    assert [item.pod for item in plan(snapshot, free, NOW).preempt] == ["quiet/q"]
    bound = limited(cores=8, limits=Limits(max_nodes=0), fallback=fallback)
    assert not plan(snapshot, bound, NOW).preempt


def test_nor_where_the_victims_share_of_the_machine_falls_to_its_namespace() -> None:
    """With the other's pod gone, the one that runs pays for all of the machine, and one more pod adds nothing."""
    mine, other = running(of("greedy", "r", "4", "4Gi", priority=2000), "n"), running(of("quiet", "q", "3", "4Gi"), "n")
    snapshot = make_snapshot([big_node("n")], [mine, other, of("greedy", "g", "3", "4Gi", priority=1000)])
    for fallback in (Fallback(mode=FallbackMode.PREEMPT), Fallback(preempt_below=500)):
        made = plan(snapshot, limited(cores=5, limits=Limits(max_nodes=0), fallback=fallback), NOW)
        assert (made.preempt, waiting_for_limits(made)) == ((), {"greedy/g"})


def test_who_leaves_for_a_pod_of_its_own_namespace_makes_room_in_its_limit() -> None:
    mine, important = running(of("greedy", "r", "8"), "n"), of("greedy", "g", "4", priority=1000)
    policy = limited(cores=8, limits=Limits(max_nodes=0), fallback=Fallback(mode=FallbackMode.PREEMPT))
    made = plan(make_snapshot([big_node("n")], [mine, important]), policy, NOW)
    assert [item.pod for item in made.preempt] == ["greedy/r"]


def test_a_term_that_nothing_matches_goes_on_matching_nothing() -> None:
    hopeless = of("greedy", "g", constraints=Constraints(node_affinity=()))
    snapshot = make_snapshot([make_node("own")], [hopeless])
    assert not plan(snapshot, limited(cores=0), NOW).bind


@pytest.mark.parametrize("cores", [4, 8, 9])
def test_a_bind_that_nobody_has_seen_yet_is_charged_as_if_the_pod_ran(cores: int) -> None:
    """Else the next plan, a moment later, would let the namespace have as much again."""
    bound, following = of("greedy", "bound", "4"), of("greedy", "next", "4")
    seen = make_snapshot([big_node("n")], [running(bound, "n"), following])
    expected = make_snapshot([big_node("n")], [bound, following], expected_binds={"greedy/bound": "n"})
    assert charges(expected, limited()) == charges(seen, limited())
    assert waiting_for_limits(plan(expected, limited(cores=cores), NOW)) == waiting_for_limits(
        plan(seen, limited(cores=cores), NOW)
    )
