"""What is bought for work that spreads over zones and nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from htas.adapters.kubernetes import wire
from htas.adapters.kubernetes.selectors import spread
from htas.model.constraints import Constraints, PodAffinityTerm, SpreadConstraint
from htas.model.flavours import Flavour
from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import AutoscalingAlgorithm, NodeGroup
from htas.planning.planner import plan
from tests.builders import NOW, labels_are, make_flavour, make_node, make_pod, make_policy, make_snapshot, running

ZONES = ("a", "b", "c")
BY_ZONE = {"topology_key": ZONE_LABEL, "max_skew": 1}
BY_NODE = {"topology_key": HOSTNAME_LABEL, "max_skew": 1}


def web(count: int, *spread: dict[str, Any], app: str = "web", **fields: Any) -> list[Pod]:
    """Twenty of them fill a machine of four cores."""
    constraints = Constraints(spread=tuple(SpreadConstraint(selector=labels_are(app=app), **each) for each in spread))
    fields = {"cpu": "200m", "labels": {"app": app}, "constraints": constraints, **fields}
    return [make_pod(f"{app}-{i:03}", **fields) for i in range(count)]


def bought_for(
    pods: list[Pod],
    full_in: tuple[str, ...] = (),
    flavours: list[Flavour] | None = None,
    algorithm: AutoscalingAlgorithm = AutoscalingAlgorithm.GREEDY,
) -> Plan:
    nodes = [make_node(f"full-{zone}", "4", labels={ZONE_LABEL: zone}) for zone in full_in]
    others = [running(make_pod(f"other-{zone}", "4"), f"full-{zone}") for zone in full_in]
    flavours = flavours or [make_flavour("four", "4", "16Gi", "0.2", zones=ZONES)]
    policy = make_policy([NodeGroup("any", autoscaling=algorithm)], flavours)
    return plan(make_snapshot(nodes, [*others, *pods]), policy, NOW)


def sizes(made: Plan) -> list[int]:
    return sorted((len(item.pods) for item in made.launch), reverse=True)


@pytest.mark.parametrize("algorithm", list(AutoscalingAlgorithm))
@pytest.mark.parametrize(
    ("pods", "full_in", "want"),
    [
        pytest.param(web(60, BY_ZONE), ZONES, [20] * 3, id="over three full zones: a machine each"),
        pytest.param(web(300, BY_ZONE), ZONES, [20] * 15, id="over three full zones: five machines each"),
        pytest.param(web(60, BY_ZONE), (), [20] * 3, id="over zones that have no nodes yet"),
        pytest.param(web(60, {**BY_ZONE, "min_domains": 3}), (), [20] * 3, id="three zones that must be there"),
        pytest.param(web(60, {**BY_NODE, "min_domains": 3}), (), [20] * 3, id="three nodes that must be there"),
        pytest.param(web(60, BY_ZONE, BY_NODE), (), [20] * 3, id="over zones and nodes"),
        pytest.param(web(4, BY_NODE), ("a",), [1] * 4, id="a full node counts as one without any: one each"),
        pytest.param(
            web(30, BY_ZONE) + web(30, BY_ZONE, app="shop"), ZONES, [20] * 3, id="two services in three full zones"
        ),
    ],
)
def test_no_machine_too_many(
    pods: list[Pod], full_in: tuple[str, ...], want: list[int], algorithm: AutoscalingAlgorithm
) -> None:
    made = bought_for(pods, full_in, algorithm=algorithm)
    assert not made.unplaced
    assert sizes(made) == want


def test_a_machine_is_dropped_though_it_was_a_place_to_spread_over() -> None:
    """The small machine is bought first, for the more important; the large one then has room for them, too."""
    flavours = [make_flavour("one", "1", "2Gi", "0.05"), make_flavour("eight", "8", "16Gi", "0.4")]
    made = bought_for([*web(3, BY_NODE, priority=10), make_pod("large", "7")], flavours=flavours)
    assert [(item.flavour, len(item.pods)) for item in made.launch] == [("eight", 4)]


def test_who_relied_on_a_machine_keeps_it() -> None:
    """The same where web must have two nodes: the small machine is one of them."""
    flavours = [make_flavour("one", "1", "2Gi", "0.05"), make_flavour("eight", "8", "16Gi", "0.4")]
    made = bought_for([*web(3, {**BY_NODE, "min_domains": 2}, priority=10), make_pod("large", "7")], flavours=flavours)
    assert not made.unplaced
    assert len(made.launch) >= 2


@pytest.mark.parametrize(
    ("spread", "want"),
    [
        pytest.param(BY_NODE, [13, 12], id="nodes: the second one is not for the five that were left"),
        pytest.param(BY_ZONE, [13, 12], id="zones: nor is the second zone's"),
        pytest.param({**BY_NODE, "max_skew": 4}, [9, 9, 7], id="a skew of four"),
    ],
)
def test_machines_bought_together_are_spread_over_together(spread: dict[str, Any], want: list[int]) -> None:
    """Were 20 on the first machine and 5 on a small one, 14 of the 20 would not be let in beside it."""
    prices = ((1, "0.07"), (2, "0.12"), (3, "0.17"), (4, "0.2"))
    flavours = [make_flavour(f"of-{cores}", str(cores), "16Gi", price, zones=ZONES) for cores, price in prices]
    made = bought_for(web(25, spread), flavours=flavours)
    assert not made.unplaced
    assert sizes(made) == want


def test_a_zone_ahead_of_the_others_gets_no_machine() -> None:
    """With five pods in zone a and three in the others, skew two: a machine in zone a would take nobody more."""
    there = web(11, {**BY_ZONE, "max_skew": 2})
    nodes = [make_node(f"n-{zone}", "1", labels={ZONE_LABEL: zone}) for zone in ZONES]
    where = ["n-a"] * 5 + ["n-b"] * 3 + ["n-c"] * 3
    pods = [running(pod, node) for pod, node in zip(there, where, strict=True)]
    full = [running(make_pod(f"o-{zone}", "400m"), f"n-{zone}") for zone in "bc"]
    late = web(2, {**BY_ZONE, "max_skew": 2}, created_at=NOW - 1)
    late = [make_pod(f"late-{i}", "200m", labels=pod.labels, constraints=pod.constraints) for i, pod in enumerate(late)]
    flavour = make_flavour("four", "4", "16Gi", "0.2", zones=ZONES)
    made = plan(make_snapshot(nodes, [*pods, *full, *late]), make_policy(flavours=[flavour]), NOW)
    assert sizes(made) == [2]
    assert Counter(item.zone for item in made.launch)["a"] == 0


REVISION = "pod-template-hash"


def of_revision(revision: str, count: int, keys: list[str]) -> list[Pod]:
    """Pods of one Deployment at one of its revisions, as they are read from the API server's objects."""
    labels = {"app": "web", REVISION: revision}
    item = wire.SpreadConstraint(
        topology_key=ZONE_LABEL,
        max_skew=1,
        when_unsatisfiable="DoNotSchedule",
        label_selector=wire.Selector(match_labels={"app": "web"}),
        match_label_keys=keys,
    )
    read, unknown = spread([item], labels, "spread", [])
    assert unknown == []
    constraints = Constraints(spread=read)
    return [make_pod(f"{revision}-{i:03}", "200m", labels=labels, constraints=constraints) for i in range(count)]


@pytest.mark.parametrize("algorithm", list(AutoscalingAlgorithm))
@pytest.mark.parametrize(
    ("keys", "old", "new", "want"),
    [
        pytest.param(
            [REVISION], 0, 60, {"a": 20, "b": 20, "c": 20}, id="the new one alone: the old one counts nothing"
        ),
        pytest.param([], 0, 20, {"b": 10, "c": 10}, id="without the keys: zone a has its share already"),
        pytest.param([REVISION], 30, 30, {"a": 20, "b": 20, "c": 20}, id="both grow: each revision by itself"),
    ],
)
def test_a_rollout_spreads_each_revision_by_itself(
    keys: list[str], old: int, new: int, want: dict[str, int], algorithm: AutoscalingAlgorithm
) -> None:
    """Ten pods of the old revision fill the only node, in zone a; twenty fill a machine."""
    nodes = [make_node(f"n-{zone}", "2", labels={ZONE_LABEL: zone}) for zone in ZONES]
    there = [running(pod, "n-a") for pod in of_revision("r1", 10, keys)]
    full = [running(make_pod(f"full-{zone}", "2"), f"n-{zone}") for zone in "bc"]
    if old:  # ten more in each zone, for the old revision to be balanced
        nodes += [make_node(f"m-{zone}", "2", labels={ZONE_LABEL: zone}) for zone in "bc"]
        more = of_revision("r1", 30, keys)
        there += [running(pod, f"m-{'bc'[at // 10]}") for at, pod in enumerate(more[10:])]
    waiting = [*of_revision("r1", 30 + old, keys)[30 : 30 + old], *of_revision("r2", new, keys)]
    policy = make_policy(
        [NodeGroup("any", autoscaling=algorithm)], [make_flavour("four", "4", "16Gi", "0.2", zones=ZONES)]
    )
    made = plan(make_snapshot(nodes, [*there, *full, *waiting]), policy, NOW)
    assert not made.unplaced
    found: Counter[str] = Counter()
    for item in made.launch:
        found[item.zone or ""] += len(item.pods)
    assert found == want


@pytest.mark.parametrize(
    ("constraints", "full_in", "told"),
    [
        pytest.param({"spread": (BY_ZONE,)}, ZONES, True, id="a hard spread over zones"),
        pytest.param({"node_selector": ((ZONE_LABEL, "b"),)}, ZONES, True, id="a zone that is selected"),
        pytest.param(
            {"node_selector": ((ZONE_LABEL, "d"),)}, ZONES, False, id="a zone that no node is in: theirs would not help"
        ),
        pytest.param({"spread": (BY_ZONE,)}, (), False, id="no node has a zone: nothing to write is known"),
        pytest.param({"node_selector": (("disk", "ssd"),)}, ZONES, False, id="another label"),
    ],
)
def test_a_flavour_without_zones_is_told_what_to_be_given(
    constraints: dict[str, Any], full_in: tuple[str, ...], told: bool
) -> None:
    """Bought without a zone, a machine may come up in any: none is bought, and what to do is said."""
    spreads = constraints.get("spread", ())
    wanted = Constraints(
        **{**constraints, "spread": tuple(SpreadConstraint(selector=labels_are(app="web"), **each) for each in spreads)}
    )
    flavours = [make_flavour("tiny", "100m", "1Gi", "0.01"), make_flavour("four", "4", "16Gi", "0.2")]
    made = bought_for([make_pod("web", "200m", labels={"app": "web"}, constraints=wanted)], full_in, flavours)
    assert not made.launch
    [waits] = made.unplaced
    advice = "; flavour four has no zones: give it `zones: [a, b, c]` (price file: flavours[1].zones); "
    assert (advice in waits.message) is told


def kept_apart(name: str, **fields: Any) -> Pod:
    """One of a service whose pods want a zone each."""
    term = PodAffinityTerm(topology_key=ZONE_LABEL, selector=labels_are(app="db"), namespaces=("default",))
    return make_pod(name, "1", labels={"app": "db"}, constraints=Constraints(anti_affinity=(term,)), **fields)


@pytest.mark.parametrize(
    ("there", "waiting", "zones", "machines"),
    [
        pytest.param(ZONES, 1, (), 0, id="one in each zone: whichever a machine came up in, it would not be let in"),
        pytest.param(("a",), 1, (), 0, id="one in zone a, where a machine may come up"),
        pytest.param((), 1, (), 1, id="the first one: any zone will do"),
        pytest.param((), 2, (), 1, id="two: their machines may come up in the same zone"),
        pytest.param(("a",), 2, ZONES, 2, id="sold by zones: in the two that are free"),
    ],
)
def test_no_machine_of_any_zone_is_bought_for_what_keeps_apart_by_zones(
    there: tuple[str, ...], waiting: int, zones: tuple[str, ...], machines: int
) -> None:
    nodes = [make_node(f"n-{zone}", "1", labels={ZONE_LABEL: zone}) for zone in ZONES]
    others = [running(make_pod(f"o-{zone}", "1"), f"n-{zone}") for zone in ZONES if zone not in there]
    pods = [running(kept_apart(f"db-{zone}"), f"n-{zone}") for zone in there]
    pods += [kept_apart(f"late-{i}") for i in range(waiting)]
    policy = make_policy(flavours=[make_flavour("four", "4", "16Gi", "0.2", zones=zones)])
    made = plan(make_snapshot(nodes, [*others, *pods]), policy, NOW)
    assert len(made.launch) == machines
    assert len(made.unplaced) == waiting - machines
    for waits in made.unplaced:
        assert "; flavour four has no zones: give it `zones: [a, b, c]`" in waits.message


def test_without_zones_anywhere_nothing_is_kept_apart_by_them() -> None:
    """kube-scheduler lets all of them on nodes without the label, and so does a plan."""
    policy = make_policy(flavours=[make_flavour("four", "4", "16Gi", "0.2")])
    made = plan(make_snapshot([], [kept_apart(f"db-{i}") for i in range(2)]), policy, NOW)
    assert [len(item.pods) for item in made.launch] == [2]
