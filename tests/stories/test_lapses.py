"""Machines that are bought to take over from a node, where a budget closes each time before they are Ready."""

from __future__ import annotations

from itertools import pairwise

from htas.model.claims import ClaimState
from htas.sandbox.workload import Budget
from tests.builders import labels_are
from tests.stories.play import Story
from tests.stories.test_expired import HOUR, bought, policy
from tests.stories.test_retired import removals, replicas, running

STEP_S = 60.0


def contrary(story: Story, until_s: float, *, restarts: bool = False) -> list[int]:
    """Plays on with a budget that lets pods go only while nothing is there to take them; when machines were bought."""
    for at in range(int(story.world.clock.now() - story.start), int(until_s), int(STEP_S)):
        is_there = any(claim.replaces and claim.state is not ClaimState.RELEASED for claim in story.store.claims())
        story.world.cluster.add_budget(Budget("default", "web", labels_are(app="web"), 16 if is_there else 0))
        story.play(at + STEP_S)
        if restarts and at % 1800 == 0:
            story.crash()
    return [when for when, _ in bought(story)]


def test_each_machine_bought_in_vain_doubles_the_pause_before_the_next() -> None:
    """It was one every 22 min, 67 machines in a day, for nothing."""
    story = Story(policy(), replicas(16)).play(2 * HOUR - 60)
    times = contrary(story, 26 * HOUR)
    pauses = [after - before for before, after in pairwise(times)]
    assert len(times) <= 7
    assert all(after > 1.5 * before for before, after in pairwise(pauses)), pauses
    assert (running(story), story.world.ledger.evictions) == (16, 0)
    [kept] = story.seen[-1].plan.kept
    assert "a machine launched to replace it was not used (" in kept.message


def test_a_daemon_that_dies_again_and_again_does_not_forget_it() -> None:
    story = Story(policy(), replicas(16)).play(2 * HOUR - 60)
    assert len(contrary(story, 14 * HOUR, restarts=True)) <= 6


def test_what_was_in_vain_is_tried_again_and_the_node_replaced_in_the_end() -> None:
    story = Story(policy(), replicas(16)).play(2 * HOUR - 60)
    contrary(story, 4 * HOUR)
    story.world.cluster.add_budget(Budget("default", "web", labels_are(app="web"), 0))
    story.play(8 * HOUR)
    assert (removals(story)[-1], running(story), len(story.nodes)) == ("Expired", 16, 1)
    story.assert_whole()
