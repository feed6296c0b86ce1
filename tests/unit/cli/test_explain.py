"""What `htas explain pod` says."""

from __future__ import annotations

import msgspec
import pytest

from htas.documents.explain import explain_node, explain_pod
from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import Constraints, Effect, Taint
from htas.model.migrations import Refusal
from htas.model.moves import MigrationMethod
from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL
from htas.model.pods import MAY_MIGRATE, Owner, Phase, Pod, RunLength, RunLengthSource
from htas.model.policy import CleaningRules, Fallback, FallbackMode, Limits, NodeGroup
from htas.planning.planner import plan
from htas.ports import GivenError
from tests.builders import (
    NOW,
    amounts,
    make_flavour,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)
from tests.unit.planning.cleaning.test_consolidating import consolidating, web
from tests.unit.planning.cleaning.world import LARGE, quiet_snapshot

POLICY = make_policy()
LEARNED = RunLengthSource.LEARNED


@pytest.mark.parametrize(
    ("length", "told"),
    [
        pytest.param(
            RunLength(312.4, LEARNED, "template", 14, 0.857),
            "runs about 312 s (learned from 14 runs of its template; 86 % of them ended within a quarter of that)",
            id="learned from its template",
        ),
        pytest.param(
            RunLength(40.0, LEARNED, "kind of owner", 1, 1.0),
            "runs about 40 s (learned from the only run of its kind of owner)",
            id="learned from a single run",
        ),
        pytest.param(RunLength(60.0, RunLengthSource.ANNOTATION), "runs about 60 s (annotation)", id="stated"),
        pytest.param(RunLength(90.0, RunLengthSource.DEADLINE), "runs about 90 s (deadline)", id="bounded"),
        pytest.param(None, "runs about 600 s (default)", id="nothing known"),
    ],
)
def test_a_run_length_is_told_with_its_source(length: RunLength | None, told: str) -> None:
    snapshot = make_snapshot((), (make_job("train", run_length=length),))
    first, *_ = explain_pod("train", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert first.endswith(f"; {told}")


@pytest.mark.parametrize(
    ("method", "runtime", "obstacles", "told"),
    [
        pytest.param("kubelet-checkpoint", "containerd://2.3.7", (Refusal.EMPTY_DIR,), ["NotMovable: EmptyDirWouldBeLost: default/a: its emptyDir would be empty at the target"], id="its volume"),
        pytest.param("kubelet-checkpoint", "containerd://1.7.24", (), ["RuntimeCannotCheckpoint: containerd://1.7.24 does not checkpoint; its group moves pods by kubelet-checkpoint"], id="its node"),
        pytest.param("kubelet-checkpoint", "containerd://2.3.7", (), [], id="nothing"),
        pytest.param("replace", "", (Refusal.EMPTY_DIR,), [], id="batch work is evicted beside services that are replaced"),
        pytest.param("evict", "containerd://1.7.24", (Refusal.EMPTY_DIR,), [], id="it would be evicted"),
    ],
)  # fmt: skip
def test_what_keeps_a_pod_from_being_moved_is_told(
    method: str, runtime: str, obstacles: tuple[Refusal, ...], told: list[str]
) -> None:
    group = NodeGroup("any", cleaning=CleaningRules(migration=MigrationMethod(method)))
    policy = make_policy([group])
    snapshot = make_snapshot([owned_node("n1", runtime=runtime)], [running(make_job("a", obstacles=obstacles), "n1")])
    lines = explain_pod("a", snapshot, plan(snapshot, policy, NOW), policy)
    heads = "may not be moved: "
    assert [line.removeprefix(heads) for line in lines if line.startswith(heads)] == told


def test_services_have_none() -> None:
    snapshot = make_snapshot((), (make_pod("web"),))
    first, *_ = explain_pod("web", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert "runs about" not in first


def test_preemption_is_told_of_both() -> None:
    pods = (running(make_pod("old", "4"), "n"), make_pod("new", "4", priority=1000))
    policy = make_policy(limits=Limits(max_nodes=0), fallback=Fallback(mode=FallbackMode.PREEMPT))
    snapshot = make_snapshot((make_node("n"),), pods)
    decided = plan(snapshot, policy, NOW)
    assert explain_pod("old", snapshot, decided, policy)[1:] == [
        "runs on n (for 30s)",
        "is to be preempted for default/new",
    ]
    told = explain_pod("new", snapshot, decided, policy)
    assert "pending: NominatedByPreemption: nominated to n: default/old of lower priority leave for it" in told


def test_what_the_optimiser_is_asked_for_is_told() -> None:
    pods = (running(make_pod("old", "4"), "n"), make_pod("new", "4", priority=1000))
    policy = make_policy(limits=Limits(max_nodes=0))
    snapshot = make_snapshot((make_node("n"),), pods)
    told = explain_pod("new", snapshot, plan(snapshot, policy, NOW), policy)
    assert "HTAS is to search for a better placement of running pods, so that it fits" in told


NEAR = {"htas.io/tier": "edge"}
MOVABLE = {MAY_MIGRATE: "true"}


@pytest.mark.parametrize(
    ("pod", "cores", "told"),
    [
        pytest.param(make_pod("web", "1", disruption=MOVABLE), "2", "it is to move to e", id="it is about to move"),
        pytest.param(make_pod("web", "1"), "2", 'it may not be moved: default/web is a service without htas.io/migrate="true"', id="not opted in"),
        pytest.param(make_pod("web", "3", disruption=MOVABLE), "2", "no edge node takes it: 0/1 nodes are available: 1 Insufficient cpu.", id="too large"),
        pytest.param(make_pod("web", "3"), "2", 'no edge node takes it: 0/1 nodes are available: 1 Insufficient cpu. Nor may it be moved: default/web is a service without htas.io/migrate="true"', id="too large and not opted in"),
        pytest.param(make_job("web", cpu="1"), "2", "batch work has no share of the edge", id="batch work"),
        pytest.param(make_pod("web", "1", disruption=MOVABLE, qos=0.0), "1", "no edge node takes it: 0/1 nodes are available: 1 Insufficient cpu.", id="others fill the edge"),
    ],
)  # fmt: skip
def test_why_a_pod_is_in_the_cloud_is_told(pod: Pod, cores: str, told: str) -> None:
    nodes = (make_node("e", cores, labels=NEAR), make_node("far", "8"))
    fixed = [running(make_pod("fixed", "1", owner=None), "e")] if cores == "1" else []
    snapshot = make_snapshot(nodes, (running(pod, "far", since_s=3600.0), *fixed))
    lines = explain_pod("web", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert f"is in the cloud: {told}" in lines


WEB = make_pod("web", "1", disruption=MOVABLE)
NOT_READY = msgspec.structs.replace(running(make_pod("web-2", "1"), "e"), ready_since=None)
HANGS = msgspec.structs.replace(NOT_READY, owner=Owner("ReplicaSet", "api"), phase=Phase.PENDING, started_at=NOW - 60)


@pytest.mark.parametrize(
    ("node", "pods", "told"),
    [
        pytest.param({}, [running(WEB, "far", 299.0)], "it may not be moved: default/web has been Ready for less than 300 s", id="it is young"),
        pytest.param({}, [running(WEB, "far", 300.0), NOT_READY], "it may not be moved: default/web-2 of its service is not Ready on e", id="another is not Ready"),
        pytest.param({}, [running(WEB, "far", 300.0), HANGS], "no edge node takes it: 0/1 nodes are available: 1 node that default/web-2 does not start on (e).", id="pods do not start there"),
        pytest.param({"ready_since": NOW - 299.0}, [running(WEB, "far", 300.0)], "no edge node takes it: 0/1 nodes are available: 1 node that has only just become Ready (e).", id="the node is young"),
        pytest.param({"ready_since": NOW - 300.0}, [running(WEB, "far", 300.0)], "it is to move to e", id="both are old enough"),
    ],
)  # fmt: skip
def test_what_has_not_settled_is_told(node: dict[str, float], pods: list[Pod], told: str) -> None:
    snapshot = make_snapshot((make_node("e", labels=NEAR, **node), make_node("far", "8")), pods)
    lines = explain_pod("web", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert f"is in the cloud: {told}" in lines


def test_the_share_of_its_service_is_told_where_there_is_an_edge() -> None:
    nodes = (make_node("e", labels=NEAR), make_node("far"))
    pods = (running(make_pod("web", qos=0.75), "e"), running(make_pod("web-2", created_at=0.0), "far"))
    snapshot = make_snapshot(nodes, pods)
    lines = explain_pod("web", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert "is of service default/ReplicaSet/web: 50% of its pods are on the edge, 75% should be" in lines
    assert not [line for line in lines if "in the cloud" in line]
    far = make_snapshot(nodes[1:], pods[1:])
    assert not [line for line in explain_pod("web-2", far, plan(far, POLICY, NOW), POLICY) if "edge" in line]


def test_all_that_holds_a_node_is_told() -> None:
    pods = (
        running(make_pod("bare", disruption=MOVABLE, owner=None, has_local_storage=True), "n"),
        running(make_job("step", owner=Owner("Workflow", "nightly")), "n"),
    )
    node = owned_node("n", annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}, is_ready=False)
    snapshot = make_snapshot([node], pods, claims=[ready_claim(node)])
    assert explain_node("n", snapshot, plan(snapshot, POLICY, NOW), POLICY)[2:] == [
        "kept: ScaleDownDisabledAnnotation: annotated cluster-autoscaler.kubernetes.io/scale-down-disabled=true",
        "also: NotReady: it is not Ready",
        "also: NotUnneededLongEnough: utilisation 5%, under-utilised for 0s of 5m00s",
        "blocked by NotReplicated: default/bare has no controller",
        "blocked by LocalStorageRequested: default/bare keeps data on its node (hostPath or emptyDir)",
        "blocked by UnknownController: default/step is controlled by a Workflow, which HTAS does not know to start it again",
    ]


def test_what_would_hold_a_node_that_is_not_ours_is_told() -> None:
    snapshot = make_snapshot([make_node("n")], [running(make_pod("web"), "n")])
    assert explain_node("n", snapshot, plan(snapshot, POLICY, NOW), POLICY)[1:] == [
        "kept: NotAutoscaled: it has no label htas.io/cluster=test: HTAS did not launch it",
        "were it of group any, it would be",
        'blocked by ServiceNotOptedIn: default/web is a service without htas.io/migrate="true"',
    ]


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        pytest.param(make_job("a", 2e4), ["may be moved (evict), if its node is drained"], id="nothing"),
        pytest.param(make_job("a"), ["may not be moved: RunLengthUnknown: default/a has run for 7200 s and would begin again; how long it runs is not known"], id="it has outrun what it stated"),
        pytest.param(make_pod("a"), ['may not be moved: ServiceNotOptedIn: default/a is a service without htas.io/migrate="true"'], id="its owner"),
        pytest.param(make_job("a", owner=Owner("DaemonSet", "log")), ["belongs to its node and ends with it (DaemonSet)"], id="it is its node's"),
        pytest.param(make_job("a", 2e4, owner=None, namespace="kube-system"), ["may not be moved: NotReplicated: kube-system/a has no controller", "may not be moved: UnmovableKubeSystemPod: kube-system/a is in kube-system and no disruption budget covers it"], id="two rules"),
    ],
)  # fmt: skip
def test_whether_a_running_pod_may_be_moved_is_told(pod: Pod, told: list[str]) -> None:
    node = owned_node("n", labels={"topology.kubernetes.io/zone": "z1"})
    filler = running(make_job("filler", cpu="3"), "n")
    snapshot = make_snapshot([node], [running(pod, "n", since_s=7200.0), filler], claims=[ready_claim(node)])
    lines = explain_pod("a", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert lines[1] == "runs on n (medium, zone z1, for 2h)"
    assert [line for line in lines[2:] if not line.startswith("its node is kept: NotUnderutilized: ")] == told


@pytest.mark.parametrize(
    ("name", "near"),
    [
        pytest.param("wbe-7f", "; did you mean default/web-7f?", id="letters mixed up"),
        pytest.param("web", "; did you mean default/web-7f?", id="without its hash"),
        pytest.param("defualt/web-7f", "; did you mean default/web-7f?", id="another namespace"),
        pytest.param("zebra", "; name it NAMESPACE/NAME", id="like none"),
    ],
)
def test_names_that_are_near_are_told(name: str, near: str) -> None:
    snapshot = make_snapshot([make_node("worker-1")], [running(make_pod("web-7f"), "worker-1")])
    made = plan(snapshot, POLICY, NOW)
    with pytest.raises(GivenError) as refused:
        explain_pod(name, snapshot, made, POLICY)
    assert str(refused.value) == f"pod {name}: there is none (it may have ended){near}"
    with pytest.raises(GivenError, match="node worker1: there is none; did you mean worker-1"):
        explain_node("worker1", snapshot, made, POLICY)


GPU = "nvidia.com/gpu"
TAINT = Taint(GPU, Effect.NO_SCHEDULE, "present")
GPU_FLAVOURS = [
    make_flavour("b8", "8", "16Gi", "0.40"),
    make_flavour("g1", "8", "16Gi", "1.50", extended={GPU: 1}, taints=(TAINT,)),
    make_flavour("g4", "32", "64Gi", "5.50", extended={GPU: 4}, taints=(TAINT,)),
]


def test_the_flavours_that_refuse_a_gpu_pod_are_told_by_their_taint_and_not_the_largest_other() -> None:
    """It was said that b8 has not enough nvidia.com/gpu, of which it has none: the pod lacks a toleration."""
    policy = make_policy(flavours=GPU_FLAVOURS)
    snapshot = make_snapshot((), (make_pod("train", requests=amounts("100m", "128Mi", 1, **{GPU: 1})),))
    lines = explain_pod("train", snapshot, plan(snapshot, policy, NOW), policy)
    waits = next(line for line in lines if line.startswith("pending: "))
    taint = "node(s) had untolerated taint(s)"
    assert f"no flavour on offer would hold it: g1 and 1 more, large enough, refuse it: {taint}" in waits
    assert lines[-2:] == [
        f"does not fit on a new b8: Insufficient {GPU}",
        f"does not fit on a new g1, g4: {taint} {{{GPU}=present:NoSchedule}}",
    ]


def test_the_taint_that_keeps_a_pod_off_nodes_is_named_to_who_may_read_nodes() -> None:
    """Nodes were said to have an untolerated taint, as kube-scheduler says it to readers of events, and not which."""
    snapshot = make_snapshot([make_node("n", taints=(TAINT,))], [make_pod("web", "64")])
    lines = explain_pod("web", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert f"  1 node: node(s) had untolerated taint(s) {{{GPU}=present:NoSchedule}}" in lines


def test_flavours_that_would_take_a_pod_are_told_where_a_limit_forbids_them() -> None:
    groups = [NodeGroup("any", limits=Limits(max_nodes=0))]
    policy = make_policy(groups, GPU_FLAVOURS)
    snapshot = make_snapshot((), (make_pod("web"),))
    lines = explain_pod("web", snapshot, plan(snapshot, policy, NOW), policy)
    assert "would fit on a new b8" in lines
    assert f"does not fit on a new g1, g4: node(s) had untolerated taint(s) {{{GPU}=present:NoSchedule}}" in lines


@pytest.mark.parametrize("gated", [True, False], ids=["gated", "that runs"])
def test_flavours_are_not_told_of_a_pod_that_none_would_help(gated: bool) -> None:
    pod = make_pod("web", gates=("wait",)) if gated else running(make_pod("web"), "n1")
    snapshot = make_snapshot([owned_node("n1")], [pod])
    lines = explain_pod("web", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert not [line for line in lines if "by a new" in line]


def test_an_annotation_that_would_keep_a_node_is_told_before_it_is_of_a_group() -> None:
    node = make_node("n1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    snapshot = make_snapshot([node], [])
    lines = explain_node("n1", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert lines[-1] == "blocked by DoNotDisrupt: annotated karpenter.sh/do-not-disrupt=true"


def test_what_a_node_costs_and_that_it_is_empty_is_told() -> None:
    log = running(make_pod("log", owner=Owner("DaemonSet", "log")), "n")
    snapshot = make_snapshot([make_node("n", labels={INSTANCE_TYPE_LABEL: "m1.large"}), make_node("odd")], [log])
    made = plan(snapshot, POLICY, NOW)
    first, second, *_ = explain_node("n", snapshot, made, POLICY)
    assert first == "n: m1.large, group none, 1 pod, 0.2746 USD an hour"
    assert second == "empty: no pod on it would have to move"
    first, *_ = explain_node("odd", snapshot, made, POLICY)
    assert first == "odd: unknown flavour, group none, 0 pods, no known price"


@pytest.mark.parametrize(
    ("kubelet", "told"), [pytest.param("v1.34.1", ", kubelet v1.34.1", id="known"), pytest.param("", "", id="not told")]
)
def test_the_kubelet_of_a_node_is_told(kubelet: str, told: str) -> None:
    snapshot = make_snapshot([owned_node("n1", kubelet=kubelet)])
    first, *_ = explain_node("n1", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert first == f"n1: medium, group any, 0 pods, no known price{told}"


def test_what_is_wrong_with_a_node_is_told_and_since_when() -> None:
    borne = (("DiskPressure", NOW + 5), ("KernelDeadlock", NOW - 1500))
    snapshot = make_snapshot([owned_node("n1", conditions=borne)])
    lines = explain_node("n1", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert lines[2:4] == ["DiskPressure for 0s", "KernelDeadlock for 25m"]


def test_a_node_of_the_control_plane_is_told_as_such() -> None:
    node = make_node("cp", labels={"node-role.kubernetes.io/control-plane": ""})
    snapshot = make_snapshot([node], [running(make_pod("web"), "cp")])
    lines = explain_node("cp", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert lines[-1] == "also: ControlPlane: it is of the control plane"


def test_a_pod_that_names_its_node_is_told_to_be_pinned_to_it() -> None:
    osd = make_job("osd", constraints=Constraints(node_selector=((HOSTNAME_LABEL, "n"),)))
    snapshot = make_snapshot([make_node("n"), make_node("other")], [running(osd, "n")])
    made, told = (
        plan(snapshot, POLICY, NOW),
        "PinnedToNode: default/osd is pinned to its node by hostname (nodeSelector)",
    )
    assert f"blocked by {told}" in explain_node("n", snapshot, made, POLICY)
    assert f"may not be moved: {told}" in explain_pod("osd", snapshot, made, POLICY)


@pytest.mark.parametrize(
    ("flavour", "taints", "group"),
    [
        pytest.param("m1.large", (), "web", id="as those that the first group buys"),
        pytest.param("t3.xsmall", (), "small", id="a flavour that another one buys"),
        pytest.param("m1.large", (TAINT,), "gpu", id="the taint of a third"),
        pytest.param("unheard-of", (), "web", id="like none: the first"),
    ],
)
def test_a_node_of_no_group_is_judged_by_the_group_it_is_like(
    flavour: str, taints: tuple[Taint, ...], group: str
) -> None:
    groups = [
        NodeGroup("web", flavours=("m1.large",)),
        NodeGroup("small", flavours=("t3.xsmall",)),
        NodeGroup("gpu", flavours=("m1.large",), taints=(TAINT,)),
    ]
    policy = make_policy(groups)
    node = make_node("n", labels={INSTANCE_TYPE_LABEL: flavour}, taints=taints)
    snapshot = make_snapshot([node], [running(make_pod("web"), "n")])
    assert f"were it of group {group}, it would be" in explain_node("n", snapshot, plan(snapshot, policy, NOW), policy)


@pytest.mark.parametrize(
    ("is_unschedulable", "says"),
    [pytest.param(False, True, id="its scheduler has said nothing yet"), pytest.param(True, False, id="it has")],
)
def test_a_pod_whose_scheduler_may_still_place_it_is_told_why_nothing_is_launched(
    is_unschedulable: bool, says: bool
) -> None:
    pod = make_pod("web", "3", scheduler="default-scheduler", is_unschedulable=is_unschedulable)
    snapshot = make_snapshot((), (pod,))
    told = explain_pod("web", snapshot, plan(snapshot, POLICY, NOW), POLICY)
    assert any("is to be launched for it" in line for line in told) != says
    assert (
        "pending: its scheduler default-scheduler has not reported it Unschedulable (condition PodScheduled), so HTAS"
        " does not launch for it" in told
    ) == says


def test_a_node_that_is_to_be_replaced_names_what_replaces_it_and_what_that_saves() -> None:
    """2 × 0.40 are replaced by 2 × 0.10. Consolidation asks for a tenth."""
    nodes = [owned_node(name, flavour="large", cpu="8", memory="16Gi") for name in ("a", "b")]
    pods = [web(3 * i + j, node.name, "1200m") for i, node in enumerate(nodes) for j in range(3)]
    snapshot, policy = quiet_snapshot(nodes, pods), consolidating(LARGE, make_flavour("medium", "4", "8Gi", "0.10"))
    told = explain_node("a", snapshot, plan(snapshot, policy, NOW), policy)
    assert told[2:] == [
        "to be replaced, with b: Consolidated: by 2 medium (group any); drained once Ready",
        "saves 0.60 of 0.80 USD an hour (75.0 %); cleaning.consolidation.minSaving asks for 10%",
    ]


def test_a_node_whose_replacement_starts_names_it() -> None:
    old = owned_node("old", flavour="large", cpu="8", memory="16Gi")
    coming = NodeClaim("new", "any", "medium", ClaimState.REQUESTED, NOW - 60, NOW - 60, replaces=("old",))
    snapshot = quiet_snapshot([old], [web(0, "old")], claims=(ready_claim(old), coming))
    policy = consolidating(LARGE, make_flavour("medium", "4", "8Gi", "0.10"))
    told = explain_node("old", snapshot, plan(snapshot, policy, NOW), policy)
    assert told[-1] == "replaced by new (medium, Requested)"
