"""A node being emptied: who leaves first, and what puts an end to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from htas.model.claims import ClaimState
from htas.model.disruptions import Drain, drains_of
from htas.model.moves import Move
from htas.model.nodes import DO_NOT_DISRUPT, DRAINING_TAINT, Node
from htas.model.outcomes import Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.pods import Owner, Pod
from htas.model.proposals import Proposal, Release
from htas.model.reasons import ProposalReason
from tests.builders import NOW, make_job, make_move, make_node, make_policy, owned_node, ready_claim, running
from tests.stories.play import Story

JOB = running(make_job("job"), "n1")
AGENT = running(make_job("agent", priority=2_000_000_000), "n1")


def advanced(story: Story, *pods: Pod, planned: tuple[Pod, ...]) -> list[Outcome]:
    """One step of a drain of n1 whose plan has `planned` leave for n2, with these pods there."""
    cluster, now = story.world.cluster, story.world.clock.now()
    leaving, target = owned_node("n1", taints=(DRAINING_TAINT,), is_unschedulable=True), owned_node("n2")
    for node in (leaving, target):
        cluster.add_node(node)
    for pod in pods:
        cluster.add_pod(pod)
    story.store.put_claim(msgspec.structs.replace(ready_claim(leaving), state=ClaimState.DRAINING))
    moves = tuple(make_move(pod.key, "n1", "n2") for pod in planned)
    story.store.put_disruption(Drain("n1", "n1", "Underutilized", now, moves))
    return story.daemon._draining.advance(cluster.observe(), ())


def test_no_drain_begins_once_a_pod_there_is_not_understood() -> None:
    story = Story(make_policy())
    for name in ("n1", "n2"):
        story.world.cluster.add_node(owned_node(name))
    story.world.cluster.add_pod(JOB)
    story.world.cluster.faults.unreadable.add(JOB.key)
    proposal = Proposal(ProposalReason.EMPTY, releases=(Release("n1", "n1"),))
    [outcome] = story.daemon._executor.begin(Plan(0.0, proposals=(proposal,)), story.daemon.observe())
    assert (outcome.status, outcome.message) == (
        OutcomeStatus.DROPPED,
        "default/job on it cannot be understood, and may be at work",
    )


def test_a_machine_is_not_released_while_a_pod_on_it_is_not_understood() -> None:
    story = Story(make_policy())
    story.world.cluster.faults.unreadable.add(JOB.key)
    assert advanced(story, JOB, planned=(JOB,)) == []
    (claim,) = story.store.claims()
    assert (claim.state, claim.leaving_since) == (ClaimState.DRAINING, None)
    story.world.advance_to(story.world.clock.now() + story.policy.timeouts.drain_s)
    (undone,) = story.daemon._draining.advance(story.world.cluster.observe(), ())
    assert (undone.action, undone.message) == (
        "undo-drain",
        "not empty after 600 s: default/job on it cannot be understood, and may be at work",
    )


def evicted(outcomes: list[Outcome]) -> list[str]:
    return [outcome.subject for outcome in outcomes if outcome.action == "evict"]


def test_system_critical_pods_leave_when_the_others_have_left() -> None:
    assert evicted(advanced(Story(make_policy()), JOB, AGENT, planned=(JOB, AGENT))) == [JOB.key]
    assert evicted(advanced(Story(make_policy()), AGENT, planned=(JOB, AGENT))) == [AGENT.key]


def test_a_stranger_that_came_since_ends_the_drain_and_nobody_leaves() -> None:
    story = Story(make_policy())
    outcomes = advanced(story, JOB, AGENT, planned=(JOB,))
    assert [(outcome.action, outcome.message) for outcome in outcomes] == [
        ("undo-drain", f"{AGENT.key} was bound to the node since")
    ]
    assert (story.world.ledger.evictions, drains_of(story.store.disruptions())) == (0, ())


TAINTED: dict[str, Any] = {"taints": (DRAINING_TAINT,), "is_unschedulable": True}
OTHER = running(make_job("other"), "n1")
LOG = running(make_job("log", owner=Owner("DaemonSet", "log")), "n1")


def started(story: Story, *pods: Pod, nodes: Iterable[Node] = (owned_node("n1"), owned_node("n2"))) -> Outcome:
    """A drain of n1 is begun that the plan wants, by which `job` goes to n2; as nodes and pods are by now."""
    cluster = story.world.cluster
    for node in nodes:
        cluster.add_node(node)
    for pod in pods:
        cluster.add_pod(pod)
    story.store.put_claim(ready_claim(owned_node("n1")))
    return begun(story, ProposalReason.UNDERUTILIZED, make_move(JOB.key, "n1", "n2"))


def begun(story: Story, reason: ProposalReason, *moves: Move) -> Outcome:
    proposal = Proposal(reason, moves, releases=(Release("n1", "n1"),), message="seldom used")
    [outcome] = story.daemon._executor.begin(Plan(NOW, proposals=(proposal,)), story.daemon.observe())
    return outcome


@pytest.mark.parametrize(
    ("pods", "nodes", "reason", "words"),
    [
        pytest.param([], [owned_node("n2")], "NodeClosed", "the node is gone, not Ready", id="its node is gone"),
        pytest.param([JOB], [owned_node("n1", is_ready=False), owned_node("n2")], "NodeClosed", "the node is gone, not Ready", id="it is not Ready"),
        pytest.param([JOB], [owned_node("n1", **TAINTED), owned_node("n2")], "NodeClosed", "drained by another party", id="it is emptied already"),
        pytest.param([JOB, OTHER], None, "PodCame", "default/other was bound to the node since", id="a pod came"),
        pytest.param([JOB], [owned_node("n1")], "NodeClosed", "the target n2 of default/job is gone or closed", id="the target is gone"),
        pytest.param([JOB], [owned_node("n1"), owned_node("n2", is_ready=False)], "NodeClosed", "the target n2", id="the target is not Ready"),
        pytest.param([JOB], [owned_node("n1"), owned_node("n2", is_unschedulable=True)], "NodeClosed", "the target n2", id="the target is cordoned"),
        pytest.param([JOB], [owned_node("n1", annotations={DO_NOT_DISRUPT: "true"}), owned_node("n2")], "Protected", f"annotated {DO_NOT_DISRUPT}", id="it was annotated"),
        pytest.param([msgspec.structs.replace(JOB, disruption={DO_NOT_DISRUPT: "true"})], None, "Protected", DO_NOT_DISRUPT, id="its pod was annotated"),
    ],
)  # fmt: skip
def test_a_drain_that_would_be_wrong_by_now_does_not_begin(
    pods: list[Pod], nodes: list[Node] | None, reason: str, words: str
) -> None:
    story = Story(make_policy())
    outcome = started(story, *pods, **({"nodes": nodes} if nodes is not None else {}))
    assert (outcome.subject, outcome.status, str(outcome.reason)) == ("n1", OutcomeStatus.DROPPED, reason)
    assert words in outcome.message
    assert drains_of(story.store.disruptions()) == ()


def test_a_drain_does_not_begin_whose_group_is_not_configured_any_more() -> None:
    story = Story(make_policy())
    for node in (owned_node("n1"), owned_node("n2")):
        story.world.cluster.add_node(node)
    story.world.cluster.add_pod(JOB)
    story.store.put_claim(msgspec.structs.replace(ready_claim(owned_node("n1")), group="gone"))
    outcome = begun(story, ProposalReason.UNDERUTILIZED, make_move(JOB.key, "n1", "n2"))
    assert (outcome.status, str(outcome.reason)) == (OutcomeStatus.DROPPED, "ClaimGone")
    assert "its group is gone" in outcome.message


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([JOB], id="as it was planned"),
        pytest.param([], id="its pod has left by itself"),
        pytest.param([JOB, LOG], id="beside a DaemonSet's pod"),
        pytest.param([JOB, msgspec.structs.replace(OTHER, is_mirror=True)], id="beside a static pod"),
        pytest.param([JOB, msgspec.structs.replace(OTHER, deleted_at=NOW - 10_000)], id="beside one that should have ended long ago"),
        pytest.param([JOB, running(make_job("far"), "n2")], id="a pod came to another node"),
    ],
)  # fmt: skip
def test_a_drain_that_is_still_right_begins_and_is_written_down(pods: list[Pod]) -> None:
    story = Story(make_policy())
    outcome = started(story, *pods)
    assert (outcome.status, outcome.message) == (OutcomeStatus.DONE, "seldom used")
    (drain,) = drains_of(story.store.disruptions())
    assert (drain.node, drain.claim, drain.reason, [move.pod for move in drain.moves]) == (
        "n1",
        "n1",
        "Underutilized",
        [JOB.key],
    )
    (claim,) = story.store.claims()
    assert claim.state is ClaimState.DRAINING
    assert [node.is_draining for node in story.world.cluster.observe().nodes] == [True, False]


def test_a_drain_whose_claim_is_gone_does_not_begin() -> None:
    story = Story(make_policy())
    for name in ("n1", "n2"):
        story.world.cluster.add_node(owned_node(name))
    outcome = begun(story, ProposalReason.EMPTY)
    assert (outcome.status, outcome.message) == (OutcomeStatus.DROPPED, "its claim is gone")


@pytest.mark.parametrize(("waited_s", "is_given_up"), [(599.0, False), (600.0, True)])
def test_a_drain_that_lasts_too_long_is_given_up_and_its_node_opened(waited_s: float, is_given_up: bool) -> None:
    story = Story(make_policy())
    ending = msgspec.structs.replace(JOB, deleted_at=story.world.clock.now() + 10_000)  # it takes its time
    advanced(story, ending, planned=(ending,))
    story.world.clock.set(story.world.clock.now() + waited_s)
    told = story.daemon._draining.advance(story.world.cluster.observe(), ())
    assert [(each.action, each.message) for each in told] == (
        [("undo-drain", "not empty after 600 s")] if is_given_up else []
    )
    (claim,) = story.store.claims()
    node = next(node for node in story.world.cluster.observe().nodes if node.name == "n1")
    assert (claim.state is ClaimState.READY, node.is_draining) == (is_given_up, not is_given_up)
    assert len(drains_of(story.store.disruptions())) == (0 if is_given_up else 1)


def test_a_drain_is_not_given_up_whose_node_is_gone_by_then() -> None:
    """Its machine would count as Ready without a node: the next step releases it."""
    story = Story(make_policy())
    ending = msgspec.structs.replace(JOB, deleted_at=story.world.clock.now() + 10_000)
    advanced(story, ending, planned=(ending,))
    story.world.clock.set(story.world.clock.now() + 600.0)
    seen = story.world.cluster.observe()
    story.world.cluster.delete_node("n1")
    [told] = story.daemon._draining.advance(seen, ())
    assert (told.action, told.status, told.message) == ("undo-drain", OutcomeStatus.FAILED, "the node is gone")
    assert story.store.claims()[0].state is ClaimState.DRAINING


def test_an_emptied_node_that_was_annotated_meanwhile_is_kept() -> None:
    story = Story(make_policy())
    story.world.cluster.add_node(owned_node("n1", annotations={DO_NOT_DISRUPT: "true"}, **TAINTED))
    story.store.put_claim(msgspec.structs.replace(ready_claim(owned_node("n1")), state=ClaimState.DRAINING))
    story.store.put_disruption(Drain("n1", "n1", "Empty", story.world.clock.now(), ()))
    (told,) = story.daemon._draining.advance(story.world.cluster.observe(), ())
    assert (told.action, told.message) == ("undo-drain", f"the node is annotated {DO_NOT_DISRUPT}")


@pytest.mark.parametrize(
    ("state", "action", "is_drained"),
    [(ClaimState.READY, "drain", True), (ClaimState.REGISTERED, "undo-drain", False), (ClaimState.FAILED, "undo-drain", False)],
)  # fmt: skip
def test_a_drain_that_a_crash_cut_short_goes_on_only_for_a_machine_that_is_well(
    state: ClaimState, action: str, is_drained: bool
) -> None:
    story = Story(make_policy())
    story.world.cluster.add_node(owned_node("n1"))
    story.store.put_claim(msgspec.structs.replace(ready_claim(owned_node("n1")), state=state))
    story.store.put_disruption(Drain("n1", "n1", "Empty", story.world.clock.now(), ()))
    (told,) = story.daemon._draining.advance(story.world.cluster.observe(), ())
    assert (told.action, told.status) == (action, OutcomeStatus.DONE)
    assert bool(drains_of(story.store.disruptions())) == is_drained
    assert (story.store.claims()[0].state is ClaimState.DRAINING) == is_drained


def test_a_taint_that_nobody_remembers_is_taken_off_our_nodes_alone() -> None:
    story = Story(make_policy())
    story.world.cluster.add_node(owned_node("n1", **TAINTED))
    story.world.cluster.add_node(make_node("theirs", **TAINTED))
    (told,) = story.daemon._draining.advance(story.world.cluster.observe(), ())
    assert (told.subject, told.action, told.message) == ("n1", "undo-drain", "a drain without a journal entry")


def test_the_drain_of_a_claim_that_is_gone_is_forgotten() -> None:
    story = Story(make_policy())
    story.world.cluster.add_node(owned_node("n1", **TAINTED))
    story.store.put_disruption(Drain("n1", "n1", "Empty", story.world.clock.now(), ()))
    assert story.daemon._draining.advance(story.world.cluster.observe(), ()) == []
    assert drains_of(story.store.disruptions()) == ()


def test_a_machine_whose_end_was_asked_for_while_the_cycle_looked_is_not_deleted_again() -> None:
    """The answer came between the look at the calls under way and the look at the journal."""
    story = Story(make_policy())
    story.world.cluster.add_node(owned_node("n1", **TAINTED))
    claim = msgspec.structs.replace(ready_claim(owned_node("n1")), state=ClaimState.DRAINING)
    story.store.put_claim(msgspec.structs.replace(claim, leaving_since=story.world.clock.now()))
    story.store.put_disruption(Drain("n1", "n1", "Empty", story.world.clock.now(), ()))
    story.daemon._draining.advance(story.world.cluster.observe(), ())
    assert story.daemon._machines.cloud.answers() == []


@pytest.mark.parametrize("can_release", [True, False], ids=["the cloud answers", "the cloud is away"])
@pytest.mark.parametrize("has_node", [True, False], ids=["empty", "without its Node object"])
def test_an_emptied_machine_is_released_once_the_cloud_can_be_asked(can_release: bool, has_node: bool) -> None:
    story = Story(make_policy())
    if has_node:
        story.world.cluster.add_node(owned_node("n1", **TAINTED))
    story.store.put_claim(msgspec.structs.replace(ready_claim(owned_node("n1")), state=ClaimState.DRAINING))
    story.store.put_disruption(Drain("n1", "n1", "Empty", story.world.clock.now(), ()))
    story.daemon._draining.advance(story.world.cluster.observe(), (), can_release=can_release)
    (claim,) = story.store.claims()
    assert (claim.leaving_since is not None) == can_release


@pytest.mark.parametrize("fields", [{"taints": (DRAINING_TAINT,)}, {"is_unschedulable": True}, {}], ids=str)
def test_a_node_that_somebody_opened_again_is_closed_before_anybody_leaves(fields: dict[str, Any]) -> None:
    story = Story(make_policy())
    story.world.cluster.add_node(owned_node("n1", **fields))
    story.world.cluster.add_pod(JOB)
    story.store.put_claim(msgspec.structs.replace(ready_claim(owned_node("n1")), state=ClaimState.DRAINING))
    story.store.put_disruption(Drain("n1", "n1", "Empty", story.world.clock.now(), (make_move(JOB.key, "n1", "n2"),)))
    (told,) = story.daemon._draining.advance(story.world.cluster.observe(), ())
    assert (told.action, told.status, story.world.ledger.evictions) == ("drain", OutcomeStatus.DONE, 0)
    (node,) = story.world.cluster.observe().nodes
    assert node.is_draining
    assert node.is_unschedulable
