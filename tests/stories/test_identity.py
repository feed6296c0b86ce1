"""Somebody changes labels, names or Node objects: no machine is deleted under its pods, and labels are set back."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.claims import ClaimState
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL, OWN_LABELS
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.pods import Phase
from htas.model.policy import NodeGroup, Workload
from htas.model.reasons import OutcomeReason
from htas.ports import TransientError
from tests.builders import make_node, make_pod, make_policy
from tests.stories.play import Story, job, service

LONG_S = 9000.0


def busy(jobs: int = 3) -> Story:
    """Machines of ours, each with a job of hours."""
    work = [job(f"job-{i}", runs_s=LONG_S, cpu_m=7000) for i in range(jobs)]
    story = Story(make_policy([NodeGroup("any", Workload.ANY)]), *work).play(200)
    assert len(story.nodes) == jobs
    return story


def labels_of(story: Story) -> list[dict[str, str]]:
    return [{key: node.labels[key] for key in OWN_LABELS} for node in story.world.cluster.observe().nodes]


def told(story: Story, reason: OutcomeReason) -> list[Outcome]:
    return [each for result in story.seen for each in result.outcomes if each.reason is reason]


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({CLAIM_LABEL: "x"}, id="the same claim on all"),
        pytest.param({CLUSTER_LABEL: "other"}, id="another cluster"),
        pytest.param({GROUP_LABEL: "none"}, id="another group"),
        pytest.param(dict.fromkeys(OWN_LABELS), id="all taken off"),
        pytest.param(dict.fromkeys(OWN_LABELS, "x"), id="all overwritten"),
    ],
)
def test_labels_of_all_nodes_that_are_overwritten_are_set_back_and_no_machine_goes(
    labels: dict[str, str | None],
) -> None:
    story = busy()
    before, machines = labels_of(story), {each.id for each in story.world.cloud.instances()}
    for name in story.nodes:
        story.world.cluster.relabel(name, labels)
    story.play(900)
    assert labels_of(story) == before
    assert {each.subject for each in told(story, OutcomeReason.RELABELLED)} == set(story.nodes)
    events = {news.name for news in story.world.announcer.news if news.reason == "LabelsRestored"}
    assert events == set(story.nodes)
    story.play(5000)
    assert {each.id for each in story.world.cloud.instances()} == machines, "nothing else was launched"
    story.play(12_000).assert_over(3)
    assert story.world.ledger.restarts == 0


def test_labels_are_overwritten_while_no_daemon_runs() -> None:
    story = busy()
    for name in story.nodes:
        story.world.cluster.relabel(name, {CLAIM_LABEL: "x", CLUSTER_LABEL: "other"})
    story.world.advance_to(story.world.clock.now() + 3600)
    story.crash()
    story.play(20_000).assert_over(3)
    assert story.world.ledger.restarts == 0


def test_a_controller_that_changes_a_label_for_ever_is_answered_less_and_less_often() -> None:
    story = busy(1)
    (name,) = story.nodes
    for minute in range(10, 130):
        story.world.cluster.relabel(name, {GROUP_LABEL: "theirs"})
        story.play(minute * 60.0)
    assert 5 <= len(told(story, OutcomeReason.RELABELLED)) <= 9, "after 30 s, 1, 2, 4 … minutes"
    assert all(result.snapshot.cluster.nodes[0].group == "any" for result in story.seen[-20:]), "plans go by the truth"
    story.play(12_000).assert_over(1)


def test_a_node_that_registers_under_another_name_keeps_its_machine_while_it_has_work() -> None:
    story = busy(1)
    (name,) = story.nodes
    story.world.cluster.rename(name, "renamed")
    story.play(900)
    assert [(pod.node, pod.phase) for pod in story.world.cluster.observe().pods] == [("renamed", Phase.RUNNING)]
    assert [each.id for each in story.world.cloud.instances()] == ["vm-00001"]
    story.play(30_000).assert_over(1)
    assert story.world.ledger.restarts == 1, "by the kubelet that was renamed"


def test_a_node_that_is_renamed_while_it_is_drained_is_not_deleted_under_what_came_to_it() -> None:
    story = Story(make_policy([NodeGroup("any", Workload.ANY)]), service("web", 1)).play(200)
    (name,) = story.nodes
    story.store.put_claim(msgspec.structs.replace(story.store.claims()[0], state=ClaimState.DRAINING))
    story.world.cluster.rename(name, "renamed")
    story.play(3600)
    assert story.world.ledger.killed_by_release == 0
    assert [pod.phase for pod in story.world.cluster.observe().pods] == [Phase.RUNNING]


def test_a_second_node_object_of_a_machine_keeps_it_while_pods_run_there() -> None:
    story = Story(make_policy([NodeGroup("any", Workload.ANY)]), job("short", runs_s=300.0)).play(200)
    (real,) = story.world.cluster.observe().nodes
    story.world.cluster.add_node(
        msgspec.structs.replace(real, name="forged", uid="forged", created_at=real.created_at + 1)
    )
    theirs = make_pod("theirs", node="forged", started_at=story.world.clock.now(), phase=Phase.RUNNING)
    story.world.cluster.add_pod(theirs)
    story.play(20_000)
    assert story.world.ledger.killed_by_release == 0
    assert [each.id for each in story.world.cloud.instances()] == ["vm-00001"]
    assert "Node forged" in [problem.where for problem in story.seen[-1].snapshot.cluster.problems]
    assert not [o for r in story.seen for o in r.outcomes if o.action is Action.BIND and o.target == "forged"]


@pytest.mark.parametrize("form", ["", "k3s://{}", "somewhere/else"])
def test_a_node_without_a_providerid_that_we_know_is_known_by_the_journal(form: str) -> None:
    story = busy()
    for name in story.nodes:
        story.world.cluster.lose_provider_id(name, form.format(name))
        story.world.cluster.relabel(name, {CLAIM_LABEL: "x"})
    story.play(5000)
    assert {node.claim for node in story.world.cluster.observe().nodes} == set(story.nodes)
    story.play(12_000).assert_over(3)


def test_a_claim_that_never_registered_as_far_as_we_know_keeps_a_machine_that_runs_pods() -> None:
    """Its node has another name and no providerID, and somebody took its labels off: only the first label is left."""
    story = busy(1)
    (name,) = story.nodes
    cluster, (claim,) = story.world.cluster, story.store.claims()
    cluster.lose_provider_id(name)
    story.store.put_claim(msgspec.structs.replace(claim, state=ClaimState.FAILED, node=None))
    cluster.relabel(name, {CLUSTER_LABEL: None, GROUP_LABEL: None})
    story.play(5000)
    held = told(story, OutcomeReason.PODS_RUN)
    assert {(each.subject, each.status) for each in held} == {(claim.id, OutcomeStatus.FAILED)}
    assert len(held) < 30, "it is tried every five minutes at most"
    story.play(20_000)
    assert (story.world.ledger.killed_by_release, story.world.ledger.finished) == (0, 1)
    assert not story.world.cloud.instances(), "it goes once its job has ended"


def test_a_label_copied_to_a_node_of_somebody_else_does_not_touch_it() -> None:
    story = busy(1)
    (ours,) = story.world.cluster.observe().nodes
    stolen = {key: ours.labels[key] for key in OWN_LABELS}
    story.world.add_nodes(
        [make_node("theirs", labels=stolen, provider_id="aws:///i-1"), make_node("silent", labels=stolen)]
    )
    story.world.cluster.set_ready("silent", False)
    story.play(20_000)
    assert story.nodes == ["silent", "theirs"], "only our own machine was deleted, once its job had ended"
    story.assert_whole()


def test_a_machine_that_the_cloud_says_is_in_error_stays_while_its_node_is_ready() -> None:
    story = busy(1)
    story.world.cloud.fail("vm-00001")
    story.play(5000)
    assert "Machine vm-00001" in [problem.where for problem in story.seen[-1].snapshot.cluster.problems]
    story.play(12_000).assert_over(1)
    assert story.world.ledger.restarts == 0


def test_a_silent_node_that_no_claim_knows_keeps_its_pods_until_it_was_silent_for_long() -> None:
    """The journal was lost and the cloud does not list its machine: its Node object was deleted, and its pods with it."""
    story = Story(make_policy([NodeGroup("any", Workload.ANY)]), job("long", runs_s=LONG_S)).play(300)
    [name] = story.nodes
    [machine] = story.world.cloud.instances()
    [claim] = story.store.claims()
    story.store.put_claim(msgspec.structs.replace(claim, state=ClaimState.RELEASED))
    story.crash()
    story.world.cloud.unlist(machine.id)
    story.world.cluster.set_ready(name, False)
    story.play(1000)
    assert name in story.nodes
    story.play(1300)
    assert name not in story.nodes, "what has been silent for timeouts.ready runs nothing"


def test_nothing_is_deleted_while_the_cluster_cannot_be_read() -> None:
    story = busy(1)
    (claim,) = story.store.claims()
    machines = story.daemon._machines
    story.world.cluster.faults.refuse("observe", TransientError("the API server is away"))
    machines.release(claim)
    assert [each.status for each in machines.cloud.answers()] == [OutcomeStatus.FAILED]
    assert not [each for each in story.world.cloud.instances() if each.state.value == "Deleting"]


def test_what_binds_between_two_deletes_of_one_cycle_keeps_the_second_machine() -> None:
    """Both nodes are closed by then. A pod that tolerates everything binds all the same, as agents do."""
    story = Story(
        make_policy([NodeGroup("any", Workload.ANY)]), *(job(f"j{i}", runs_s=300, cpu_m=7000) for i in range(2))
    )
    cluster, cloud = story.world.cluster, story.world.cloud
    agent = make_pod("agent", phase=Phase.RUNNING, started_at=story.world.clock.now())
    delete, deleted = cloud.delete, list[tuple[float, str]]()

    def deleting(instance_id: str) -> None:
        deleted.append((story.world.clock.now(), instance_id))
        delete(instance_id)
        if len(deleted) == 1:
            (other,) = (node for node in cluster.observe().nodes if node.machine != instance_id)
            assert other.is_unschedulable
            cluster.add_pod(msgspec.structs.replace(agent, node=other.name))

    cloud.delete = deleting  # type: ignore[method-assign] # the world goes on meanwhile
    story.play(7200)
    (held,) = told(story, OutcomeReason.PODS_RUN)[:1]
    assert "pod default/agent runs on its node" in held.message
    assert (len(deleted), story.world.ledger.killed_by_release) == (1, 0)
    assert [pod.phase for pod in cluster.observe().pods] == [Phase.RUNNING]


def test_a_machine_whose_metadata_are_lost_is_known_by_the_journal() -> None:
    story = busy(1)
    (machine,) = story.world.cloud.instances()
    story.world.cloud.add_foreign(msgspec.structs.replace(machine, cluster=None, claim=None, group=None))
    story.play(900)
    assert [claim.missing_since for claim in story.store.claims()] == [None]
    story.play(12_000).assert_over(1)
    assert story.world.ledger.restarts == 0
