"""The lower bound of `htas simulate` is a bound: no arrangement of the work costs less.

It is compared with every arrangement that the answer itself finds, and with one by simple arithmetic: each pool and
zone on its own, on machines of one flavour, filled first fit.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.billing import Cap, Price
from htas.model.constraints import (
    Constraints,
    NodeSelectorTerm,
    Toleration,
)
from htas.model.flavours import Flavour
from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, Node
from htas.model.pods import Owner, Pod
from htas.model.policy import NodeGroup
from htas.model.resources import Resources
from htas.model.selectors import Operator, Requirement
from htas.model.snapshot import ClusterView
from htas.model.volumes import PersistentVolume, VolumeClaim, Volumes
from htas.planning.what_if.adopting import adopt
from htas.planning.what_if.answer import WhatIfAnswer, what_if
from htas.planning.what_if.arranging import bought_anew
from htas.planning.what_if.lifting import all_lifted, holding, pinned
from htas.planning.what_if.monthly import mean_nanos_per_hour
from htas.planning.what_if.offering import Offering
from htas.planning.what_if.pools import pools_of
from tests.builders import NECTAR, NOW, amounts, make_flavour, make_node, make_pod, make_policy, no_schedule, running

ZONES = ("x", "y")
POOLS = ("", "", "db", "batch", "web")
NAMED = tuple(pool for pool in POOLS if pool)


@dataclass(frozen=True)
class Cluster:
    view: ClusterView
    flavours: tuple[Flavour, ...]

    def answer(self) -> WhatIfAnswer:
        return what_if(self.view, make_policy([NodeGroup("nodes")], self.flavours), NOW)

    def by_hand(self) -> int:
        """The work of each pool and zone by itself, on the flavour that is cheapest for it first fit."""
        parts: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        zone_of = {claim.name: claim.name.partition("-")[0] for claim in self.view.volumes.claims}
        for pod in self.view.pods:
            zone = next((zone_of[name] for name in pod.constraints.claims), "")
            parts[dict(pod.constraints.node_selector).get("pool", ""), zone].append(pod)
        return sum(min(first_fit(pods, flavour) for flavour in self.flavours) for pods in parts.values())


def first_fit(pods: list[Pod], flavour: Flavour) -> int:
    rooms: list[Resources] = []
    for pod in sorted(pods, key=lambda pod: -pod.requests.memory_bytes):
        if not pod.requests.fits_in(flavour.allocatable):
            return 10**15
        for i, room in enumerate(rooms):
            if pod.requests.fits_in(room):
                rooms[i] = room - pod.requests
                break
        else:
            rooms.append(flavour.allocatable - pod.requests)
    return len(rooms) * mean_nanos_per_hour(Price(flavour.nanos_per_hour, flavour.cap))


def with_cap(flavour: Flavour, random: Random) -> Flavour:
    """Every second flavour costs no more in a month than some 200 to 900 hours."""
    if random.random() < 0.5:
        return flavour
    return msgspec.structs.replace(flavour, cap=Cap(flavour.nanos_per_hour * random.randint(200, 900)))


def in_zone(zone: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm((Requirement(ZONE_LABEL, Operator.IN, (zone,)),)),)


def cluster(seed: int) -> Cluster:
    """Nodes of pools that only labels, or labels and taints, tell apart; the price file knows neither.

    In some clusters each node is labelled, in some of these each with another pool.
    """
    random = Random(seed)
    caps = Random(seed)  # of its own: the clusters are those of before caps
    flavours = tuple(
        with_cap(make_flavour(name, cpu, memory, price), caps)
        for name, cpu, memory, price in (
            ("small", "4", "8Gi", "0.2"),
            ("wide", "8", "64Gi", "0.6"),
            ("lean", "8", "8Gi", "0.3"),
        )
    )
    has_taint = {pool: bool(pool) and random.random() < 0.6 for pool in POOLS}
    own = {pool: random.choice(flavours) if random.random() < 0.4 else None for pool in POOLS}
    nodes, pods, claims, volumes = list[Node](), list[Pod](), list[VolumeClaim](), list[PersistentVolume]()
    pools = random.choice((POOLS, NAMED))
    has_own_pools = pools is NAMED and random.random() < 0.5
    for number in range(len(NAMED) if has_own_pools else random.randint(3, 9)):
        pool, name = NAMED[number] if has_own_pools else random.choice(pools), f"n{number}"
        zone, flavour = ZONES[number % 2], own[pool] or random.choice(flavours)
        labels = {HOSTNAME_LABEL: name, ZONE_LABEL: zone, INSTANCE_TYPE_LABEL: flavour.name}
        labels |= {"pool": pool} if pool else {}
        taints = (no_schedule("dedicated", pool),) if has_taint[pool] else ()
        node = make_node(name, labels=labels, taints=taints)
        room = flavour.allocatable
        nodes.append(msgspec.structs.replace(node, allocatable=flavour.allocatable))
        room = flavour.allocatable
        for each in range(random.randint(1, 3)):
            asked = amounts(f"{random.randint(1, 30) * 100}m", f"{random.randint(1, 28) * 256}Mi", pods=1)
            if not asked.fits_in(room):
                continue
            room = room - asked
            claim: tuple[str, ...] = ()
            if random.random() < 0.2:
                claim = (f"{zone}-{number}-{each}",)
                claims.append(VolumeClaim("default", claim[0], volume=f"pv-{claim[0]}"))
                volumes.append(PersistentVolume(f"pv-{claim[0]}", {}, in_zone(zone)))
            wanted = Constraints(
                node_selector=(("pool", pool),) if pool else (),
                tolerations=(Toleration("dedicated", value=pool),) if has_taint[pool] else (),
                claims=claim,
            )
            pod = make_pod(
                f"p{number}-{each}",
                requests=asked,
                constraints=wanted,
                owner=Owner("ReplicaSet", f"rs{number}-{each}", replicas=2),
            )
            pods.append(running(pod, name))
    return Cluster(ClusterView(tuple(nodes), tuple(pods), volumes=Volumes(tuple(volumes), tuple(claims))), flavours)


def assert_it_is_a_bound(made: Cluster) -> None:
    answer = made.answer()
    found = [answer.now, answer.packed, answer.anew, answer.consolidated]
    assert answer.bound_nanos <= min(each.nanos_per_hour for each in found)
    free = [*found, answer.free, answer.free_packed, answer.offered]
    assert answer.free_bound_nanos <= min(each.nanos_per_hour for each in free)
    assert answer.free_bound_nanos <= made.by_hand()


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_no_arrangement_costs_less_than_the_bound(seed: int) -> None:
    assert_it_is_a_bound(cluster(seed))


@pytest.mark.parametrize(
    ("taints", "best"),
    [
        pytest.param(True, 1_000_000_000, id="a lean machine for the databases, four for the others"),
        pytest.param(False, 800_000_000, id="four lean machines for all"),
    ],
)
def test_four_databases_need_no_machine_each(taints: bool, best: int) -> None:
    """Four nodes of a pool that no price file knows, a small pod on each; four others whose pod wants a lean machine.

    4 x 0.55 + 0.55 was printed as the bound. The databases fit on one machine.
    """
    flavours = (make_flavour("x8", "8", "32Gi", "0.55"), make_flavour("c6", "6", "8Gi", "0.20"))
    nodes, pods = list[Node](), list[Pod]()
    for number in range(8):
        is_database, name = number < 4, f"n{number}"
        labels = {HOSTNAME_LABEL: name, INSTANCE_TYPE_LABEL: "x8"} | ({"pool": "db"} if is_database else {})
        dedicated = (no_schedule("dedicated", "db"),) if taints and is_database else ()
        nodes.append(make_node(name, cpu="8", memory="32Gi", labels=labels, taints=dedicated))
        wanted = Constraints(
            node_selector=(("pool", "db"),) if is_database else (),
            tolerations=(Toleration("dedicated", value="db"),) if dedicated else (),
        )
        size = {"cpu": "500m", "memory": "1Gi"} if is_database else {"cpu": "5", "memory": "6Gi"}
        owner = Owner("ReplicaSet", f"rs{number}", replicas=2)
        pods.append(running(make_pod(f"p{number}", **size, constraints=wanted, owner=owner), name))
    made = Cluster(ClusterView(tuple(nodes), tuple(pods)), flavours)
    assert_it_is_a_bound(made)
    answer = made.answer()
    assert answer.consolidated.nanos_per_hour == best
    assert 0.7 <= answer.bound_nanos / answer.consolidated.nanos_per_hour <= 1
    (pool,) = answer.told.pools
    assert (dict(pool.labels), [taint.value for taint in pool.taints]) == ({"pool": "db"}, ["db"] if taints else [])


def pooled(*pools: str) -> ClusterView:
    """A large node for each pool named, with a small pod that asks for its pool."""
    nodes, pods = list[Node](), list[Pod]()
    for number, pool in enumerate(pools):
        name, wanted = f"n{number}", Constraints(node_selector=(("pool", pool),))
        labels = {HOSTNAME_LABEL: name, INSTANCE_TYPE_LABEL: "m1.xlarge", "pool": pool}
        nodes.append(make_node(name, cpu="8", memory="32Gi", labels=labels))
        owner = Owner("ReplicaSet", f"rs{number}", replicas=2)
        pods.append(running(make_pod(f"p{number}", "500m", "512Mi", constraints=wanted, owner=owner), name))
    return ClusterView(tuple(nodes), tuple(pods))


@pytest.mark.parametrize(
    "pools",
    [
        pytest.param(("web", "db"), id="each node with another pool"),
        pytest.param(("web", "web", "db"), id="two nodes of one pool"),
    ],
)
def test_pools_of_a_node_each_may_go_to_other_flavours(pools: tuple[str, ...]) -> None:
    """Two large nodes with a small pod each: the label was taken for the node's own name, and the nodes for kept."""
    answer = what_if(pooled(*pools), make_policy([NodeGroup("any")]), NOW)
    assert {dict(pool.labels)["pool"] for pool in answer.told.pools} == set(pools)
    cheapest = min(flavour.nanos_per_hour for flavour in NECTAR)
    assert answer.free_bound_nanos <= 2 * cheapest
    assert answer.anew.nanos_per_hour <= 2 * cheapest


@pytest.mark.parametrize(
    ("key", "value"),
    [pytest.param("host", "n{}", id="the node's name"), pytest.param("fqdn", "n{}.example", id="its hostname")],
)
def test_a_label_that_names_its_node_is_no_pool(key: str, value: str) -> None:
    nodes = [make_node(f"n{i}", labels={HOSTNAME_LABEL: f"n{i}.example", key: value.format(i)}) for i in range(2)]
    asking = make_pod("p", constraints=Constraints(node_selector=((key, value.format(0)),)))
    assert pools_of(make_policy([NodeGroup("any")]), nodes, [asking]) == ()


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_rules_that_hold_no_node_change_nothing_in_what_is_bought(seed: int) -> None:
    """A purchase is not repeated for other rules where the same nodes stay."""
    made = cluster(seed)
    present = adopt(made.view, make_policy([NodeGroup("nodes")], made.flavours), NOW)
    freed = all_lifted(present)
    offering = Offering(freed, pinned(freed, holding(freed)))
    pins = pinned(present, holding(present))
    for names in (None, frozenset(("lean", "wide"))):
        want = bought_anew(present, pins, names)
        assert offering.bought_anew(present, pins, names).nanos_per_hour == want.nanos_per_hour
