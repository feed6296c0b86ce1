"""What the pages' What if says of rules."""

from __future__ import annotations

from htas.documents.replicas import services_of
from htas.documents.what_if import Changes, simulated
from htas.model.pods import Owner
from htas.model.policy import CleaningRules, Limits, NodeGroup
from htas.model.snapshot import ClusterView
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
