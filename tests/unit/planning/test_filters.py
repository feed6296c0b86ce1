"""Filters against kube-scheduler's situations and words."""

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
    Taint,
    Toleration,
)
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim, Volumes
from htas.planning.cluster.feasibility.message import summary
from tests.builders import labels_are, make_node, make_pod, no_schedule, opened, running, verdicts

AFFINITY = "node(s) didn't match Pod's node affinity/selector"
SPREAD = "node(s) didn't match pod topology spread constraints"
NO_LABEL = SPREAD + " (missing required label)"
FAR = "node(s) didn't match pod affinity rules"
NEAR = "node(s) didn't match pod anti-affinity rules"
UNWILLING = "node(s) didn't satisfy existing pods anti-affinity rules"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def pod(name: str = "incoming", **fields: Any) -> Pod:
    """A pod of another scheduler's kind of freedom; `constraints` fields may be given beside pod fields."""
    names = set(Constraints.__struct_fields__)
    constraints = Constraints(**{key: fields.pop(key) for key in list(fields) if key in names})
    return make_pod(name, constraints=constraints, **fields)


def expression(key: str, operator: Operator, *values: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm((Requirement(key, operator, values),)),)


@pytest.mark.parametrize(
    ("asks", "used", "want"),
    [
        pytest.param({"cpu": "1"}, {"cpu": "3"}, {}, id="exactly what is left"),
        pytest.param({"cpu": "1001m"}, {"cpu": "3"}, {"n": "Insufficient cpu"}, id="a millicore too much"),
        pytest.param(
            {"cpu": "2", "memory": "9Gi"}, {"cpu": "3"}, {"n": "Insufficient cpu; Insufficient memory"}, id="both short"
        ),
        pytest.param({"cpu": "0", "memory": "0"}, {"cpu": "4", "memory": "8Gi"}, {}, id="nothing asked of a full node"),
    ],
)
def test_resources(asks: dict[str, str], used: dict[str, str], want: dict[str, str]) -> None:
    there = running(make_pod("there", **{"cpu": "0", "memory": "0", **used}), "n")
    assert verdicts([make_node("n", "4", "8Gi")], make_pod("incoming", **{"memory": "0", **asks}), [there]) == want


def test_pods_are_counted_too() -> None:
    there = [running(make_pod(f"p{i}", "0", "0"), "n") for i in range(2)]
    assert verdicts([make_node("n", pods=2)], make_pod(), there) == {"n": "Too many pods"}


def test_extended_resources_must_be_there() -> None:
    wants = make_pod("gpu")
    wants = Pod(**{**{f: getattr(wants, f) for f in wants.__struct_fields__}, "requests": with_gpu(1)})
    nodes = [make_node("with", extended={"nvidia.com__gpu": 1}), make_node("without")]
    assert verdicts(nodes, wants) == {"without": "Insufficient nvidia.com/gpu"}


def with_gpu(count: int) -> Any:
    from htas.model.resources import Resources

    return Resources(100, 2**20, 0, 1, (("nvidia.com/gpu", count),))


@pytest.mark.parametrize(
    ("fields", "accepted"),
    [
        pytest.param({"node_selector": (("disk", "ssd"),)}, {"ssd"}, id="nodeSelector"),
        pytest.param({"node_affinity": expression("disk", Operator.IN, "ssd", "nvme")}, {"ssd"}, id="In"),
        pytest.param({"node_affinity": expression("disk", Operator.NOT_IN, "ssd")}, {"hdd", "none"}, id="NotIn"),
        pytest.param({"node_affinity": expression("disk", Operator.EXISTS)}, {"ssd", "hdd"}, id="Exists"),
        pytest.param({"node_affinity": expression("disk", Operator.DOES_NOT_EXIST)}, {"none"}, id="DoesNotExist"),
        pytest.param({"node_affinity": expression("gen", Operator.GT, "4")}, {"ssd"}, id="Gt compares integers"),
        pytest.param({"node_affinity": expression("gen", Operator.LT, "5")}, {"hdd"}, id="Lt compares integers"),
        pytest.param({"node_affinity": expression("disk", Operator.GT, "4")}, set(), id="Gt on words matches nothing"),
        pytest.param({"node_affinity": ()}, set(), id="terms that are all gone match nothing"),
        pytest.param({"node_affinity": (NodeSelectorTerm(),)}, set(), id="an empty term matches nothing"),
        pytest.param(
            {"node_affinity": expression("disk", Operator.IN, "hdd") + expression("gen", Operator.EXISTS)},
            {"ssd", "hdd"},
            id="terms are alternatives",
        ),
        pytest.param(
            {"node_affinity": (NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("none",)),)),)},
            {"none"},
            id="matchFields by name",
        ),
        pytest.param(
            {"node_selector": (("disk", "ssd"),), "node_affinity": expression("gen", Operator.LT, "5")},
            set(),
            id="selector and affinity must both hold",
        ),
    ],
)
def test_node_affinity(fields: dict[str, Any], accepted: set[str]) -> None:
    nodes = [
        make_node("ssd", labels={"disk": "ssd", "gen": "10"}),
        make_node("hdd", labels={"disk": "hdd", "gen": "4"}),
        make_node("none"),
    ]
    refused = verdicts(nodes, pod(**fields))
    assert {n.name for n in nodes} - set(refused) == accepted
    assert set(refused.values()) <= {AFFINITY, "node(s) didn't satisfy plugin(s) [NodeAffinity]"}


@pytest.mark.parametrize(
    ("taint", "tolerations", "want"),
    [
        pytest.param(no_schedule("gpu", "yes"), (), "node(s) had untolerated taint(s)", id="no toleration"),
        pytest.param(no_schedule("gpu", "yes"), (Toleration("gpu", "Equal", "yes"),), None, id="the same value"),
        pytest.param(
            no_schedule("gpu", "yes"),
            (Toleration("gpu", "Equal", "no"),),
            "node(s) had untolerated taint(s)",
            id="another value",
        ),
        pytest.param(no_schedule("gpu", "yes"), (Toleration("gpu", "Exists"),), None, id="any value"),
        pytest.param(no_schedule("gpu", "yes"), (Toleration("", "Exists"),), None, id="every taint"),
        pytest.param(
            Taint("gone", Effect.NO_EXECUTE),
            (Toleration("gone", "Exists", "", Effect.NO_SCHEDULE),),
            "node(s) had untolerated taint(s)",
            id="another effect",
        ),
        pytest.param(Taint("soft", Effect.PREFER_NO_SCHEDULE), (), None, id="a preference keeps nobody out"),
    ],
)
def test_taints(taint: Taint, tolerations: tuple[Toleration, ...], want: str | None) -> None:
    found = verdicts([make_node("n", taints=(taint,))], pod(tolerations=tolerations))
    assert found.get("n") == want


def test_a_cordon_keeps_pods_out_unless_tolerated() -> None:
    node = make_node("n", is_unschedulable=True)
    assert verdicts([node], pod()) == {"n": "node(s) were unschedulable"}
    tolerant = pod(tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),))
    assert verdicts([node], tolerant) == {}


@pytest.mark.parametrize(
    ("taken", "wanted", "is_free"),
    [
        pytest.param(HostPort(80), HostPort(80), False, id="the same port"),
        pytest.param(HostPort(80), HostPort(81), True, id="another port"),
        pytest.param(HostPort(80, "TCP"), HostPort(80, "UDP"), True, id="another protocol"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"), True, id="other addresses"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80), False, id="every address overlaps with one"),
    ],
)
def test_host_ports(taken: HostPort, wanted: HostPort, is_free: bool) -> None:
    there = running(pod("there", host_ports=(taken,)), "n")
    found = verdicts([make_node("n")], pod(host_ports=(wanted,)), [there])
    assert found == ({} if is_free else {"n": "node(s) didn't have free ports for the requested pod ports"})


def zoned(*zones: str) -> list[Node]:
    """Nodes a, b, c … in the given zones ("" for none)."""
    return [make_node(name, labels={ZONE: zone} if zone else {}) for name, zone in zip("abcdefgh", zones, strict=False)]


def spread(skew: int = 1, key: str = ZONE, **fields: Any) -> SpreadConstraint:
    return SpreadConstraint(key, skew, fields.pop("selector", labels_are(app="web")), **fields)


def web(*nodes: str, **fields: Any) -> list[Pod]:
    """Running pods of app web on nodes."""
    return [running(make_pod(f"web-{i}", labels={"app": "web"}, **fields), node) for i, node in enumerate(nodes)]


@pytest.mark.parametrize(
    ("zones", "placed", "constraint", "labels", "refused"),
    [
        pytest.param(("1", "2"), "a", spread(), {"app": "web"}, {"a": SPREAD}, id="the fuller zone is closed"),
        pytest.param(("1", "2"), "ab", spread(), {"app": "web"}, {}, id="even zones are open"),
        pytest.param(("1", "2"), "a", spread(2), {"app": "web"}, {}, id="within a skew of two"),
        pytest.param(("1", "2"), "aa", spread(2), {"app": "web"}, {"a": SPREAD}, id="beyond a skew of two"),
        pytest.param(("1", "2"), "a", spread(), {"app": "db"}, {}, id="a pod that its selector misses adds nothing"),
        pytest.param(("1", "2"), "aa", spread(), {"app": "db"}, {"a": SPREAD}, id="but what is there counts"),
        pytest.param(
            ("1", "1", "2"), "a", spread(), {"app": "web"}, {"a": SPREAD, "b": SPREAD}, id="a zone of two nodes"
        ),
        pytest.param(("1", "2", ""), "", spread(), {"app": "web"}, {"c": NO_LABEL}, id="a node without the label"),
        pytest.param(
            ("1", "2", ""), "c", spread(), {"app": "web"}, {"c": NO_LABEL}, id="pods on nodes without it do not count"
        ),
        pytest.param(
            ("1", "2"), "ab", spread(min_domains=3), {"app": "web"}, {"a": SPREAD, "b": SPREAD}, id="too few domains"
        ),
        pytest.param(("1", "2"), "", spread(min_domains=3), {"app": "web"}, {}, id="too few domains, none used"),
        pytest.param(("1", "2"), "ab", spread(min_domains=2), {"app": "web"}, {}, id="domains enough"),
        pytest.param(("1", "2"), "a", spread(key=HOST), {"app": "web"}, {"a": SPREAD}, id="by hostname"),
        pytest.param(
            ("1", "2"), "aaa", spread(selector=LabelSelector()), {"x": "y"}, {}, id="an empty selector counts nobody"
        ),
        pytest.param(("1", "2"), "aaa", spread(selector=None), {"app": "web"}, {}, id="no selector: none"),
    ],
)
def test_topology_spread(
    zones: tuple[str, ...], placed: str, constraint: SpreadConstraint, labels: dict[str, str], refused: dict[str, str]
) -> None:
    assert verdicts(zoned(*zones), pod(labels=labels, spread=(constraint,)), web(*placed)) == refused


def test_spread_ignores_other_namespaces_and_terminating_pods() -> None:
    elsewhere = [*web("a", namespace="other"), *web("a", deleted_at=1.0)]
    incoming = pod(labels={"app": "web"}, spread=(spread(),))
    assert verdicts(zoned("1", "2"), incoming, elsewhere) == {}


def test_spread_counts_only_nodes_the_pod_could_use() -> None:
    nodes = zoned("1", "2", "3")
    selector = (("kubernetes.io/hostname", "a"),)
    honoring = pod(labels={"app": "web"}, node_selector=selector, spread=(spread(),))
    assert verdicts(nodes, honoring, web("a", "a"))["b"] == AFFINITY
    assert "a" not in verdicts(nodes, honoring, web("a", "a"))
    ignoring = pod(labels={"app": "web"}, node_selector=selector, spread=(spread(honors_node_affinity=False),))
    assert verdicts(nodes, ignoring, web("a", "a"))["a"] == SPREAD


def test_spread_can_honor_taints() -> None:
    nodes = [*zoned("1", "2"), make_node("t", labels={ZONE: "3"}, taints=(no_schedule("x"),))]
    strict = pod(labels={"app": "web"}, spread=(spread(),))
    assert verdicts(nodes, strict, web("a", "b"))["a"] == SPREAD
    honoring = pod(labels={"app": "web"}, spread=(spread(honors_node_taints=True),))
    assert "a" not in verdicts(nodes, honoring, web("a", "b"))


def term(key: str = ZONE, **fields: Any) -> PodAffinityTerm:
    return PodAffinityTerm(key, fields.pop("selector", labels_are(app="web")), **fields)


@pytest.mark.parametrize(
    ("fields", "placed", "refused"),
    [
        pytest.param({"affinity": (term(),)}, "a", {"c": FAR, "d": FAR}, id="near friends, by zone"),
        pytest.param({"affinity": (term(HOST),)}, "a", {"b": FAR, "c": FAR, "d": FAR}, id="near friends, by host"),
        pytest.param({"affinity": (term(),)}, "", dict.fromkeys("abcd", FAR), id="no friend anywhere"),
        pytest.param(
            {"affinity": (term(),), "labels": {"app": "web"}},
            "",
            {"d": FAR},
            id="the first of its kind, where labelled",
        ),
        pytest.param(
            {"affinity": (term(),), "labels": {"app": "web"}}, "c", {"a": FAR, "b": FAR, "d": FAR}, id="the second one"
        ),
        pytest.param({"anti_affinity": (term(),)}, "a", {"a": NEAR, "b": NEAR}, id="apart, by zone"),
        pytest.param({"anti_affinity": (term(HOST),)}, "a", {"a": NEAR}, id="apart, by host"),
        pytest.param({"anti_affinity": (term(),)}, "d", {}, id="a pod on a node without the key repels nobody"),
        pytest.param({"anti_affinity": (term(selector=None),)}, "a", {}, id="no selector matches nothing"),
        pytest.param({"affinity": (term(), term(HOST))}, "a", {"b": FAR, "c": FAR, "d": FAR}, id="all terms must hold"),
        pytest.param(
            {"affinity": (term(namespaces=("other",)),)}, "a", dict.fromkeys("abcd", FAR), id="friends of a namespace"
        ),
        pytest.param(
            {"affinity": (term(namespace_selector=LabelSelector()),)},
            "a",
            {"c": FAR, "d": FAR},
            id="of every namespace",
        ),
        pytest.param(
            {"affinity": (term(namespace_selector=labels_are(team="x")),)},
            "a",
            dict.fromkeys("abcd", FAR),
            id="of namespaces by label, which this one lacks",
        ),
    ],
)
def test_inter_pod_affinity(fields: dict[str, Any], placed: str, refused: dict[str, str]) -> None:
    assert verdicts(zoned("1", "1", "2", ""), pod(**fields), web(*placed), namespaces={"default": {}}) == refused


@pytest.mark.parametrize(
    ("labels", "key", "refused"),
    [
        pytest.param(
            {"app": "web"}, ZONE, {"a": UNWILLING, "b": UNWILLING}, id="a running pod keeps its zone to itself"
        ),
        pytest.param({"app": "web"}, HOST, {"a": UNWILLING}, id="or its node"),
        pytest.param({"app": "db"}, ZONE, {}, id="others do not mind"),
    ],
)
def test_anti_affinity_is_symmetric(labels: dict[str, str], key: str, refused: dict[str, str]) -> None:
    loner = running(pod("loner", anti_affinity=(term(key),)), "a")
    assert verdicts(zoned("1", "1", "2"), pod(labels=labels), [loner]) == refused


def test_namespace_selector_takes_labelled_namespaces() -> None:
    incoming = pod(affinity=(term(namespace_selector=labels_are(team="x")),))
    there = web("a", namespace="blue")
    found = verdicts(zoned("1", "2"), incoming, there, namespaces={"blue": {"team": "x"}, "default": {}})
    assert found == {"b": FAR}


CLAIM = "node(s) didn't match PersistentVolume's node affinity"


def volumes(**overrides: Any) -> Volumes:
    zone_term = (NodeSelectorTerm((Requirement(ZONE, Operator.IN, ("1",)),)),)
    return Volumes(
        (
            PersistentVolume("pv", {}, zone_term, "cinder"),
            PersistentVolume("labelled", {ZONE: "1__2"}, None, "cinder"),
        ),
        (
            VolumeClaim("default", "bound", "pv", "fast", ("ReadWriteOnce",)),
            VolumeClaim("default", "zoned", "labelled", "fast"),
            VolumeClaim("default", "alone", "pv", "fast", ("ReadWriteOncePod",)),
            VolumeClaim("default", "waiting", None, "lazy"),
            VolumeClaim("default", "unbound", None, "eager"),
            VolumeClaim("default", "picky", None, "lazy-zone"),
        ),
        (
            StorageClass("eager", "cinder"),
            StorageClass("lazy", "cinder", True),
            StorageClass("lazy-zone", "cinder", True, zone_term),
        ),
    )


@pytest.mark.parametrize(
    ("claim", "refused"),
    [
        pytest.param("bound", {"b": CLAIM, "c": CLAIM}, id="a bound volume's node affinity"),
        pytest.param("zoned", {"c": "node(s) had no available volume zone"}, id="a bound volume's zone labels"),
        pytest.param("waiting", {}, id="a claim that waits for its consumer"),
        pytest.param(
            "picky",
            dict.fromkeys("bc", "node(s) didn't find available persistent volumes to bind"),
            id="a class with allowed topologies",
        ),
        pytest.param(
            "unbound", dict.fromkeys("abc", "pod has unbound immediate PersistentVolumeClaims"), id="an unbound claim"
        ),
        pytest.param("nobody", dict.fromkeys("abc", 'persistentvolumeclaim "nobody" not found'), id="no such claim"),
    ],
)
def test_volume_binding(claim: str, refused: dict[str, str]) -> None:
    assert verdicts(zoned("1", "2", "3"), pod(claims=(claim,)), volumes=volumes()) == refused


def test_a_read_write_once_pod_claim_has_one_user() -> None:
    user = running(pod("user", claims=("alone",)), "a")
    found = verdicts(zoned("1"), pod(claims=("alone",)), [user], volumes=volumes())
    assert found["a"].startswith("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod")


def test_attach_limits_count_shared_volumes_once() -> None:
    node = make_node("a", labels={ZONE: "1"}, attach_limits=(("cinder", 1),))
    user = running(pod("user", claims=("zoned",)), "a")
    assert verdicts([node], pod(claims=("zoned",)), [user], volumes=volumes()) == {}
    found = verdicts([node], pod(claims=("waiting",)), [user], volumes=volumes())
    assert found == {"a": "node(s) exceed max volume count"}


def test_what_is_not_understood_is_refused_everywhere() -> None:
    found = verdicts(zoned("1", "2"), pod(unsupported=("dynamic resource allocation (resourceClaims)",)))
    assert set(found) == {"a", "b"}
    assert "not supported" in found["a"]


def test_reasons_are_counted_by_the_first_filter_as_kube_scheduler_counts() -> None:
    nodes = [
        make_node("a", "50m", pods=1, taints=(no_schedule("x"),)),
        make_node("b", "50m", "64Mi"),
        make_node("c", pods=1),
    ]
    incoming = make_pod()
    opening = opened(nodes, [incoming, running(make_pod("there", "0", "0"), "c")])
    counts = opening.sim.diagnose(opening.book.class_of(incoming))
    assert summary(counts, 3) == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Too many pods, "
        "1 node(s) had untolerated taint(s)."
    )
