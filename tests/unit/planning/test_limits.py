"""How many machines of an offer may still be bought: every limit, quota, stock and trouble, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from htas.model.claims import ClaimState, Headroom, NodeClaim
from htas.model.nodes import ZONE_LABEL, Node
from htas.model.policy import Limits, NodeGroup, Policy
from htas.model.snapshot import Backoff
from htas.planning.cluster.machines import owned_machines
from htas.planning.planner import plan
from htas.planning.provision.limits import UNLIMITED, Allowance
from htas.planning.provision.offers import Offer
from tests.builders import NOW, make_flavour, make_node, make_pod, make_policy, make_snapshot, owned_node, ready_claim

GIB = 2**30
LARGE = make_flavour("large", "4", "8Gi", "0.40")
SMALL = make_flavour("small", "2", "4Gi", "0.15")


def policy(group: Limits = Limits(), cluster: Limits = Limits(), **flavour: Any) -> Policy:  # noqa: B008 - frozen
    large = msgspec.structs.replace(LARGE, **flavour)
    return make_policy([NodeGroup("any", limits=group), NodeGroup("other")], [large, SMALL], limits=cluster)


def offer(given: Policy, flavour: str = "large", group: str = "any", zone: str | None = None) -> Offer:
    found, sold = given.group(group), given.catalogue.named(flavour)
    assert found is not None
    assert sold is not None
    return Offer(found, sold, zone, sold.allocatable, (), {}, np.zeros(4, dtype=np.int64))


def machine(name: str, group: str = "any", flavour: str = "large", **fields: Any) -> tuple[Node, NodeClaim]:
    node = owned_node(name, group, flavour)
    return node, msgspec.structs.replace(ready_claim(node), **fields)


def allowance(given: Policy, machines: Sequence[tuple[Node, NodeClaim]] = (), /, **snapshot: Any) -> Allowance:
    nodes, claims = [node for node, _ in machines], tuple(claim for _, claim in machines)
    return Allowance(given, make_snapshot(nodes, claims=claims, **snapshot))


OWNED = (machine("a"), machine("b", flavour="small"), machine("c", "other"))
"""In the group: 2 machines, 6 cores, 12 GiB, 0.55 an hour; in all 3, 10 cores, 20 GiB, 0.95."""


@pytest.mark.parametrize(
    ("limits", "in_group", "in_all", "words"),
    [
        (Limits(max_nodes=5), 3, 2, "maxNodes (5)"),
        (Limits(max_cpu_m=18_000), 3, 2, "maxCpu (18000)"),
        (Limits(max_cpu_m=17_999), 2, 1, "maxCpu (17999)"),
        (Limits(max_memory_bytes=36 * GIB), 3, 2, f"maxMemory ({36 * GIB})"),
        (Limits(max_nanos_per_hour=1_750_000_000), 3, 2, "maxPricePerHour (1.75)"),
        (Limits(max_nanos_per_hour=1_749_999_999), 2, 1, "maxPricePerHour (1.749999999)"),
        (Limits(max_nodes=1), 0, 0, "maxNodes (1)"),
        (Limits(max_nodes=5, max_cpu_m=14_000), 2, 1, "maxCpu (14000)"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_limits_count_what_is_owned(limits: Limits, in_group: int, in_all: int, words: str) -> None:
    for given, count, scope in (
        (policy(group=limits), in_group, "group any"),
        (policy(cluster=limits), in_all, "the cluster"),
    ):
        bound = allowance(given, OWNED).bound(offer(given))
        assert (bound.count, bound.reason.value, bound.what) == (count, "LimitReached", f"{words} of {scope}")
    of_other = policy(group=limits)
    assert allowance(of_other, OWNED).bound(offer(of_other, group="other")).count == UNLIMITED


@pytest.mark.parametrize(
    ("headroom", "count", "what"),
    [
        (Headroom(instances=3), 3, "instances"),
        (Headroom(cpu_m=11_999), 2, "cpu"),
        (Headroom(cpu_m=12_000), 3, "cpu"),
        (Headroom(memory_bytes=16 * GIB), 2, "memory"),
        (Headroom(memory_bytes=16 * GIB - 1), 1, "memory"),
        (Headroom(cpu_m=-4000), 0, "cpu"),
        (Headroom(instances=5, memory_bytes=8 * GIB), 1, "memory"),
    ],
    ids=str,
)
def test_quotas_of_the_cloud_bound_what_is_bought_beside_what_is_there(
    headroom: Headroom, count: int, what: str
) -> None:
    given = policy()
    bound = allowance(given, OWNED, headroom=headroom).bound(offer(given))
    assert (bound.count, bound.reason.value, bound.what) == (count, "QuotaReached", f"the cloud's quota of {what}")


def test_claims_that_were_not_sent_yet_are_in_nobody_s_quota_but_will_be() -> None:
    given = policy()
    sent = machine("sent", state=ClaimState.REQUESTED)
    wanted = machine("wanted", state=ClaimState.WANTED, instance=None)
    lost = machine("lost", state=ClaimState.WANTED, instance="vm-lost")
    for claims, count in (((sent,), 3), ((wanted,), 2), ((sent, wanted), 2), ((lost,), 3)):
        quota = Headroom(instances=3)
        assert allowance(given, claims, headroom=quota).bound(offer(given)).count == count


@pytest.mark.parametrize(("stock", "count"), [(5, 3), (2, 0), (1, 0)])
def test_a_flavour_s_stock_is_what_the_cloud_can_give_in_all(stock: int, count: int) -> None:
    given = policy(stock=stock)
    bound = allowance(given, OWNED).bound(offer(given))
    assert (bound.count, bound.what) == (count, f"the stock of large ({stock})")
    assert allowance(given, OWNED).bound(offer(given, "small")).count == UNLIMITED


@pytest.mark.parametrize(
    ("backoff", "is_off"),
    [
        pytest.param(Backoff("large", None, NOW + 1, "no host"), True, id="the flavour"),
        pytest.param(Backoff("large", "east", NOW + 1, "no host"), True, id="the flavour in this zone"),
        pytest.param(Backoff("large", "west", NOW + 1, "no host"), False, id="the flavour in another zone"),
        pytest.param(Backoff("small", None, NOW + 1, "no host"), False, id="another flavour"),
        pytest.param(Backoff(None, None, NOW + 1, "no host"), True, id="every flavour"),
        pytest.param(Backoff(None, None, NOW, "no host"), False, id="it is over"),
    ],
)
def test_what_failed_is_not_asked_for_until_its_wait_is_over(backoff: Backoff, is_off: bool) -> None:
    given = policy()
    bound = allowance(given, backoffs=(backoff,)).bound(offer(given, zone="east"))
    who = backoff.flavour or "every flavour"
    expected = (0, "BackingOff", f"{who} failed: no host") if is_off else (UNLIMITED, "LimitReached", "")
    assert (bound.count, bound.reason.value, bound.what) == expected


@pytest.mark.parametrize(
    ("trouble", "reason", "what"),
    [
        ("store_problem", "StoreUnwritable", "the journal, which cannot be written (it is broken),"),
        ("cloud_problem", "CloudUnreachable", "the cloud, which does not answer (it is broken),"),
    ],
)
def test_nothing_is_bought_that_cannot_be_written_down_or_asked_for(trouble: str, reason: str, what: str) -> None:
    given = policy()
    bound = allowance(given, **{trouble: "it is broken"}).bound(offer(given))
    assert (bound.count, bound.reason.value, bound.what) == (0, reason, what)


def test_what_is_bought_counts_at_once_and_what_is_given_back_does_not() -> None:
    given = policy(group=Limits(max_nodes=5), stock=9)
    found = allowance(given, OWNED, headroom=Headroom(instances=4))
    found.take(offer(given, zone="east"), 2)
    assert (found.bound(offer(given)).count, found.nodes_of("any"), found.nodes_of("other")) == (1, 4, 1)
    assert (found.in_zone(offer(given, zone="east")), found.in_zone(offer(given))) == (2, 2)
    found.take(offer(given, zone="east"), -1)
    assert (found.bound(offer(given)).count, found.nodes_of("any")) == (2, 3)


def test_limits_are_told_as_rows_of_what_a_machine_uses_and_what_is_left() -> None:
    given = policy(Limits(max_nodes=5), Limits(max_cpu_m=18_000), stock=4)
    found = allowance(given, OWNED, headroom=Headroom(memory_bytes=9 * GIB))
    machines = [offer(given), offer(given, "small"), offer(given, group="other")]
    assert [([uses(each) for each in machines], left) for uses, left in found.rows()] == [
        ([1, 1, 0], 3),
        ([4000, 2000, 4000], 8000),
        ([1, 0, 1], 2),
        ([8 * GIB, 4 * GIB, 8 * GIB], 9 * GIB),
    ]


@pytest.mark.parametrize(
    ("state", "instance", "counts"),
    [
        (ClaimState.WANTED, None, True),
        (ClaimState.READY, "vm", True),
        (ClaimState.DRAINING, "vm", True),
        (ClaimState.FAILED, "vm", True),
        (ClaimState.FAILED, None, False),
        (ClaimState.RELEASED, "vm", False),
    ],
)
def test_whatever_may_still_be_billed_is_owned(state: ClaimState, instance: str | None, counts: bool) -> None:
    _, claim = machine("a", state=state, instance=instance, node=None)
    snapshot = make_snapshot(claims=(claim,))
    assert owned_machines(policy(), snapshot) == ([("any", "large", None)] if counts else [])


def test_a_machine_with_a_claim_and_a_node_is_owned_once_and_a_stranger_s_never() -> None:
    node, claim = machine("a", zone="east")
    alone = owned_node("alone", "other", "small", labels={ZONE_LABEL: "west"})
    snapshot = make_snapshot([node, alone, make_node("foreign")], claims=(claim,))
    assert owned_machines(policy(), snapshot) == [("any", "large", "east"), ("other", "small", "west")]


def test_a_plan_buys_up_to_the_limit_and_tells_what_forbids_more() -> None:
    given = make_policy([NodeGroup("any")], [LARGE], limits=Limits(max_nodes=2))
    made = plan(make_snapshot(pods=[make_pod(f"p{i}", "3", "1Gi") for i in range(3)]), given, NOW)
    assert len(made.launch) == 2
    (left,) = made.unplaced
    assert (left.reason.value, "maxNodes (2) of the cluster" in left.message) == ("LimitReached", True)
