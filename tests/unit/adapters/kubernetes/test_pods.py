"""Pods apart from their requests and constraints."""

from __future__ import annotations

from typing import Any

import pytest

from htas.adapters.kubernetes.pods import duration_s
from htas.model.deletion_costs import DELETION_COST
from htas.model.nodes import DO_NOT_DISRUPT
from htas.model.pods import RUNTIME, SAFE_LOCAL_VOLUMES, SAFE_TO_EVICT, Owner, Phase, RunLengthSource, WorkKind
from tests.unit.adapters.kubernetes.manifests import Manifest, manifest, pod, problems_of, read_pod, view_of

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SPREAD: Manifest = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1}


def owned_by(kind: str, name: str = "o", **more: Any) -> Manifest:
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": "u", "controller": True, **more}]}


def test_identity_and_times() -> None:
    meta = {
        "namespace": "team",
        "uid": "u1",
        "labels": {"app": "web"},
        "creationTimestamp": "1970-01-01T00:01:00Z",
        "deletionTimestamp": "1970-01-01T00:03:00Z",
        "deletionGracePeriodSeconds": 7,
    }
    status = {"phase": "Running", "startTime": "1970-01-01T00:02:00Z", "nominatedNodeName": "n2"}
    found = read_pod(pod("a", meta, status, nodeName="n1", schedulerName="htas", terminationGracePeriodSeconds=60))
    assert (found.key, found.uid, found.labels) == ("team/a", "u1", {"app": "web"})
    assert (found.created_at, found.started_at, found.deleted_at, found.grace_s) == (60.0, 120.0, 180.0, 7.0)
    assert (found.phase, found.node, found.nominated_node, found.scheduler) == (Phase.RUNNING, "n1", "n2", "htas")


@pytest.mark.parametrize(
    ("status", "since"),
    [
        pytest.param({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:02:30Z"}]}, 150.0, id="since its condition says so"),
        pytest.param({"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "1970-01-01T00:02:30Z"}]}, None, id="it is not"),
        pytest.param({"conditions": [{"type": "Initialized", "status": "True"}]}, None, id="nothing is said of it"),
        pytest.param({"conditions": [{"type": "Ready", "status": "True"}], "startTime": "1970-01-01T00:02:00Z"}, 120.0, id="since it was started, where no instant is told"),
        pytest.param({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}]}, 60.0, id="since it was made, where not even that is"),
    ],
)  # fmt: skip
def test_since_when_a_pod_is_ready(status: Manifest, since: float | None) -> None:
    status = {"phase": "Running", **status}
    assert read_pod(pod("a", {"creationTimestamp": "1970-01-01T00:01:00Z"}, status)).ready_since == since


def test_a_bare_manifest_gets_the_api_servers_defaults() -> None:
    found = read_pod(pod("a"))
    assert (found.key, found.phase, found.scheduler, found.grace_s) == (
        "default/a",
        Phase.PENDING,
        "default-scheduler",
        30.0,
    )
    assert (found.node, found.priority, found.preempts, found.run_length) == (None, 0, True, None)
    assert not (found.is_unschedulable or found.is_mirror or found.has_local_storage or found.gates)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_ended_pods_are_left_out_even_odd_ones(phase: str) -> None:
    view = view_of(pod(status={"phase": phase}, containers=[{"name": "c", "resources": {"requests": {"cpu": "?"}}}]))
    assert (view.pods, view.problems) == ((), ())


def test_an_unknown_phase_is_a_problem() -> None:
    assert problems_of(pod(status={"phase": "Dreaming"})) == [
        "dump.json: Pod default/p: status.phase: 'Dreaming' is not one of Pending, Running, Succeeded, Failed, Unknown"
    ]


def test_marks_of_the_scheduler_the_kubelet_and_gates() -> None:
    refused = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    gated = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    assert read_pod(pod(status=refused)).is_unschedulable
    assert not read_pod(pod(status=gated)).is_unschedulable
    assert read_pod(pod(schedulingGates=[{"name": "a"}, {"name": "b"}])).gates == ("a", "b")


def the_node(**changed: object) -> Manifest:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u", "controller": True} | changed
    return {"annotations": {"kubernetes.io/config.mirror": "hash"}, "ownerReferences": [owner]}


@pytest.mark.parametrize(
    ("meta", "is_mirror"),
    [
        pytest.param(the_node(), True, id="its node controls it"),
        pytest.param({"annotations": the_node()["annotations"]}, False, id="an annotation alone, as anybody may write"),
        pytest.param({"ownerReferences": the_node()["ownerReferences"]}, False, id="an owner alone"),
        pytest.param(the_node(name="n2"), False, id="another node is said to own it"),
        pytest.param(the_node(apiVersion="mine/v1"), False, id="an invented kind of node"),
        pytest.param(the_node(controller=None), False, id="the node owns it, and does not control it"),
    ],
)
def test_a_static_pod_is_one_that_its_node_controls(meta: Manifest, *, is_mirror: bool) -> None:
    assert read_pod(pod(meta=meta, nodeName="n1")).is_mirror is is_mirror


@pytest.mark.parametrize(
    ("meta", "spec", "kind"),
    [
        pytest.param({}, {}, WorkKind.SERVICE, id="a bare pod that always restarts"),
        pytest.param({}, {"restartPolicy": "OnFailure"}, WorkKind.BATCH, id="a pod that ends once it succeeds"),
        pytest.param(owned_by("Job"), {}, WorkKind.BATCH, id="a Job's pod"),
        pytest.param(owned_by("Job", apiVersion="batch.volcano.sh/v1alpha1"), {}, WorkKind.BATCH, id="of a Job of Volcano's"),
        pytest.param(owned_by("ReplicaSet"), {}, WorkKind.SERVICE, id="a ReplicaSet's pod"),
        pytest.param(owned_by("StatefulSet", apiVersion="apps.kruise.io/v1beta1"), {}, WorkKind.SERVICE, id="of a StatefulSet of OpenKruise's"),
        pytest.param({"labels": {"htas.io/workload": "batch"}}, {}, WorkKind.BATCH, id="the label says batch"),
        pytest.param({"labels": {"htas.io/workload": "service"}, **owned_by("Job")}, {}, WorkKind.SERVICE, id="the label is asked before the owner"),
    ],
)  # fmt: skip
def test_kind_of_work(meta: Manifest, spec: Manifest, kind: WorkKind) -> None:
    assert read_pod(pod(meta=meta, **spec)).kind is kind


@pytest.mark.parametrize(
    ("controller", "want"),
    [
        pytest.param(manifest("ReplicaSet", "o", spec={"replicas": 3}), 3, id="a ReplicaSet"),
        pytest.param(manifest("ReplicationController", "o", spec={"replicas": 0}), 0, id="none wanted"),
        pytest.param(manifest("StatefulSet", "o", spec={}), 1, id="one where it does not say"),
        pytest.param(manifest("Job", "o", spec={"parallelism": 4}), 4, id="a Job by its parallelism"),
        pytest.param(manifest("ReplicaSet", "o", {"namespace": "other"}, spec={"replicas": 3}), None, id="one of another namespace"),
    ],
)  # fmt: skip
def test_owners_and_how_many_they_want(controller: Manifest, want: int | None) -> None:
    kind = controller["kind"]
    assert read_pod(pod(meta=owned_by(kind)), controller).owner == Owner(kind, "o", "u", want)


@pytest.mark.parametrize(
    ("kind", "api_version", "told"),
    [
        pytest.param("Job", "batch/v1", "Job", id="Kubernetes' own Job"),
        pytest.param("Job", "", "Job", id="a manifest by hand, which states no API version"),
        pytest.param("Job", "batch.volcano.sh/v1alpha1", "Job.batch.volcano.sh", id="Volcano's Job"),
        pytest.param("StatefulSet", "apps.kruise.io/v1beta1", "StatefulSet.apps.kruise.io", id="OpenKruise's StatefulSet"),
        pytest.param("Deployment", "apps.example.com/v1", "Deployment.apps.example.com", id="somebody's Deployment"),
        pytest.param("ReplicaSet", "v1", "ReplicaSet.core", id="a ReplicaSet of the core, which has none"),
        pytest.param("ReplicationController", "v1", "ReplicationController", id="the core's ReplicationController"),
        pytest.param("ReplicationController", "apps/v1", "ReplicationController.apps", id="one that apps does not have"),
        pytest.param("Workflow", "argoproj.io/v1alpha1", "Workflow", id="a kind that Kubernetes does not have"),
    ],
)  # fmt: skip
def test_a_controller_is_known_by_its_kind_and_its_group(kind: str, api_version: str, told: str) -> None:
    """What is no built-in one has no replicas from a built-in one of its name either."""
    wanted = {"ReplicationController": "", "Job": "batch/v1"}.get(kind, "apps/v1")
    there = manifest(kind, "o", spec={"replicas": 3, "parallelism": 3}) | {"apiVersion": wanted or "v1"}
    owner = read_pod(pod(meta=owned_by(kind, apiVersion=api_version)), there).owner
    assert owner is not None
    assert owner.kind == told
    assert owner.replicas == (3 if told == kind and kind not in ("Workflow", "Deployment") else None)


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param({"annotations": {"scheduling.k8s.io/group-name": "mpi"}}, id="Volcano's annotation"),
        pytest.param({"annotations": {"scheduling.volcano.sh/group-name": "mpi"}}, id="Volcano's newer one"),
        pytest.param({"labels": {"scheduling.x-k8s.io/pod-group": "mpi"}}, id="coscheduling's label"),
        pytest.param({"labels": {"pod-group.scheduling.sigs.k8s.io": "mpi"}}, id="coscheduling's older one"),
        pytest.param({"labels": {"pod-group.scheduling.sigs.k8s.io/name": "mpi"}}, id="its oldest"),
    ],
)
def test_a_pod_of_a_group_names_it(meta: Manifest) -> None:
    assert read_pod(pod(meta=meta)).gang == "mpi"
    assert read_pod(pod()).gang == ""


@pytest.mark.parametrize(
    ("stated", "cost"),
    [
        pytest.param({DELETION_COST: "-10"}, -10, id="stated"),
        pytest.param({DELETION_COST: "0"}, 0, id="none is not 0"),
        pytest.param({}, None, id="unstated"),
        pytest.param({DELETION_COST: "010"}, None, id="no leading zeros"),
        pytest.param({DELETION_COST: "+1"}, None, id="no plus"),
        pytest.param({DELETION_COST: "2147483648"}, None, id="33 bits"),
        pytest.param({DELETION_COST: "9" * 5000}, None, id="longer than a number may be"),
        pytest.param({DELETION_COST: "\u0661"}, None, id="another script's digits"),
    ],
)
def test_a_deletion_cost_is_what_the_api_server_takes_for_one(stated: Manifest, cost: int | None) -> None:
    assert read_pod(pod(meta={"annotations": stated})).deletion_cost == cost


@pytest.mark.parametrize(
    ("spec", "prefers"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param(
            {"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}]}, True, id="spread"
        ),
        pytest.param({"topologySpreadConstraints": [SPREAD]}, False, id="a hard one is a constraint"),
        pytest.param({"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1}]}}}, True, id="anti-affinity"),
        pytest.param({"affinity": {"podAffinity": {PREFERRED: [{"weight": 1}]}}}, False, id="to be near is not apart"),
        pytest.param({"affinity": {"podAntiAffinity": {PREFERRED: []}}}, False, id="an empty list"),
    ],
)
def test_a_pod_may_prefer_to_be_apart(spec: Manifest, prefers: bool) -> None:
    assert read_pod(pod(**spec)).prefers_apart is prefers


def test_only_the_controller_owns() -> None:
    assert read_pod(pod(meta=owned_by("Node", controller=False))).owner is None


def test_a_manifest_without_namespace_finds_its_controller_in_default() -> None:
    controller = manifest("ReplicaSet", "o", {"namespace": "default"}, spec={"replicas": 5})
    owner = read_pod(pod(meta=owned_by("ReplicaSet")), controller).owner
    assert owner is not None
    assert owner.replicas == 5


@pytest.mark.parametrize(
    ("text", "want_s"),
    [("90", 90.0), ("1.5", 1.5), ("90s", 90.0), ("5m", 300.0), ("1h30m", 5400.0), ("1.5h", 5400.0), ("1h1s", 3601.0)],
)
def test_durations(text: str, want_s: float) -> None:
    assert duration_s(text) == want_s


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "-5m", "m", "5 m", "1m1h", "1d", "soon", "nan", "inf", "1e3", "٣m", "9" * 400]
)
def test_what_is_no_duration(text: str) -> None:
    assert duration_s(text) is None


@pytest.mark.parametrize(
    ("meta", "spec", "want"),
    [
        pytest.param({"annotations": {"htas.io/runtime": "5m"}}, {"activeDeadlineSeconds": 60}, (300.0, RunLengthSource.ANNOTATION), id="what is stated comes first"),
        pytest.param({}, {"activeDeadlineSeconds": 60}, (60.0, RunLengthSource.DEADLINE), id="the pod's deadline"),
        pytest.param(owned_by("Job"), {}, (600.0, RunLengthSource.DEADLINE), id="the deadline of its Job"),
        pytest.param(owned_by("Job"), {"activeDeadlineSeconds": 60}, (60.0, RunLengthSource.DEADLINE), id="the pod's before its Job's"),
        pytest.param(owned_by("ReplicaSet"), {}, None, id="another controller of the Job's name"),
        pytest.param(owned_by("Job", "unknown"), {}, None, id="a Job that is not there"),
    ],
)  # fmt: skip
def test_run_length(meta: Manifest, spec: Manifest, want: tuple[float, RunLengthSource] | None) -> None:
    length = read_pod(pod(meta=meta, **spec), manifest("Job", "o", spec={"activeDeadlineSeconds": 600})).run_length
    assert (None if length is None else (length.seconds, length.source)) == want


def test_wrong_annotations_are_all_told_and_the_pod_goes_on_without_them() -> None:
    meta = {"labels": {"htas.io/workload": "web"}, "annotations": {"htas.io/runtime": "soon"}}
    view = view_of(pod(meta=meta, restartPolicy="Never", activeDeadlineSeconds=60))
    assert [problem.where for problem in view.problems] == [
        "dump.json: Pod default/p: metadata.annotations[htas.io/runtime]",
        "dump.json: Pod default/p: metadata.labels[htas.io/workload]",
    ]
    (found,) = view.pods
    assert found.kind is WorkKind.BATCH
    assert found.run_length is not None
    assert found.run_length.source is RunLengthSource.DEADLINE


LOW = manifest("PriorityClass", "low", value=-5, globalDefault=True)
LOWER = manifest("PriorityClass", "lower", value=-7, globalDefault=True)
HIGH = manifest("PriorityClass", "high", value=1000, preemptionPolicy="Never")


@pytest.mark.parametrize(
    ("spec", "classes", "want"),
    [
        pytest.param({"priority": 7, "priorityClassName": "high"}, [HIGH], (7, True), id="what admission wrote holds"),
        pytest.param({"priority": 7, "priorityClassName": "gone"}, [], (7, True), id="also when the class is gone since"),
        pytest.param({"priorityClassName": "high"}, [HIGH, LOW], (1000, False), id="the class, with its preemption policy"),
        pytest.param({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}, [HIGH], (1000, True), id="the pod's own preemption policy"),
        pytest.param({}, [HIGH, LOW], (-5, True), id="the global default"),
        pytest.param({}, [LOW, LOWER], (-7, True), id="the lowest of several global defaults"),
        pytest.param({}, [HIGH], (0, True), id="no class at all"),
        pytest.param({"priorityClassName": "system-node-critical"}, [], (2_000_001_000, True), id="a class that every cluster has"),
    ],
)  # fmt: skip
def test_priority(spec: Manifest, classes: list[Manifest], want: tuple[int, bool]) -> None:
    for order in (classes, classes[::-1]):
        found = read_pod(pod(**spec), *order)
        assert (found.priority, found.preempts) == want


def test_a_priority_class_that_is_not_there_is_told() -> None:
    assert problems_of(pod(priorityClassName="gone"), LOW) == [
        "dump.json: Pod default/p: spec.priorityClassName: there is no PriorityClass 'gone'; -5 is assumed"
    ]


@pytest.mark.parametrize(
    ("volume", "exempt", "want"),
    [
        pytest.param({"hostPath": {"path": "/data"}}, "", True, id="a path of the host"),
        pytest.param({"emptyDir": {}}, "", True, id="an emptyDir on disk"),
        pytest.param({"emptyDir": {"medium": "Memory"}}, "", False, id="an emptyDir in memory"),
        pytest.param({"emptyDir": {}}, "other, v", False, id="a volume listed as safe"),
        pytest.param({"emptyDir": {}}, "other", True, id="another one listed as safe"),
        pytest.param({"configMap": {"name": "c"}}, "", False, id="a ConfigMap"),
        pytest.param({"persistentVolumeClaim": {"claimName": "c"}}, "", False, id="a claim"),
    ],
)  # fmt: skip
def test_local_storage(volume: Manifest, exempt: str, want: bool) -> None:
    meta = {"annotations": {SAFE_LOCAL_VOLUMES: exempt}}
    found = read_pod(pod(meta=meta, volumes=[{"name": "v", **volume}]))
    assert (found.has_local_storage, found.local_volumes) == (want, ("v",) if want else ())


def test_only_promises_about_disruption_are_kept_of_annotations() -> None:
    promises = {SAFE_TO_EVICT: "false", DO_NOT_DISRUPT: "1h"}
    assert read_pod(pod(meta={"annotations": {**promises, "other": "x"}})).disruption == promises


@pytest.mark.parametrize(
    ("meta", "target"),
    [
        pytest.param({}, 1.0, id="all of them, unless stated"),
        pytest.param({"labels": {"htas.io/qos": "0.5"}}, 0.5, id="a label"),
        pytest.param({"labels": {"htas.io/qos": ".5"}}, 0.5, id="without its nought"),
        pytest.param({"annotations": {"htas.io/qos": "1."}}, 1.0, id="with a point for nothing"),
        pytest.param(
            {"annotations": {"htas.io/qos": "0"}, "labels": {"htas.io/qos": "0.5"}}, 0.0, id="annotation first"
        ),
    ],
)
def test_the_share_that_should_be_on_the_edge(meta: Manifest, target: float) -> None:
    assert read_pod(pod("a", meta)).qos == target


@pytest.mark.parametrize("stated", ["half", "1.01", "-0.5", "nan", "50%", "5e-1", "0,5", "", ".", "1.0.0"])
def test_a_share_that_is_none_is_told_and_all_are_wanted(stated: str) -> None:
    view = view_of(pod("p", {"annotations": {"htas.io/qos": stated}}))
    assert [each.qos for each in view.pods] == [1.0]
    assert [(each.where, each.what) for each in view.problems] == [
        (
            "dump.json: Pod default/p: metadata.annotations[htas.io/qos]",
            f"{stated!r} is no share from 0 to 1 such as 0.5; 1 is assumed",
        )
    ]


MARK = "htas.io/migrate"


@pytest.mark.parametrize(
    ("meta", "kept", "told"),
    [
        pytest.param({"annotations": {MARK: "true"}}, {MARK: "true"}, [], id="an annotation"),
        pytest.param({"annotations": {MARK: "False"}}, {MARK: "False"}, [f"metadata.annotations[{MARK}]: 'False' is neither \"true\" nor \"false\"; it is as if it were not there"], id="a capital letter"),
        pytest.param({"labels": {MARK: "true"}}, {}, [f"metadata.labels[{MARK}]: has an effect as an annotation alone; write it as one"], id="a label"),
        pytest.param({"labels": {MARK: "true"}, "annotations": {MARK: "true"}}, {MARK: "true"}, [], id="both"),
    ],
)  # fmt: skip
def test_leave_to_move_is_an_annotation_of_true_or_false(meta: Manifest, kept: dict[str, str], told: list[str]) -> None:
    view = view_of(pod("p", meta))
    assert [pod.disruption for pod in view.pods] == [kept]
    assert [f"{each.where}: {each.what}" for each in view.problems] == [
        f"dump.json: Pod default/p: {one}" for one in told
    ]
    assert all(each.is_doubt for each in view.problems)


def test_pods_of_a_deployment_are_one_service_over_its_revisions() -> None:
    old = {**owned_by("ReplicaSet", "web-5d4f"), "labels": {"pod-template-hash": "5d4f"}, "namespace": "shop"}
    new = {**owned_by("ReplicaSet", "web-77c9"), "labels": {"pod-template-hash": "77c9"}, "namespace": "shop"}
    assert {read_pod(pod("a", meta)).service for meta in (old, new)} == {"shop/Deployment/web"}
    assert read_pod(pod("d", owned_by("DaemonSet"))).service is None
    assert read_pod(pod("alone")).service is None


@pytest.mark.parametrize(
    ("kind", "name", "is_one"),
    [
        pytest.param("Job", "train", True, id="a Job"),
        pytest.param("PyTorchJob", "system:x.1", True, id="a kind that HTAS does not know, and a name with a colon"),
        pytest.param("Job", "x" * 253, True, id="the longest name there can be"),
        pytest.param("Job", "x" * 254, False, id="a longer one"),
        pytest.param("Job", "x" * 1_000_000, False, id="a megabyte, which was kept with every run on record"),
        pytest.param("K" * 64, "x", False, id="a kind that is too long"),
        pytest.param("Job", "a\x1b[2Jb", False, id="a name that a terminal would obey"),
        pytest.param("Job", "a b", False, id="a space"),
        pytest.param("Job", "a\nb", False, id="a second line"),
        pytest.param("", "x", False, id="no kind"),
    ],
)  # fmt: skip
def test_an_owner_that_cannot_be_is_none(kind: str, name: str, is_one: bool) -> None:
    found = read_pod(pod("a", owned_by(kind, name)))
    assert found.owner == (Owner(kind, name, "u") if is_one else None)
    assert (found.template == "Pod/a") is not is_one


@pytest.mark.parametrize(
    ("image", "is_kept"),
    [
        pytest.param("registry.example/team/app:1.2@sha256:" + 64 * "0", True, id="a reference"),
        pytest.param("x" * 1024, True, id="the longest"),
        pytest.param("x" * 1025, False, id="longer than any can be"),
        pytest.param("a\x1bb", False, id="what a terminal would obey"),
    ],
)
def test_an_image_that_cannot_be_is_not_kept(image: str, is_kept: bool) -> None:
    assert read_pod(pod(containers=[{"name": "c", "image": image}])).image == (image if is_kept else "")


def test_of_a_promise_no_more_is_kept_than_says_something() -> None:
    found = read_pod(pod("a", {"annotations": {DO_NOT_DISRUPT: "x" * 262_144}}))
    assert found.disruption == {DO_NOT_DISRUPT: "x" * 256}


def test_of_an_annotation_that_makes_no_sense_no_more_is_told_than_can_be_read() -> None:
    (told,) = problems_of(pod("a", {"annotations": {RUNTIME: "\x1b" * 262_144}}))
    assert len(told) < 700
    assert told.endswith("is not a duration above zero such as 90s, 5m or 1h30m")


@pytest.mark.parametrize(("many", "kept"), [(500, 500), (501, 500), (10_000, 500)])
def test_so_many_labels_count_and_no_more(many: int, kept: int) -> None:
    written = pod("a", {"labels": {f"example.com/{i:05d}": "x" for i in range(many)}})
    (found,) = view_of(written).pods
    assert list(found.labels) == [f"example.com/{i:05d}" for i in range(kept)]
    told = f"{many:,} labels of {many * 18:,} characters in all, of which the first 500 count"
    assert problems_of(written) == ([f"dump.json: Pod default/a: metadata.labels: {told}"] if many > kept else [])


@pytest.mark.parametrize(
    ("many", "longer", "kept"),
    [
        pytest.param(64, 0, 64, id="as many characters as count"),
        pytest.param(64, 1, 63, id="one more"),
        pytest.param(500, 0, 64, id="as many labels as count"),
    ],
)
def test_so_long_labels_count_and_no_longer_ones(many: int, longer: int, kept: int) -> None:
    """Keys of 193 and values of 63 characters: 64 of them are 16 KiB."""
    labels = {f"{'x' * 185}.io/{i:04d}": "y" * 63 for i in range(many)}
    *_, last = labels
    labels[last] += "y" * longer
    written = pod("a", {"labels": labels})
    (found,) = view_of(written).pods
    assert list(found.labels) == list(labels)[:kept]
    told = f"{many} labels of {many * 256 + longer:,} characters in all, of which the first {kept} count"
    assert problems_of(written) == ([f"dump.json: Pod default/a: metadata.labels: {told}"] if many > kept else [])
