"""Stories of mode approve: what disturbs running pods waits for a word, everything else goes on."""

from __future__ import annotations

import pytest

from htas.model.approvals import ApprovalState
from htas.model.modes import Approval, Otherwise
from htas.model.outcomes import Action, OutcomeStatus
from htas.model.policy import Policy
from htas.ports import NotFoundError
from tests.builders import make_policy
from tests.stories.play import Story, job
from tests.stories.test_life_of_machines import PLAIN, cleaning, stragglers

QUIET_S = 900.0
"""By then the one node that is worth emptying has been proposed."""


def policy(otherwise: Otherwise = Otherwise.REJECT, within_s: float = 3600.0, again_s: float = 14400.0) -> Policy:
    return make_policy([cleaning()], PLAIN, approval=Approval(within_s, otherwise, again_s))


def with_a_node_worth_emptying(rules: Policy) -> Story:
    return Story(rules, *stragglers())


def disturbed(story: Story) -> int:
    """Pods that have left their node, or are on their way."""
    return story.world.ledger.evictions + story.world.ledger.migrations + len(story.world.migration.moving())


def waiting(story: Story) -> list[str]:
    return [each.question.id for each in story.daemon.approvals.asked() if each.state is ApprovalState.WAITING]


def test_without_a_word_no_pod_is_disturbed_and_work_is_bought_for_and_bound() -> None:
    automatic = with_a_node_worth_emptying(make_policy([cleaning()], PLAIN)).play(QUIET_S)
    assert disturbed(automatic) >= 1, "else this story is about nothing"
    story = with_a_node_worth_emptying(policy()).play(QUIET_S)
    assert story.verbs[Action.LAUNCH, "done"] >= 1
    assert story.verbs[Action.BIND, "done"] == 4
    assert story.verbs[Action.PROPOSE, "done"] == len(waiting(story)) > 0
    assert disturbed(story) == 0
    story.assert_whole()


def test_a_yes_is_carried_out_and_who_said_it_is_on_record() -> None:
    story = with_a_node_worth_emptying(policy()).play(QUIET_S)
    story.daemon.approvals.say(waiting(story), "alice", is_approved=True, currency="USD")
    story.play(QUIET_S + 300)
    assert disturbed(story) == 1
    said = [
        each for record in story.store.cycles(limit=1000) for each in record.outcomes if each.action is Action.APPROVE
    ]
    assert {(each.status, each.target) for each in said} == {(OutcomeStatus.DONE, "alice")}
    assert said[0].message.startswith("by alice: drain ")


def test_a_no_stands_for_as_long_as_it_is_meant_to() -> None:
    story = with_a_node_worth_emptying(policy(again_s=120.0)).play(QUIET_S)
    story.daemon.approvals.say((), "bob", is_approved=False, currency="USD")
    story.play(QUIET_S + 60)
    assert not waiting(story)
    assert disturbed(story) == 0
    story.play(QUIET_S + 200)
    assert waiting(story), "it is proposed again"


@pytest.mark.parametrize(
    ("otherwise", "leave"),
    [
        pytest.param(Otherwise.REJECT, 0, id="silence is a no"),
        pytest.param(Otherwise.CARRY_OUT, 1, id="silence is a yes"),
    ],
)
def test_patience_ends(otherwise: Otherwise, leave: int) -> None:
    story = with_a_node_worth_emptying(policy(otherwise, within_s=600.0)).play(QUIET_S + 900)
    assert not waiting(story)
    assert disturbed(story) == leave
    action = Action.APPROVE if leave else Action.REJECT
    assert (
        next(message for message in story.messages if message.startswith(f"{action} ")).count(
            "without an answer in time"
        )
        == 1
    )


def test_after_a_crash_what_was_said_is_known_and_what_waits_waits_on() -> None:
    story = with_a_node_worth_emptying(policy()).play(QUIET_S)
    before = waiting(story)
    story.crash()
    story.play(QUIET_S + 60)
    assert waiting(story) == before
    story.daemon.approvals.say((), "bob", is_approved=False, currency="USD")
    story.play(QUIET_S + 120)
    story.crash()
    story.play(QUIET_S + 600)
    assert not waiting(story)
    assert {each.who for each in story.daemon.approvals.asked()} == {"bob"}
    assert disturbed(story) == 0


def test_a_no_is_known_after_a_restart_however_much_was_recorded_since() -> None:
    """Words were sought in the newest 200 cycles, and an older no was asked about again."""
    busy = [job(f"passing-{i}", at_s=QUIET_S + 60.0 * i, runs_s=20.0) for i in range(1, 211)]
    story = Story(policy(again_s=30 * 86_400.0), *stragglers(), *busy).play(QUIET_S)
    story.daemon.approvals.say((), "bob", is_approved=False, currency="USD")
    said = {each.question.id for each in story.daemon.approvals.asked()}
    story.play(QUIET_S + 60.0 * 212)
    assert not any(
        record.outcomes and record.outcomes[0].action is Action.REJECT for record in story.store.cycles(limit=200)
    )
    story.crash()
    story.play(QUIET_S + 60.0 * 220)
    assert said <= {each.question.id for each in story.daemon.approvals.asked() if each.who == "bob"}
    assert disturbed(story) == 0


def test_a_no_is_known_after_a_restart_where_the_newest_cycle_on_record_is_damaged() -> None:
    story = with_a_node_worth_emptying(policy()).play(QUIET_S)
    story.daemon.approvals.say((), "bob", is_approved=False, currency="USD")
    story.play(QUIET_S + 120)
    story.store.add_cycle(next(story.store.cycles(limit=1)))
    with story.store._database.transaction() as connection:
        connection.execute("UPDATE cycles SET body = x'00' WHERE id = (SELECT max(id) FROM cycles)")
    story.crash()
    story.play(QUIET_S + 600)
    assert not waiting(story)
    assert {each.who for each in story.daemon.approvals.asked()} == {"bob"}


def test_what_is_said_while_the_store_is_away_stands_when_it_is_read_again() -> None:
    story = with_a_node_worth_emptying(policy()).play(QUIET_S)
    before, approvals = story.daemon.approvals.asked(), story.daemon.approvals
    assert before
    assert before[0].state is ApprovalState.WAITING
    approvals.say([before[0].question.id], "bob", is_approved=False, currency="USD")
    approvals.remember(before)
    assert [each.who for each in approvals.asked() if each.question == before[0].question] == ["bob"]


def test_an_empty_machine_is_returned_without_a_word() -> None:
    story = Story(policy(), job("short", runs_s=60.0)).play(3600.0)
    assert story.verbs[Action.PROPOSE, "done"] == 0
    story.assert_over(1)


def test_a_word_about_what_waits_no_more_is_refused() -> None:
    story = with_a_node_worth_emptying(policy()).play(QUIET_S)
    with pytest.raises(NotFoundError, match="there is no such proposal"):
        story.daemon.approvals.say(["drain-00000000"], "eve", is_approved=True, currency="USD")
    assert waiting(story)


def test_cycles_in_which_all_waits_are_not_recorded_again_and_again() -> None:
    story = with_a_node_worth_emptying(policy()).play(QUIET_S)
    before = len(list(story.store.cycles(limit=1000)))
    story.play(QUIET_S + 600)
    assert len(list(story.store.cycles(limit=1000))) - before <= 2
