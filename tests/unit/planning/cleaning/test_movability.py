"""What no twin can take the place of, and where to it can; what a move is expected to take."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.budgets import DisruptionBudget
from htas.model.constraints import Constraints, NodeSelectorTerm
from htas.model.migrations import MigrationRecord, MigrationSettings, MigrationState, Refusal
from htas.model.move_times import MoveTimes
from htas.model.moves import MigrationMethod
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.pods import MAY_MIGRATE, SHARED_VOLUMES, Owner, Pod, WorkKind
from htas.model.reasons import Kept
from htas.model.selectors import LabelSelector, Operator, Requirement
from htas.model.snapshot import MoveBackoff
from htas.model.volumes import PersistentVolume, VolumeClaim, Volumes
from htas.planning.eligibility.migration_methods import VolumeBook, refusal, source_refusal, target_refusal
from tests.builders import NOW, make_job, make_node, make_pod, owned_node, ready_claim, running
from tests.unit.planning.cleaning.test_rescheduling import STAYS
from tests.unit.planning.cleaning.world import cleaned, job_on, kept, message, moves, policy_with, quiet_snapshot

KUBELET, COMMAND, SIMULATED = (
    MigrationMethod.KUBELET_CHECKPOINT,
    MigrationMethod.COMMAND,
    MigrationMethod.CHECKPOINT,
)
ABLE, TOO_OLD, TOO_NEW = "containerd://2.3.7", "containerd://1.7.24", "containerd://2.4.2"
ON_ITS_NODE = NodeSelectorTerm((Requirement(HOSTNAME_LABEL, Operator.IN, ("n1",)),))
VOLUMES = Volumes(
    persistent=(PersistentVolume("disk", node_affinity=(ON_ITS_NODE,)),),
    claims=(
        VolumeClaim("default", "once", "v", access_modes=("ReadWriteOnce",)),
        VolumeClaim("default", "single", "v", access_modes=("ReadWriteOncePod",)),
        VolumeClaim("default", "shared", "v", access_modes=("ReadWriteMany",)),
        VolumeClaim("default", "mixed", "v", access_modes=("ReadWriteOnce", "ReadOnlyMany")),
        VolumeClaim("default", "read", "v", access_modes=("ReadOnlyMany",)),
        VolumeClaim("default", "local", "disk", access_modes=("ReadOnlyMany",)),
    ),
)


def with_claim(name: str) -> dict[str, Any]:
    return {"constraints": Constraints(claims=(name,))}


def owned_by(kind: str) -> dict[str, Any]:
    return {"owner": Owner(kind, "o")}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({}, None, id="a Job's pod with nothing special"),
        pytest.param({"owner": None}, None, id="a bare pod"),
        pytest.param(owned_by("ReplicaSet"), None, id="a ReplicaSet's pod"),
        pytest.param(owned_by("StatefulSet"), Refusal.KEEPS_ITS_NAME, id="a StatefulSet's pod"),
        pytest.param(owned_by("TFJob"), Refusal.OWNER_UNKNOWN, id="a controller nobody tried"),
        pytest.param({"disruption": {MAY_MIGRATE: "false"}}, Refusal.OPTED_OUT, id="it opted out"),
        pytest.param({"containers": 2}, Refusal.SEVERAL_CONTAINERS, id="two containers"),
        *(
            pytest.param({"obstacles": (reason,)}, reason, id=reason.value)
            for reason in (
                Refusal.EMPTY_DIR,
                Refusal.HOST_PATH,
                Refusal.DEVICE,
                Refusal.RESOURCE_CLAIM,
                Refusal.SIDECAR,
                Refusal.HOST_NAMESPACE,
            )
        ),
        pytest.param(with_claim("once"), Refusal.READ_WRITE_ONCE, id="a volume for one node"),
        pytest.param(with_claim("single"), Refusal.READ_WRITE_ONCE, id="a volume for one pod"),
        pytest.param(with_claim("unseen"), Refusal.READ_WRITE_ONCE, id="a claim that is not known"),
        pytest.param(with_claim("shared"), Refusal.SHARED_VOLUME, id="a volume that it and its twin would write to"),
        pytest.param(with_claim("mixed"), Refusal.SHARED_VOLUME, id="a volume that many read, and it may write to"),
        pytest.param(with_claim("shared") | {"only_read": ("shared",)}, None, id="a shared volume mounted read-only"),
        pytest.param(
            with_claim("shared") | {"only_read": ("other",)}, Refusal.SHARED_VOLUME, id="another is mounted read-only"
        ),
        pytest.param(
            with_claim("shared") | {"disruption": {SHARED_VOLUMES: "true"}}, None, id="it says that this is fine"
        ),
        pytest.param(
            with_claim("shared") | {"disruption": {SHARED_VOLUMES: "yes"}},
            Refusal.SHARED_VOLUME,
            id="it says something else",
        ),
        pytest.param(with_claim("read"), None, id="a volume that nobody writes to"),
        pytest.param(with_claim("local"), Refusal.LOCAL_VOLUME, id="a volume on its node"),
    ],
)
@pytest.mark.parametrize("method", [KUBELET, COMMAND])
def test_what_is_refused_and_why(method: MigrationMethod, fields: dict[str, Any], reason: Refusal | None) -> None:
    refused = refusal(make_job(**fields), method, MigrationSettings(), VolumeBook.of(VOLUMES))
    assert (refused[0] if refused else None) == reason


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(make_job(obstacles=(Refusal.EMPTY_DIR,), containers=2), None, id="they lose nothing"),
        pytest.param(make_job(**owned_by("StatefulSet")), Refusal.KEEPS_ITS_NAME, id="but the name"),
    ],
)
def test_simulated_nodes_refuse_less(pod: Pod, reason: Refusal | None) -> None:
    refused = refusal(pod, SIMULATED, MigrationSettings(), VolumeBook())
    assert (refused[0] if refused else None) == reason


SERVICE = running(make_pod("web", owner=Owner("ReplicaSet", "web")), "n1")
OPTED_IN = msgspec.structs.replace(SERVICE, disruption={MAY_MIGRATE: "true"})
REPLACING = policy_with({"migration": MigrationMethod.REPLACE})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({}, None, id="a ReplicaSet's pod"),
        pytest.param({"owner": None}, None, id="a bare pod: its copy stays"),
        pytest.param({"kind": WorkKind.BATCH}, Refusal.BEGINS_AGAIN, id="batch work"),
        pytest.param(owned_by("StatefulSet"), Refusal.KEEPS_ITS_NAME, id="a StatefulSet's pod"),
        pytest.param(owned_by("Shop"), Refusal.OWNER_UNKNOWN, id="a controller nobody tried"),
        pytest.param({"disruption": {MAY_MIGRATE: "false"}}, Refusal.OPTED_OUT, id="it opted out"),
        pytest.param({"containers": 2}, None, id="two containers"),
        *(
            pytest.param({"obstacles": (reason,)}, None, id=f"no obstacle: {reason}")
            for reason in (
                Refusal.EMPTY_DIR,
                Refusal.HOST_PATH,
                Refusal.DEVICE,
                Refusal.SIDECAR,
                Refusal.HOST_NAMESPACE,
            )
        ),
        *(
            pytest.param({"obstacles": (Refusal.DEVICE, reason)}, reason, id=f"an obstacle: {reason}")
            for reason in (
                Refusal.READ_WRITE_ONCE,
                Refusal.LOCAL_VOLUME,
                Refusal.READINESS_GATE,
                Refusal.RESOURCE_CLAIM,
            )
        ),
        pytest.param(with_claim("once"), Refusal.READ_WRITE_ONCE, id="a volume for one node"),
        pytest.param(with_claim("single"), Refusal.READ_WRITE_ONCE, id="a volume for one pod"),
        pytest.param(with_claim("unseen"), Refusal.READ_WRITE_ONCE, id="a claim that is not known"),
        pytest.param(with_claim("shared"), None, id="a volume that replicas share"),
        pytest.param(with_claim("local"), Refusal.LOCAL_VOLUME, id="a volume on its node"),
    ],
)
def test_what_is_not_replaced_and_why(fields: dict[str, Any], reason: Refusal | None) -> None:
    pod = msgspec.structs.replace(SERVICE, **fields)
    refused = refusal(pod, MigrationMethod.REPLACE, MigrationSettings(), VolumeBook.of(VOLUMES))
    assert (refused[0] if refused else None) == reason


def test_a_group_that_replaces_moves_services_so_and_evicts_batch_work() -> None:
    snapshot = quiet_snapshot([owned_node("n1"), owned_node("room", **STAYS)], [OPTED_IN, job_on("n1", "job")])
    cleaning = cleaned(snapshot, REPLACING)
    assert {move.pod: move.method for move in cleaning.migrate} == {"default/web": "replace", "default/job": "evict"}


def test_what_cannot_be_replaced_keeps_its_node() -> None:
    held = msgspec.structs.replace(OPTED_IN, **with_claim("once"))
    snapshot = quiet_snapshot([owned_node("n1"), owned_node("room", **STAYS)], [held], volumes=VOLUMES)
    cleaning = cleaned(snapshot, REPLACING)
    assert not cleaning.migrate
    assert message(cleaning, "n1").startswith("NotMovable: ReadWriteOnceVolume: default/web")


@pytest.mark.parametrize(("allowed", "goes"), [(0, False), (1, True)], ids=["a promise", "room for one"])
def test_a_budget_holds_a_pod_that_would_be_replaced(allowed: int, goes: bool) -> None:
    budget = DisruptionBudget("default", "web", LabelSelector(), allowed)
    snapshot = quiet_snapshot([owned_node("n1"), owned_node("room", **STAYS)], [OPTED_IN], budgets=(budget,))
    cleaning = cleaned(snapshot, REPLACING)
    assert ([removing.node for removing in cleaning.remove] == ["n1"]) is goes


def test_several_containers_are_moved_where_that_is_allowed() -> None:
    assert refusal(make_job(containers=2), KUBELET, MigrationSettings(several_containers=True), VolumeBook()) is None


@pytest.mark.parametrize(
    ("fields", "method", "reason"),
    [
        pytest.param({"runtime": ABLE}, KUBELET, None, id="it restores"),
        pytest.param({"runtime": TOO_NEW}, KUBELET, Refusal.TARGET_CANNOT_RESTORE, id="it restores no more"),
        pytest.param({}, KUBELET, Refusal.TARGET_CANNOT_RESTORE, id="unknown"),
        pytest.param({}, COMMAND, None, id="the operator's commands restore"),
        pytest.param({"runtime": ABLE, "is_ready": False}, KUBELET, Refusal.TARGET_NOT_READY, id="not Ready"),
        pytest.param({"is_unschedulable": True}, COMMAND, Refusal.TARGET_NOT_READY, id="cordoned"),
    ],
)
def test_targets(fields: dict[str, Any], method: MigrationMethod, reason: Refusal | None) -> None:
    refused = target_refusal(make_node(**fields), method)
    assert (refused[0] if refused else None) == reason


def test_sources() -> None:
    old = make_node(runtime=TOO_OLD)
    assert source_refusal(old, KUBELET) == (
        Refusal.SOURCE_CANNOT_CHECKPOINT,
        "containerd://1.7.24 does not checkpoint",
    )
    assert source_refusal(old, COMMAND) is None
    assert source_refusal(make_node(runtime=TOO_NEW), KUBELET) is None


# In the cleaner.

CHECKPOINTED = policy_with({"migration": KUBELET})


def test_pods_go_only_where_they_can_be_restored() -> None:
    nodes = [
        owned_node("n1", runtime=TOO_NEW),
        owned_node("a-too-new", runtime=TOO_NEW, **STAYS),
        owned_node("b-able", runtime=ABLE, **STAYS),
    ]
    cleaning = cleaned(quiet_snapshot(nodes, [job_on("n1", "a"), job_on("n1", "b")]), CHECKPOINTED)
    assert moves(cleaning) == [("a", "n1", "b-able"), ("b", "n1", "b-able")]
    assert {move.method for move in cleaning.migrate} == {"kubelet-checkpoint"}


def test_where_nothing_restores_the_node_is_kept_and_the_reason_says_so() -> None:
    nodes = [owned_node("n1", runtime=ABLE), owned_node("room", runtime=TOO_NEW, **STAYS)]
    cleaning = cleaned(quiet_snapshot(nodes, [job_on("n1", "a")]), CHECKPOINTED)
    assert kept(cleaning)["n1"] is Kept.NO_PLACE_TO_MOVE_PODS
    words = "fits on no other node that restores checkpoints (containerd 2.2 and 2.3 do): no other node takes pods now"
    assert message(cleaning, "n1").endswith(words)


def test_a_node_that_writes_no_checkpoints_is_kept_unless_it_is_empty() -> None:
    nodes = [owned_node("n1", runtime=TOO_OLD), owned_node("empty"), owned_node("room", runtime=ABLE, **STAYS)]
    cleaning = cleaned(quiet_snapshot(nodes, [job_on("n1", "a")]), CHECKPOINTED)
    assert [removing.node for removing in cleaning.remove] == ["empty"]
    assert kept(cleaning)["n1"] is Kept.CANNOT_CHECKPOINT


def test_what_ends_with_its_node_needs_no_checkpoint() -> None:
    """A node with a DaemonSet's pod, a static one and one stuck in its deletion was kept for ever by its old runtime."""
    agent = job_on("n1", "agent", owner=Owner("DaemonSet", "agent", "uid"))
    proxy = job_on("n1", "proxy", is_mirror=True)
    stuck = job_on("n1", "stuck", deleted_at=NOW - 3600.0)
    cleaning = cleaned(quiet_snapshot([owned_node("n1", runtime=TOO_OLD)], [agent, proxy, stuck]), CHECKPOINTED)
    assert [removing.node for removing in cleaning.remove] == ["n1"]


def test_one_pod_that_would_lose_something_keeps_its_node() -> None:
    nodes = [owned_node("n1", runtime=ABLE), owned_node("room", runtime=ABLE, **STAYS)]
    pods = [job_on("n1", "a"), job_on("n1", "b", obstacles=(Refusal.EMPTY_DIR,))]
    cleaning = cleaned(quiet_snapshot(nodes, pods), CHECKPOINTED)
    assert not cleaning.migrate
    assert kept(cleaning)["n1"] is Kept.BLOCKED_BY_POD
    said = "NotMovable: EmptyDirWouldBeLost: default/b: its emptyDir would be empty at the target"
    assert message(cleaning, "n1") == said


@pytest.mark.parametrize(
    ("method", "goes"), [(MigrationMethod.EVICT, False), (SIMULATED, True)], ids=["evicted: it would be gone", "moved"]
)
def test_a_pod_without_a_controller_moves_where_it_keeps_its_progress(method: MigrationMethod, goes: bool) -> None:
    snapshot = quiet_snapshot([owned_node("n1"), owned_node("room", **STAYS)], [job_on("n1", "a", owner=None)])
    cleaning = cleaned(snapshot, policy_with({"migration": method}))
    assert ([removing.node for removing in cleaning.remove] == ["n1"]) is goes


@pytest.mark.parametrize(("until", "goes"), [(NOW + 90, False), (NOW, True)], ids=["not yet", "again"])
def test_a_node_whose_pod_could_not_be_moved_is_left_alone_for_a_while(until: float, goes: bool) -> None:
    failed = MoveBackoff("n1", "default/a", "DigestWrong: sha256:1… is not sha256:2…", until)
    nodes = [owned_node("n1"), owned_node("room", **STAYS)]
    cleaning = cleaned(quiet_snapshot(nodes, [job_on("n1", "a")], failed_moves=(failed,)))
    assert ([removing.node for removing in cleaning.remove] == ["n1"]) is goes
    if not goes:
        assert kept(cleaning)["n1"] is Kept.MIGRATION_FAILED
        assert message(cleaning, "n1").startswith("default/a could not be moved: DigestWrong: ")
        assert message(cleaning, "n1").endswith("; again in 1m30s")


def measured(took_s: float, gib: float = 1.0, asked_gib: float | None = None, count: int = 1) -> MoveTimes:
    times = MoveTimes()
    for _ in range(count):
        move = MigrationRecord(
            "m",
            "default/a",
            "u",
            "n1",
            "n2",
            MigrationMethod.CHECKPOINT,
            MigrationState.DONE,
            0.0,
            reached={"Prepared": 100.0, "Done": 100.0 + took_s},
            archive_bytes=int(gib * 2**30),
            memory_bytes=int((gib if asked_gib is None else asked_gib) * 2**30),
        )
        times = times.learned(move)
    return times


@pytest.mark.parametrize(
    ("times", "goes"),
    [
        pytest.param({}, True, id="as configured: 10 s"),
        pytest.param({"checkpoint": measured(3.0, count=30)}, True, id="measured: seconds"),
        pytest.param({"checkpoint": measured(900.0, count=30)}, False, id="measured: a quarter of an hour"),
        pytest.param({"checkpoint": measured(900.0, count=2)}, True, id="measured too seldom"),
        pytest.param({"checkpoint": measured(900.0, count=3)}, False, id="measured three times"),
        pytest.param({"evict": measured(900.0, count=30)}, True, id="another method's times say nothing"),
    ],
)
def test_measured_times_decide_whether_a_move_pays(times: dict[str, MoveTimes], goes: bool) -> None:
    node, room = owned_node("n1"), owned_node("room", **STAYS)
    snapshot = quiet_snapshot(
        [node, room],
        [job_on("n1", "a", left_s=400.0, memory="1Gi")],
        claims=(ready_claim(node, 600.0), ready_claim(room)),
        move_times=times,
    )
    cleaning = cleaned(snapshot, policy_with({"migration": SIMULATED}))
    assert ([removing.node for removing in cleaning.remove] == ["n1"]) is goes
    assert goes or kept(cleaning)["n1"] is Kept.EMPTY_BEFORE_MIGRATION_PAYS


def test_pods_that_move_in_turns_take_as_many_times_as_long() -> None:
    node, room = owned_node("n1"), owned_node("room", **STAYS)
    pods = [job_on("n1", name, "100m", left_s=400.0) for name in "abcd"]
    claims = (ready_claim(node, 600.0), ready_claim(room))
    times = {"checkpoint": measured(150.0, 0.125, count=30)}
    snapshot = quiet_snapshot([node, room], pods, claims=claims, move_times=times)
    policy = policy_with({"migration": SIMULATED})
    assert cleaned(snapshot, policy).remove
    in_turns = msgspec.structs.replace(policy, migration=MigrationSettings(at_once=1))
    assert kept(cleaned(snapshot, in_turns))["n1"] is Kept.EMPTY_BEFORE_MIGRATION_PAYS
