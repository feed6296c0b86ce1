import json
import random
from typing import Any

import msgspec
import pytest
import yaml

from htas.adapters.kubernetes.dump import DumpError, read_dump
from htas.model.pods import RunLengthSource, WorkKind
from htas.model.snapshot import ClusterView


def pod(name: str = "p", spec: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": "2026-01-05T00:00:00Z", **meta},
        "spec": {"containers": containers, **(spec or {})},
        "status": {"phase": "Pending"},
    }


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


def read(*objects: dict[str, Any]) -> ClusterView:
    return read_dump(json.dumps({"kind": "List", "items": list(objects)}).encode(), "dump.json")


def one(**spec: Any) -> Any:
    view = read(pod(spec=spec))
    assert not view.problems
    return view.pods[0]


@pytest.mark.parametrize(
    ("spec", "cpu_m"),
    [
        pytest.param({"containers": [container("100m"), container("250m")]}, 350, id="containers are summed"),
        pytest.param(
            {"containers": [container("100m")], "initContainers": [container("1")]}, 1000, id="a large init container"
        ),
        pytest.param(
            {"containers": [container("300m")], "initContainers": [container("200m"), container("250m")]},
            300,
            id="init containers run one after another",
        ),
        pytest.param(
            {
                "containers": [container("300m")],
                "initContainers": [container("200m", restartPolicy="Always"), container("250m")],
            },
            500,
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            {
                "containers": [container("100m")],
                "initContainers": [container("200m", restartPolicy="Always"), container("900m")],
            },
            1100,
            id="a sidecar runs beside later init containers",
        ),
        pytest.param(
            {
                "containers": [container("100m")],
                "initContainers": [container("900m"), container("200m", restartPolicy="Always")],
            },
            900,
            id="but not beside earlier ones",
        ),
        pytest.param(
            {"containers": [container("100m")], "resources": {"requests": {"cpu": "2"}}},
            2000,
            id="pod-level requests replace the sum",
        ),
        pytest.param({"containers": [container("100m")], "overhead": {"cpu": "50m"}}, 150, id="overhead is added"),
        pytest.param(
            {"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}, 3000, id="a limit is the request"
        ),
        pytest.param({"containers": [container("0.1")]}, 100, id="a decimal fraction"),
    ],
)
def test_pod_requests(spec: dict[str, Any], cpu_m: int) -> None:
    assert one(**spec).requests.cpu_m == cpu_m


def test_scores_assume_what_a_container_does_not_ask_for() -> None:
    found = one(containers=[{"name": "a"}, container("0")])
    assert (found.requests.cpu_m, found.scoring_cpu_m) == (0, 100)
    assert found.scoring_memory_bytes == 2 * 200 * 2**20


def test_extended_resources_are_counted() -> None:
    requests = {"cpu": "1", "nvidia.com/gpu": "2"}
    found = one(containers=[{"name": "c", "resources": {"requests": requests}}])
    assert found.requests.extended == (("nvidia.com/gpu", 2),)


def test_ended_pods_hold_nothing() -> None:
    ended = pod("done")
    ended["status"]["phase"] = "Succeeded"
    assert read(ended).pods == ()


@pytest.mark.parametrize(
    ("meta", "spec", "kind"),
    [
        pytest.param({}, {}, WorkKind.SERVICE, id="a bare pod that always restarts"),
        pytest.param({}, {"restartPolicy": "Never"}, WorkKind.BATCH, id="a pod that does not restart"),
        pytest.param(
            {"ownerReferences": [{"kind": "Job", "name": "j", "controller": True}]},
            {},
            WorkKind.BATCH,
            id="a Job's pod",
        ),
        pytest.param({"labels": {"htas.io/workload": "batch"}}, {}, WorkKind.BATCH, id="the label wins"),
    ],
)
def test_kind_of_work(meta: dict[str, Any], spec: dict[str, Any], kind: WorkKind) -> None:
    assert read(pod(spec=spec, **meta)).pods[0].kind is kind


@pytest.mark.parametrize(
    ("annotation", "want_s"),
    [("90", 90.0), ("90s", 90.0), ("5m", 300.0), ("1h30m", 5400.0), ("1.5h", 5400.0)],
)
def test_run_length_annotation(annotation: str, want_s: float) -> None:
    found = read(pod(spec={"restartPolicy": "Never"}, annotations={"htas.io/runtime": annotation})).pods[0]
    assert found.run_length.seconds == want_s
    assert found.run_length.source is RunLengthSource.ANNOTATION


def test_deadline_of_the_job_is_a_run_length() -> None:
    job = {"kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": {"activeDeadlineSeconds": 600}}
    owned = pod(ownerReferences=[{"kind": "Job", "name": "j", "controller": True}])
    found = read(job, owned).pods[0]
    assert (found.run_length.seconds, found.run_length.source) == (600, RunLengthSource.DEADLINE)


def test_constraints_are_read_whole() -> None:
    found = one(
        nodeSelector={"disk": "ssd"},
        tolerations=[{"key": "a", "operator": "Exists"}],
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["3"]}]}]
                }
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["none"]}
                ]
            },
        },
        topologySpreadConstraints=[
            {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3},
            {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
        ],
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "ephemeral": {}}],
        containers=[container("1", ports=[{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}])],
    ).constraints
    assert found.node_selector == (("disk", "ssd"),)
    assert found.node_affinity[0].expressions[0].operator == "Gt"
    assert found.anti_affinity[0].topology_key == "zone"
    assert [c.min_domains for c in found.spread] == [3]
    assert found.claims == ("c", "p-e")
    assert (found.host_ports[0].port, found.host_ports[0].protocol) == (8080, "UDP")
    assert found.unsupported == ()


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, "resource allocation", id="a DRA claim"),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1, "whenUnsatisfiable": "Sometimes"}]},
            "Sometimes",
            id="an unknown spread mode",
        ),
    ],
)
def test_what_is_not_understood_is_named(spec: dict[str, Any], word: str) -> None:
    assert word in one(**spec).constraints.unsupported[0]


def test_problems_are_told_all_at_once_and_the_rest_is_read() -> None:
    nameless = pod()
    del nameless["metadata"]["name"]
    view = read(
        pod("good"),
        nameless,
        pod("bad", spec={"containers": [container("1x")]}),
        pod("worse", spec={"containers": "none"}),
        {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"memory": "lots"}}},
    )
    assert [p.name for p in view.pods] == ["good"]
    told = {problem.where for problem in view.problems}
    assert told == {
        "dump.json: items[1] (Pod, no name): metadata.name",
        "dump.json: Pod default/bad: spec.containers[0].resources.requests.cpu",
        "dump.json: Pod default/worse",
        "dump.json: Node n: status.allocatable.memory",
    }


def test_all_forms_give_the_same_view() -> None:
    objects = [pod("a"), pod("b"), {"kind": "Namespace", "metadata": {"name": "default"}}]
    want = read(*objects)
    concatenated = "\n".join(json.dumps(item, indent=1) for item in objects).encode()
    documents = yaml.safe_dump_all(objects).encode()
    typed = json.dumps({"kind": "PodList", "items": [{k: v for k, v in pod(n).items() if k != "kind"} for n in "ab"]})
    assert read_dump(concatenated, "dump.json") == want
    assert read_dump(documents, "dump.json") == want
    assert read_dump(typed.encode(), "dump.json").pods == want.pods


def test_order_of_the_list_does_not_matter() -> None:
    objects = [pod(f"p{i}") for i in range(20)]
    shuffled = objects.copy()
    random.Random(1).shuffle(shuffled)
    assert msgspec.json.encode(read(*shuffled)) == msgspec.json.encode(read(*objects))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(b'{"kind": "List", "items": [', "dump.json:1:", id="JSON cut off"),
        pytest.param(b"kind: [", "dump.json:2:1: malformed YAML", id="YAML cut off"),
        pytest.param(b"", "dump.json: empty", id="nothing"),
        pytest.param(b"just words", "dump.json: document 1", id="words"),
    ],
)
def test_malformed_text_has_its_place(text: bytes, place: str) -> None:
    with pytest.raises(DumpError, match=place):
        read_dump(text, "dump.json")


def test_templates_share_their_constraints() -> None:
    view = read(*(pod(f"p{i}", spec={"nodeSelector": {"a": "b"}}) for i in range(3)))
    assert len({id(p.constraints) for p in view.pods}) == 1
    assert len({id(p.requests) for p in view.pods}) == 1


def test_nulls_are_fields_that_are_not_there() -> None:
    nulls = {"kind": "Pod", "metadata": {"name": "p", "labels": None, "namespace": None}, "spec": {"containers": None}}
    view = read(nulls, {"kind": "Node", "metadata": {"name": "n"}, "status": None})
    assert not view.problems
    assert ([p.key for p in view.pods], [n.name for n in view.nodes]) == (["default/p"], ["n"])


def test_a_null_among_the_objects_is_passed_over_and_told() -> None:
    """One that a script had left refused a dump of two hundred."""
    text = json.dumps({"kind": "List", "items": [None, pod("a"), None, None]}).encode()
    view = read_dump(text, "dump.json")
    assert [each.key for each in view.pods] == ["default/a"]
    [told] = view.problems
    assert (told.where, told.is_doubt) == ("dump.json: items[0]", True)
    assert told.what == "null is no object, and 2 more are null; passed over"


def test_a_name_used_twice_is_told() -> None:
    view = read(pod("a"), pod("a"))
    assert len(view.pods) == 1
    assert view.problems[0].where == "dump.json: Pod default/a"
    assert view.problems[0].what == "items[1] has this name too; the first of a name counts"


def test_many_names_used_twice_are_told_in_one_line() -> None:
    problems = read(*map(pod, "abc"), *map(pod, "abc")).problems
    assert [problem.what for problem in problems] == [
        "items[3] has this name too, and 2 more objects are there twice; the first of a name counts"
    ]
