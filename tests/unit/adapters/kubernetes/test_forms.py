"""The forms a dump comes in, and what is told of objects and texts that cannot be read."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.adapters.kubernetes.dump import DumpError, read_dump
from htas.adapters.kubernetes.dump_view import ViewBuilder
from tests.unit.adapters.kubernetes.manifests import asking, manifest, node, pod, problems_of, view_of
from tests.unit.config.test_hostile_files import MERGES, SEQUENCES

OBJECTS = [
    *(node(f"n{i}", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}, allocatable={"cpu": i}) for i in range(3)),
    *(manifest("CSINode", f"n{i}", spec={"drivers": [{"name": "d", "allocatable": {"count": i}}]}) for i in range(3)),
    *(pod(f"p{i}", {"namespace": f"ns{i % 2}", "creationTimestamp": "2026-01-05T00:00:00Z"}) for i in range(6)),
    manifest("PriorityClass", "low", value=-5, globalDefault=True),
    manifest("PriorityClass", "lower", value=-6, globalDefault=True),
    *(manifest("Namespace", f"ns{i}") for i in range(2)),
    *(manifest("PodDisruptionBudget", f"b{i}", spec={"selector": {}}) for i in range(2)),
    *(manifest("PersistentVolume", f"v{i}") for i in range(2)),
    pod("bad", containers=[asking(cpu="1x")]),
    pod("worse", containers="none"),
]
AS_LIST = json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps({"kind": "List", "items": OBJECTS}, indent=4).encode(), id="a List, indented"),
        pytest.param(json.dumps(OBJECTS).encode(), id="a bare JSON list"),
        pytest.param("\n".join(json.dumps(item) for item in OBJECTS).encode(), id="an object a line"),
        pytest.param("\n".join(json.dumps(item, indent=2) for item in OBJECTS).encode(), id="indented objects one after another"),
        pytest.param("".join(json.dumps(item) for item in OBJECTS).encode(), id="objects with nothing between"),
        pytest.param("\n".join(json.dumps({"kind": "List", "items": part}) for part in (OBJECTS[:5], OBJECTS[5:])).encode(), id="several Lists"),
        pytest.param(yaml.safe_dump_all(OBJECTS).encode(), id="YAML documents"),
        pytest.param(yaml.safe_dump({"kind": "List", "items": OBJECTS}).encode(), id="a YAML List"),
        pytest.param(b"\n\n  " + AS_LIST.encode() + b"\n", id="white space around"),
        pytest.param(b"\xef\xbb\xbf" + AS_LIST.encode(), id="a byte order mark"),
        pytest.param(AS_LIST.encode("utf-16"), id="UTF-16, as PowerShell redirects"),
    ],
)  # fmt: skip
def test_all_forms_give_the_same_view(text: bytes) -> None:
    assert read_dump(text, "dump.json") == view_of(*OBJECTS)


@settings(max_examples=20, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_the_order_of_objects_changes_no_byte(rng: random.Random) -> None:
    shuffled = OBJECTS.copy()
    rng.shuffle(shuffled)
    assert msgspec.json.encode(view_of(*shuffled)) == msgspec.json.encode(view_of(*OBJECTS))


def test_pods_are_in_order_of_their_keys() -> None:
    view = view_of(*(pod("p", {"namespace": name}) for name in ("b", "a", "a-b")))
    assert [found.key for found in view.pods] == ["a-b/p", "a/p", "b/p"] == sorted(found.key for found in view.pods)


def test_items_of_a_typed_list_state_no_kind() -> None:
    bare = [{key: value for key, value in node(name).items() if key != "kind"} for name in "ab"]
    view = read_dump(json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": bare}).encode(), "dump.json")
    assert [found.name for found in view.nodes] == ["a", "b"]


def test_instants_in_yaml_are_read_as_in_json() -> None:
    text = b"kind: Node\nmetadata: {name: n, creationTimestamp: 1970-01-01T00:01:00Z}\n"
    assert read_dump(text, "dump.yaml").nodes[0].created_at == 60.0


def test_other_kinds_and_other_groups_are_passed_over() -> None:
    foreign = [
        manifest("Lease", "l", spec=1),
        {"kind": "ConfigMap", "metadata": "odd"},
        {**node("longhorn", spec={"disks": {}}), "apiVersion": "longhorn.io/v1beta2"},
        {**manifest("Job", "j", spec={"tasks": 1}), "apiVersion": "batch.volcano.sh/v1alpha1"},
    ]
    ours = {**node("ours"), "apiVersion": "v1"}
    view = view_of(*foreign, ours)
    assert ([found.name for found in view.nodes], view.problems) == (["ours"], ())


def test_null_is_absent() -> None:
    text = b'{"kind": "Pod", "metadata": {"name": "p", "creationTimestamp": null, "namespace": null}, "spec": {"nodeName": null, "containers": [{"name": "c", "resources": null, "ports": null}]}, "status": null}'
    view = read_dump(text, "dump.json")
    assert ([found.key for found in view.pods], view.problems) == (["default/p"], ())


def test_everything_wrong_is_told_at_once_and_the_rest_is_read() -> None:
    nameless = {"kind": "Pod", "metadata": {}, "spec": {}}
    told = problems_of(
        pod("good"),
        nameless,
        {"kind": "Pod"},
        {"metadata": {"name": "n"}},
        {"kind": "Node", "metadata": {"name": 5}},
        "text",  # type: ignore[arg-type]  # an item that is no object is what is tried
        pod("worse", containers="none"),
        pod("odd", meta={"labels": {"a": 1}}),
        node("n", allocatable={"memory": "lots"}),
        node("when", meta={"creationTimestamp": "yesterday"}),
        manifest("PodDisruptionBudget", "b", spec={"selector": {"matchExpressions": [{"key": "k", "operator": "Near"}]}}),
        manifest("StorageClass", "s", provisioner=1),
    )  # fmt: skip
    assert told == [
        "dump.json: Node n: status.allocatable.memory: 'lots' is not a quantity: a number with one of n u m k M G T P E Ki Mi Gi Ti Pi Ei",
        "dump.json: Node when: metadata.creationTimestamp: invalid RFC3339 encoded datetime",
        "dump.json: Pod default/odd: metadata.labels[...]: expected str, got int",
        "dump.json: Pod default/worse: spec.containers: expected array, got str",
        "dump.json: PodDisruptionBudget default/b: spec.selector.matchExpressions[0].operator: 'Near' is not one of DoesNotExist, Exists, In, NotIn",
        "dump.json: StorageClass s: provisioner: expected str, got int",
        "dump.json: items[1] (Pod, no name): metadata.name: missing",
        "dump.json: items[2] (Pod, no name): metadata.name: missing",
        "dump.json: items[3]: kind: missing",
        "dump.json: items[4] (Node, no name): metadata: name: expected str, got int",
        "dump.json: items[5]: expected object, got str",
    ]
    assert [found.name for found in view_of(pod("good"), nameless).pods] == ["good"]


def test_objects_of_several_documents_are_told_by_their_document() -> None:
    documents = [pod("p"), {"kind": "PodList", "items": [{"metadata": {}}]}, {"kind": "NodeList", "items": 3}]
    view = read_dump("\n".join(map(json.dumps, documents)).encode(), "d")
    assert [f"{problem.where}: {problem.what}" for problem in view.problems] == [
        "d: document 2: items[0] (Pod, no name): metadata.name: missing",
        "d: document 3: items: expected array, got int",
    ]


def test_a_text_that_is_not_utf_8_is_told_of_its_object() -> None:
    text = json.dumps({"kind": "List", "items": [pod("good"), pod("bad", {"labels": {"a": "X"}})]}).encode()
    view = read_dump(text.replace(b'"X"', b'"\xff"'), "d")
    assert [found.name for found in view.pods] == ["good"]
    assert [f"{p.where}: {p.what}" for p in view.problems] == ["d: Pod default/bad: not UTF-8: byte 0xff in a text"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"", "d: empty", id="nothing"),
        pytest.param(b" \n ", "d: empty", id="white space"),
        pytest.param(b'{"kind": "List",\n "items": [', "d:2:12: malformed JSON: input data was truncated", id="JSON cut off"),
        pytest.param(b'{"kind": "Pod"}\n{"kind": Pod}', "d:2:10: malformed JSON: ", id="a fault in the second object"),
        pytest.param(b'{"a": NaN}', "d:1:7: malformed JSON: ", id="no JSON number"),
        pytest.param(b"[" * 200_000, "d: nested too deeply", id="nested without end"),
        pytest.param(b"kind: [", "d:2:1: malformed YAML: ", id="YAML cut off"),
        pytest.param(b"a: b\nc: \x01", "d:2:4: malformed YAML: control characters are not allowed", id="a control character"),
        pytest.param(b"a: !thing 1", "d:1:4: malformed YAML: could not determine a constructor", id="a tag of another world"),
        pytest.param(b"a: &x [*x]", "d:1: comes to more than 200,000 values", id="YAML that contains itself"),
        pytest.param(SEQUENCES.encode(), "d:7: comes to more than 200,000 values once its aliases are written out; write fewer aliases. Write the dump with: kubectl get", id="YAML aliases of aliases"),
        pytest.param(MERGES.encode(), "d:6: comes to more than 200,000 values", id="YAML merges of merges"),
        pytest.param(b"---\n".join([b"a: &a [x, x, x, x, x, x, x, x, x, x]\nb: [" + b"*a, " * 1000 + b"]\n"] * 30), "d:56: comes to more than 200,000 values", id="aliases of many documents together"),
        pytest.param(b"a: &a " + b"x" * 2**20 + b"\nb: [" + b"*a, " * 100 + b"]", "d:2: comes to more than 64 MiB", id="a long text that is repeated"),
        pytest.param(b"a: " + b"[" * 200_000, "d:1: is nested too deeply: more than 100 levels", id="YAML in brackets without end"),
        pytest.param(b"a:\n " + b"- " * 200_000, "d:2: is nested too deeply", id="YAML in dashes without end"),
        pytest.param(b"{kind: Pod}", "d:1:2: malformed JSON: ", id="YAML in braces is taken for JSON"),
        pytest.param(b"kind: Pod\n---\ntrue: 1", "d: document 2 is no Kubernetes object: ", id="a key that is no text"),
        pytest.param(b"a: b\n---\nc: " + b"9" * 5000, "d: document 2 is no Kubernetes object: ", id="a number of 5,000 digits"),
        pytest.param(b"just words", "d: document 1 is str, not a Kubernetes object", id="words"),
        pytest.param(b"\xff\xfea", "d: begins as UTF-16 and is not", id="half a character of UTF-16"),
    ],
)  # fmt: skip
def test_what_is_no_dump_is_refused_with_its_place(text: bytes, message: str) -> None:
    with pytest.raises(DumpError) as refused:
        read_dump(text, "d")
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("sound", [AS_LIST.encode(), yaml.safe_dump_all(OBJECTS[-4:]).encode()], ids=["JSON", "YAML"])
@settings(max_examples=100, derandomize=True)
@given(st.binary(max_size=40), st.floats(0, 1))
def test_damage_is_told_and_never_breaks_the_reader(sound: bytes, noise: bytes, where: float) -> None:
    at = int(len(sound) * where)
    damaged = sound[:at] + noise + sound[at + len(noise) :]
    try:
        view = read_dump(damaged, "d")
    except DumpError as error:
        assert str(error).startswith("d:")
    else:
        assert all(problem.where.startswith("d: ") for problem in view.problems)


def test_a_builder_can_be_asked_again_as_objects_arrive() -> None:
    builder = ViewBuilder()
    builder.add(json.dumps(pod("bad", containers=[asking(cpu="1x")])).encode(), "event 1")
    assert builder.view() == builder.view()
    builder.add(json.dumps(pod("good")).encode(), "event 2")
    view = builder.view()
    assert ([found.name for found in view.pods], len(view.problems)) == (["good"], 1)


def test_pods_of_a_template_share_their_constraints_and_requests() -> None:
    pods = view_of(*(pod(f"p{i}", nodeSelector={"a": str(i % 2)}) for i in range(10))).pods
    assert len({id(found.constraints) for found in pods}) == 2
    assert len({id(found.requests) for found in pods}) == 1
