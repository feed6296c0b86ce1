"""A node being emptied: who leaves first, and what puts an end to it."""

from __future__ import annotations

import msgspec

from htas.model.claims import ClaimState
from htas.model.disruptions import Drain, drains_of
from htas.model.nodes import DRAINING_TAINT
from htas.model.outcomes import Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.proposals import Proposal, Release
from htas.model.reasons import ProposalReason
from tests.builders import make_job, make_move, make_policy, owned_node, ready_claim, running
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
    [outcome] = story.daemon._disruptions.begin(Plan(0.0, proposals=(proposal,)), story.daemon.observe())
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
        ("undo-drain", f"{AGENT.key} came to the node since")
    ]
    assert (story.world.ledger.evictions, drains_of(story.store.disruptions())) == (0, ())
