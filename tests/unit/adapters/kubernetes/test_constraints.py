"""What a pod demands of its node."""

from __future__ import annotations

from typing import Any

import pytest

from htas.model.constraints import (
    Constraints,
    Effect,
    HostPort,
    NodeSelectorTerm,
    PodAffinityTerm,
    SpreadConstraint,
    Toleration,
)
from htas.model.selectors import LabelSelector, Operator, Requirement
from tests.unit.adapters.kubernetes.manifests import Manifest, pod, problems_of, read_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}
IS_WEB = Requirement("app", Operator.IN, ("web",))


def constraints_of(meta: Manifest | None = None, **spec: Any) -> Constraints:
    return read_pod(pod(meta=meta, **spec)).constraints


def test_a_plain_pod_demands_nothing() -> None:
    assert constraints_of() == Constraints()


def test_node_selector_is_in_order_of_its_keys() -> None:
    assert constraints_of(nodeSelector={"b": "2", "a": "1"}).node_selector == (("a", "1"), ("b", "2"))


@pytest.mark.parametrize("operator", list(Operator))
def test_node_affinity_knows_every_operator(operator: Operator) -> None:
    term = {"matchExpressions": [{"key": "k", "operator": operator.value, "values": ["3"]}]}
    found = constraints_of(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}})
    assert found.node_affinity == (NodeSelectorTerm((Requirement("k", operator, ("3",)),)),)


def test_node_affinity_by_field() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    found = constraints_of(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}})
    assert found.node_affinity == (NodeSelectorTerm((), (Requirement("metadata.name", Operator.IN, ("n1",)),)),)


def test_no_terms_match_nothing_and_no_affinity_demands_nothing() -> None:
    assert constraints_of(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}).node_affinity == ()
    assert constraints_of(affinity={"nodeAffinity": {}}).node_affinity is None


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param({"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {}}]}}, id="preferred nodes"),
        pytest.param({"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "z"}}]}}, id="preferred company"),
        pytest.param({"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "z"}}]}}, id="preferred distance"),
    ],
)  # fmt: skip
def test_preferences_only_score(affinity: Manifest) -> None:
    assert constraints_of(affinity=affinity) == Constraints()


@pytest.mark.parametrize(
    ("item", "want"),
    [
        pytest.param({"operator": "Exists"}, Toleration("", "Exists"), id="everything"),
        pytest.param({"key": "k", "value": "v", "effect": "NoExecute", "tolerationSeconds": 300}, Toleration("k", "Equal", "v", Effect.NO_EXECUTE), id="Equal where no operator is stated"),
        pytest.param({"key": "k", "operator": "", "value": "v"}, Toleration("k", "Equal", "v"), id="and where it is empty"),
    ],
)  # fmt: skip
def test_tolerations(item: Manifest, want: Toleration) -> None:
    assert constraints_of(tolerations=[item]).tolerations == (want,)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"key": "a", "operator": "Like"}, id="an unknown operator"),
        pytest.param({"key": "a", "effect": "NoWay"}, id="an unknown effect"),
    ],
)
def test_a_toleration_that_is_not_understood_allows_nothing_and_forbids_nothing(item: Manifest) -> None:
    known = {"key": "b", "operator": "Exists"}
    assert constraints_of(tolerations=[item, known]) == Constraints(tolerations=(Toleration("b", "Exists"),))


def test_tolerations_may_compare() -> None:
    item = {"key": "spot", "operator": "Gt", "value": "3", "effect": "NoSchedule"}
    want = Toleration("spot", "Gt", "3", Effect.NO_SCHEDULE)
    assert constraints_of(tolerations=[item]) == Constraints(tolerations=(want,))


def test_host_ports_of_containers_and_sidecars() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    inits = [
        {"name": "once", "ports": [{"containerPort": 1, "hostPort": 1}]},
        {"name": "sidecar", "restartPolicy": "Always", "ports": [{"containerPort": 2, "hostPort": 2}]},
    ]
    found = constraints_of(containers=[{"name": "c", "ports": ports}], initContainers=inits)
    assert found.host_ports == (HostPort(8081, "UDP", "10.0.0.1"), HostPort(2, "TCP", "0.0.0.0"))


def test_on_the_hosts_network_every_port_is_the_hosts() -> None:
    found = constraints_of(containers=[{"name": "c", "ports": [{"containerPort": 80}]}], hostNetwork=True)
    assert found.host_ports == (HostPort(80),)


SPREAD = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("item", "want"),
    [
        pytest.param({"labelSelector": WEB}, SpreadConstraint("zone", 2, LabelSelector((IS_WEB,))), id="by label, with Kubernetes' policies"),
        pytest.param({}, SpreadConstraint("zone", 2, None), id="no selector selects nothing"),
        pytest.param({"labelSelector": {}}, SpreadConstraint("zone", 2, LabelSelector()), id="an empty one everything"),
        pytest.param({"minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}, SpreadConstraint("zone", 2, None, 3, False, True), id="policies turned round"),
        pytest.param({"labelSelector": WEB, "matchLabelKeys": ["hash", "missing"]}, SpreadConstraint("zone", 2, LabelSelector((IS_WEB, Requirement("hash", Operator.IN, ("h1",))))), id="keys take the pod's values, those it lacks are skipped"),
        pytest.param({"labelSelector": {"matchLabels": {"hash": "h1"}}, "matchLabelKeys": ["hash"]}, SpreadConstraint("zone", 2, LabelSelector((Requirement("hash", Operator.IN, ("h1",)),))), id="keys the API server folded in already"),
        pytest.param({"matchLabelKeys": ["hash"]}, SpreadConstraint("zone", 2, None), id="keys do not make a selector of none"),
    ],
)  # fmt: skip
def test_topology_spread(item: Manifest, want: SpreadConstraint) -> None:
    meta = {"labels": {"app": "web", "hash": "h1"}}
    assert constraints_of(meta=meta, topologySpreadConstraints=[{**SPREAD, **item}]).spread == (want,)


def test_a_spread_that_only_scores_is_passed_over() -> None:
    soft = {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Whatever"}
    assert constraints_of(topologySpreadConstraints=[soft]) == Constraints()


@pytest.mark.parametrize(("kind", "field"), [("podAffinity", "affinity"), ("podAntiAffinity", "anti_affinity")])
@pytest.mark.parametrize(
    ("item", "want"),
    [
        pytest.param({"labelSelector": WEB}, PodAffinityTerm("host", LabelSelector((IS_WEB,))), id="in the pod's own namespace"),
        pytest.param({}, PodAffinityTerm("host", None), id="no selector matches no pod"),
        pytest.param({"labelSelector": {}, "namespaces": ["b", "a"]}, PodAffinityTerm("host", LabelSelector(), ("a", "b")), id="in namespaces by name"),
        pytest.param({"labelSelector": {}, "namespaceSelector": {}}, PodAffinityTerm("host", LabelSelector(), (), LabelSelector()), id="in all namespaces"),
        pytest.param({"labelSelector": WEB, "matchLabelKeys": ["hash"], "mismatchLabelKeys": ["tenant"]}, PodAffinityTerm("host", LabelSelector((IS_WEB, Requirement("hash", Operator.IN, ("h1",)), Requirement("tenant", Operator.NOT_IN, ("t1",))))), id="with the pod's own values of keys"),
    ],
)  # fmt: skip
def test_inter_pod_affinity(kind: str, field: str, item: Manifest, want: PodAffinityTerm) -> None:
    meta = {"labels": {"hash": "h1", "tenant": "t1"}}
    found = constraints_of(meta=meta, affinity={kind: {REQUIRED: [{"topologyKey": "host", **item}]}})
    assert getattr(found, field) == (want,)


def test_claims_are_named_once_and_those_of_ephemeral_volumes_after_pod_and_volume() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "config", "configMap": {"name": "config"}},
    ]
    assert constraints_of(volumes=volumes).claims == ("data", "p-scratch")


def test_the_claim_of_an_ephemeral_volume_must_be_the_pods_own() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]
    assert constraints_of(meta={"uid": "u-1"}, volumes=volumes).own_claims == (("p-scratch", "u-1"),)


ODD_TERM = [{"matchExpressions": [{"key": "k", "operator": "Near", "values": []}]}]
ODD_SELECTOR = {"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["1"]}]}


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, "dynamic resource allocation (resourceClaims)", id="a DRA claim"),
        pytest.param({"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "Sometimes"}]}, "topology spread whenUnsatisfiable Sometimes", id="an unknown spread mode"),
        pytest.param({"topologySpreadConstraints": [{**SPREAD, "nodeTaintsPolicy": "Maybe"}]}, "topology spread policy Maybe", id="an unknown spread policy"),
        pytest.param({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": ODD_TERM}}}}, f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator ('Near' is not one of", id="an unknown node selector operator"),
        pytest.param({"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "z", "labelSelector": ODD_SELECTOR}]}}}, f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator ('Gt' is not one of", id="a label selector that compares"),
        pytest.param({"topologySpreadConstraints": [{**SPREAD, "labelSelector": ODD_SELECTOR}]}, "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator ('Gt' is not one of", id="a spread selector that compares"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_named_and_the_pod_stays(spec: Manifest, feature: str) -> None:
    found = read_pod(pod(nodeName="n1", **spec))
    (named,) = found.constraints.unsupported
    assert named.startswith(feature)
    assert (found.node, found.requests.cpu_m) == ("n1", 100)


def test_a_constraint_of_the_wrong_type_is_a_problem() -> None:
    odd = pod(topologySpreadConstraints=[{**SPREAD, "maxSkew": "two"}])
    assert problems_of(odd) == [
        "dump.json: Pod default/p: spec.topologySpreadConstraints[0].maxSkew: expected int, got str"
    ]
