"""What is read of a dump beside its objects: when it was taken, and what it lacks."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from htas.adapters.kubernetes.dump import Dump, DumpError, read_whole
from htas.adapters.kubernetes.dump_file import read_bytes
from htas.adapters.kubernetes.gaps import ALL
from tests.unit.adapters.kubernetes.manifests import manifest, node, pod

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-05T08:00:00Z"


def read(*objects: dict[str, Any]) -> Dump:
    return read_whole(json.dumps({"kind": "List", "items": objects}).encode(), "d")


def told(status: dict[str, Any]) -> dict[str, Any]:
    return {**pod("p", {"creationTimestamp": OLD}), "status": {"phase": "Running", **status}}


DATED = [
    pytest.param(pod("p", {"creationTimestamp": NEW}), "Pod p", id="a pod was made"),
    pytest.param({**node("n"), "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": NEW}]}}, "Node n", id="a kubelet told of its node"),
    pytest.param(manifest("Lease", "n", spec={"renewTime": "2026-01-05T08:00:00.000000Z"}), "Lease n", id="a kubelet renewed its lease"),
    pytest.param(manifest("ConfigMap", "c", metadata={"name": "c", "creationTimestamp": NEW}), "ConfigMap c", id="an object of a kind that is not read"),
    pytest.param(pod("p", {"managedFields": [{"manager": "kubelet", "time": NEW}]}), "Pod p", id="somebody wrote to it"),
    pytest.param(told({"startTime": NEW}), "Pod p", id="a pod started"),
    pytest.param(told({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": NEW}]}), "Pod p", id="it became Ready"),
    pytest.param(told({"containerStatuses": [{"name": "c", "state": {"running": {"startedAt": NEW}}}]}), "Pod p", id="a container started again"),
    pytest.param(told({"containerStatuses": [{"name": "c", "lastState": {"terminated": {"finishedAt": NEW}}}]}), "Pod p", id="one had ended before"),
    pytest.param(pod("p", {"deletionTimestamp": "2026-01-05T08:00:30Z", "deletionGracePeriodSeconds": 30}), "Pod p", id="half a minute before its grace is over"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "by"), DATED)
def test_the_newest_instant_is_when_a_dump_was_taken(item: dict[str, Any], by: str) -> None:
    found = read(pod("old", {"creationTimestamp": OLD}), item).newest
    assert (found.at, found.of) == (datetime(2026, 1, 5, 8, tzinfo=UTC).timestamp(), by)


def test_instants_to_come_and_broken_ones_do_not_date_it() -> None:
    to_come = manifest("Certificate", "c", status={"notAfter": "2030-01-01T00:00:00Z"})
    broken = manifest("ConfigMap", "b", metadata={"name": "b", "creationTimestamp": "yesterday"})
    assert read(pod("old", {"creationTimestamp": OLD}), to_come, broken).newest.of == "Pod old"


def using(claim: str, **more: Any) -> dict[str, Any]:
    return pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}], **more)


def owned(kind: str) -> dict[str, Any]:
    return pod("p", {"ownerReferences": [{"kind": kind, "name": "o", "controller": True}]})


BUDGET = manifest("PodDisruptionBudget", "b", spec={"selector": {}})
CLAIM = manifest("PersistentVolumeClaim", "c", spec={"volumeName": "v"})
CSI_NODE = manifest("CSINode", "n", spec={"drivers": []})
OPEN_CLAIM = manifest("PersistentVolumeClaim", "c", spec={"storageClassName": "fast"})
VOLUME = manifest("PersistentVolume", "v", spec={"csi": {"driver": "cinder.csi.openstack.org"}})


@pytest.mark.parametrize(
    ("objects", "lacks"),
    [
        pytest.param([node("n"), pod("p"), BUDGET], [], id="nothing is missed"),
        pytest.param([node("n"), BUDGET], ["no pods"], id="nodes alone"),
        pytest.param([pod("p"), BUDGET], ["no nodes"], id="pods alone"),
        pytest.param([node("n"), pod("p")], ["no disruption budgets, or the cluster has none"], id="budgets"),
        pytest.param([node("n"), using("c", nodeName="n"), BUDGET], ["no volume claims of 1 pod with volumes"], id="claims"),
        pytest.param([node("n"), using("c"), BUDGET], ["no volume claims of 1 pod that waits"], id="claims of what waits"),
        pytest.param([node("n"), using("lost"), BUDGET, CLAIM, VOLUME, CSI_NODE], [], id="a claim that a waiting pod lacks"),
        pytest.param(
            [node("n"), using("lost", nodeName="n"), BUDGET, CLAIM, VOLUME, CSI_NODE],
            ["no volume claims of 1 pod with volumes"],
            id="a claim that a running pod must have",
        ),
        pytest.param([node("n"), using("c"), BUDGET, CLAIM], ["no volumes for the claims of 1 pod"], id="volumes"),
        pytest.param([node("n"), using("c"), BUDGET, OPEN_CLAIM], ["no storage classes for the claims of 1 pod"], id="classes"),
        pytest.param([node("n"), using("c"), BUDGET, CLAIM, VOLUME], ["no CSINodes, though volumes are attached"], id="what nodes attach"),
        pytest.param([node("n"), owned("ReplicaSet"), BUDGET], ["no ReplicaSets"], id="ReplicaSets"),
        pytest.param([node("n"), owned("StatefulSet"), BUDGET], ["no StatefulSets"], id="StatefulSets"),
        pytest.param([node("n"), owned("DaemonSet"), BUDGET], ["no DaemonSets"], id="DaemonSets"),
        pytest.param([node("n"), owned("Job"), BUDGET], ["no Jobs"], id="Jobs"),
        pytest.param([node("n"), owned("Workflow"), BUDGET], [], id="no controllers that are not read"),
    ],
)  # fmt: skip
def test_what_a_dump_lacks_is_told(objects: list[dict[str, Any]], lacks: list[str]) -> None:
    assert [gap.lacks for gap in read(*objects).gaps] == lacks


def test_an_empty_list_of_a_kind_is_all_there_is() -> None:
    documents = [{"kind": "List", "items": [node("n"), pod("p")]}, {"kind": "PodDisruptionBudgetList", "items": []}]
    assert read_whole("\n".join(map(json.dumps, documents)).encode(), "d").gaps == ()


def test_a_list_without_items_answers_what_the_cluster_may_have_none_of() -> None:
    """kubectl prints it for no budgets, without saying of what. A pod may wait since it has no claim; what runs has one,
    and the same command is not told again.
    """

    def gaps_of(using_pod: dict[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
        documents = [{"kind": "List", "items": [node("n"), using_pod]}, {"kind": "List", "items": []}]
        found = read_whole("\n".join(map(json.dumps, documents)).encode(), "d").gaps
        return [(gap.lacks, gap.resources) for gap in found]

    assert gaps_of(using("c")) == []
    assert gaps_of(using("c", nodeName="n")) == [
        ("no volume claims of 1 pod with volumes, and a List without items", ())
    ]


SYSTEM = manifest("Namespace", "kube-system")


def nodes(count: int) -> list[dict[str, Any]]:
    return [node(f"n{i}") for i in range(count)]


@pytest.mark.parametrize(
    ("objects", "doubts"),
    [
        pytest.param([*nodes(4), pod("p"), BUDGET], ["the dump has the pods of one namespace only (default)"], id="-A was forgotten"),
        pytest.param([*nodes(2), SYSTEM, pod("p"), BUDGET], ["the dump has the pods of one namespace only (default)"], id="of a small cluster the dump says itself that there is more"),
        pytest.param([*nodes(2), pod("p"), BUDGET], [""], id="two nodes that somebody wrote by hand"),
        pytest.param([node("n"), pod("p"), BUDGET], [], id="a single node"),
        pytest.param([*nodes(4), pod("p"), pod("q", {"namespace": "kube-system"}), BUDGET], [], id="something of kube-system"),
        pytest.param([*nodes(4), pod("p", {"ownerReferences": [{"kind": "DaemonSet", "name": "o", "controller": True}]}), BUDGET, manifest("DaemonSet", "o")], [], id="a pod that comes with its node"),
    ],
)  # fmt: skip
def test_a_dump_of_one_namespace_is_doubted(objects: list[dict[str, Any]], doubts: list[str]) -> None:
    found = read(*objects).gaps
    assert [gap.doubt for gap in found] == doubts
    assert all(gap.resources == tuple(ALL.split(",")) for gap in found)


def test_pods_on_nodes_that_the_dump_does_not_have_are_counted() -> None:
    """They were left out in silence, and what was left looked like a saving."""
    lost = [pod(f"p{i}", nodeName=f"lost-{i % 2}") for i in range(3)]
    [gap] = read(node("n"), pod("there", nodeName="n"), *lost, BUDGET).gaps
    assert (gap.lacks, gap.resources) == ("3 pods on 2 nodes that it does not have: lost-0, lost-1", ("nodes",))
    assert gap.doubt == "3 pods on 2 nodes that the dump does not have are left out"


def test_a_pod_left_behind_by_its_node_leaves_the_answer_what_it_is() -> None:
    [gap] = read(node("n"), *(pod(f"p{i}", nodeName="n") for i in range(60)), pod("q", nodeName="gone"), BUDGET).gaps
    assert (gap.lacks, gap.doubt) == ("1 pod on 1 node that it does not have: gone", "")


TEXT = json.dumps({"kind": "List", "items": [node("n")]}).encode()


@pytest.mark.parametrize("packed", [TEXT, gzip.compress(TEXT)], ids=["plain", "gzip"])
def test_a_file_and_standard_input_are_read(packed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dump.json.gz"
    path.write_bytes(packed)
    assert read_bytes(path) == TEXT
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    assert read_bytes(Path("-")) == TEXT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"PK\x03\x04" + b"\0" * 100, "is a zip archive", id="a zip archive"),
        pytest.param(b"\0" * 100, "is no text", id="zeros"),
        pytest.param(b"NAME   STATUS\nn      Ready\n", "is the table that kubectl prints", id="without -o json"),
        pytest.param(
            b"level=info msg=ready\n" * 5000, "holds no Kubernetes objects; it begins 'level=info", id="a log"
        ),
        pytest.param(gzip.compress(TEXT)[:-9], "begins as a gzip file and is none", id="gzip cut off"),
        pytest.param(gzip.compress(b"\0" * 100), "is no text", id="zeros in gzip"),
    ],
)
def test_what_is_no_dump_is_known_by_its_beginning(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.write_bytes(text)
    with pytest.raises(DumpError, match="d: ") as refused:
        read_bytes(path)
    assert message in str(refused.value)


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "d")
    assert read_bytes(tmp_path / "d") == b""
    with pytest.raises(DumpError, match="d: empty; write it with"):
        read_whole(b"", str(tmp_path / "d"))


def test_what_another_command_prints_is_read_as_it_comes(tmp_path: Path) -> None:
    """As of `--from <(kubectl get … -o json)`."""
    os.mkfifo(tmp_path / "d")
    reads = os.open(tmp_path / "d", os.O_RDONLY | os.O_NONBLOCK)
    writes = os.open(tmp_path / "d", os.O_WRONLY)

    def write() -> None:
        for part in (TEXT[:10], TEXT[10:]):
            os.write(writes, part)
        os.close(writes)

    writer = Thread(target=write)
    writer.start()
    assert read_bytes(tmp_path / "d") == TEXT
    writer.join()
    os.close(reads)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_device_is_no_dump(device: str) -> None:
    with pytest.raises(DumpError, match="is no file; name one"):
        read_bytes(Path(device))


@pytest.mark.parametrize("form", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_no_more_is_read_than_is_allowed(form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a file that unpacks to a thousand times its size."""
    monkeypatch.setattr("htas.adapters.kubernetes.dump_file.MOST_BYTES", 2**20)
    path = tmp_path / "d"
    path.write_bytes(form(TEXT + b" " * 2**21))
    with pytest.raises(DumpError, match="is longer than"):
        read_bytes(path)
    path.write_bytes(form(TEXT + b" " * (2**20 - len(TEXT))))
    assert len(read_bytes(path)) == 2**20


def test_logs_between_objects_are_told_by_where_they_come_from() -> None:
    text = b'{"kind": "PodList", "items": []}\n==== START logs for container a of pod b/c ====\n'
    with pytest.raises(DumpError, match="cluster-info dump writes logs between its objects"):
        read_whole(text, "d")
