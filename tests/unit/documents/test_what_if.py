"""What the pages' What if says of rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from htas.documents import what_if
from htas.documents.replicas import services_of
from htas.documents.what_if import Changes, NewFlavour, simulated
from htas.model.pods import Owner
from htas.model.policy import CleaningRules, Limits, NodeGroup
from htas.model.snapshot import ClusterView
from htas.ports import GivenError
from tests.builders import NOW, make_flavour, make_pod, make_policy, owned_node, running


def test_the_threshold_is_that_of_each_group_where_they_differ() -> None:
    """'Raise from 0.5' was said of a node whose group had 0.7."""
    groups = [
        NodeGroup("services", cleaning=CleaningRules(utilization_threshold=0.5)),
        NodeGroup("batch", cleaning=CleaningRules(utilization_threshold=0.7)),
    ]
    policy = make_policy(groups, [make_flavour("small", "4", "8Gi", "0.10")])
    node = owned_node("a", flavour="small", cpu="4", memory="8Gi", created_at=NOW - 3600, group="batch")
    view = ClusterView((node,), (running(make_pod("web", "1", "1Gi"), "a"),))
    (rule,) = [each for each in simulated(view, policy, NOW, Changes()).rules if each.rule == "UtilizationThreshold"]
    assert rule.remedy.startswith("raise cleaning.utilizationThreshold from 0.5 (group services), 0.7 (group batch);")


def test_what_would_wait_names_the_limit_and_what_would_change_it() -> None:
    """'Would wait: 13,871 pods (limit reached)' left open which limit, of which group."""
    group = NodeGroup("web", limits=Limits(max_nodes=2))
    policy = make_policy([group], [make_flavour("small", "4", "8Gi", "0.10")])
    node = owned_node("a", flavour="small", cpu="4", memory="8Gi", created_at=NOW - 3600, group="web")
    pod = running(make_pod("web-1", "3", "1Gi", owner=Owner("ReplicaSet", "web", "u")), "a")
    view = ClusterView((node,), (pod,))
    (service,) = services_of(view)
    (waits,) = simulated(view, policy, NOW, Changes(replicas={service: 5})).why_waiting
    assert (waits.reason, waits.pods) == ("LimitReached", 3)
    assert waits.message == "maxNodes (2) of group web forbids another small"
    assert "limits" in waits.remedy


FLAVOURS = tuple(NewFlavour(f"new-{number}", "2", "4Gi", "0.20") for number in range(20))


@pytest.mark.parametrize(
    ("count", "change", "most"),
    [
        pytest.param(10_000, {"flavours": FLAVOURS}, "at most 200 pods more", id="and 20 flavours: 24 s"),
        pytest.param(4_002, {"flavours": FLAVOURS[:1]}, "at most 4,000 pods more", id="and a flavour"),
        pytest.param(10_000, {"lift": ("a", "b", "c")}, "at most 571 pods more", id="and three rules"),
        pytest.param(1_000, {"lift": ("a",) * 50, "flavours": FLAVOURS}, "97 pods", id="and a rule, over and over"),
        pytest.param(
            3_000, {"flavours": FLAVOURS[:1], "prices": {"small": "0"}}, "2,000 pods", id="and a flavour, and a price"
        ),
    ],
)
def test_pods_times_flavours_times_rules_are_bounded(
    count: int, change: Mapping[str, Any], most: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each had a bound of its own, and 10,000 pods with 20 flavours took a core for 24 s."""
    pod = running(make_pod("web-1", "3", "1Gi", owner=Owner("ReplicaSet", "web", "u")), "a")
    view = ClusterView((owned_node("a", flavour="small", cpu="4", memory="8Gi"),), (pod,))
    monkeypatch.setattr(what_if, "plan", None)  # nothing is planned first
    (service,) = services_of(view)
    policy = make_policy(flavours=[make_flavour("small", "4", "8Gi", "0.10")])
    with pytest.raises(GivenError, match=r"pods more, with .* are too much at once") as told:
        simulated(view, policy, NOW, Changes(replicas={service: count}, **change))
    assert most in str(told.value)
