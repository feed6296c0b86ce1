"""The one place that makes pods leave: by which call, in which words, how many at once, and who could not."""

import pytest

from htas.execution.calls import Call
from htas.execution.evictor import SYSTEM_CRITICAL, Evictor, first_to_leave, told_as
from htas.model.migrations import MigrationSettings
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.outcomes import Action, Outcome
from htas.model.pods import Pod
from tests.builders import make_node, make_pod, make_policy
from tests.stories.play import Story

EVICT, CHECKPOINT = MigrationMethod.EVICT, MigrationMethod.CHECKPOINT
DRAINED, ROOM, DETOUR = MoveReason.NODE_DRAINED, MoveReason.MAKES_ROOM, MoveReason.DETOUR


@pytest.mark.parametrize(
    ("target", "method", "reason", "told"),
    [
        pytest.param("b", EVICT, DRAINED, (Action.EVICT, ""), id="off a node that is drained"),
        pytest.param("b", CHECKPOINT, DRAINED, (Action.MIGRATE, "to b"), id="the same, with its progress"),
        pytest.param("b", EVICT, ROOM, (Action.MOVE, "evicted, goes to b"), id="to its slot"),
        pytest.param("b", CHECKPOINT, DETOUR, (Action.MOVE, "to b"), id="elsewhere, with its progress"),
        pytest.param(None, EVICT, ROOM, (Action.DISPLACE, "evicted for more important work"), id="for nowhere"),
    ],
)
def test_a_move_is_told_in_the_words_of_what_it_is_for(
    target: str | None, method: MigrationMethod, reason: MoveReason, told: tuple[Action, str]
) -> None:
    assert told_as(Move("default/p", "p", "a", target, method, reason)) == told


def test_system_critical_pods_leave_when_the_others_have_left() -> None:
    ordinary, critical = make_pod("web"), make_pod("dns", priority=SYSTEM_CRITICAL)
    assert list(first_to_leave([critical, ordinary])) == [ordinary]
    assert list(first_to_leave([critical])) == [critical]


def test_no_more_moves_are_begun_than_may_be_under_way_and_evictions_are_not_counted() -> None:
    noted = list[Outcome]()
    nodes = [make_node("a"), make_node("b")]
    policy = make_policy(migration=MigrationSettings(at_once=1))
    story = Story(policy)
    story.world.add_nodes(nodes)
    departures = Evictor(story.ports, policy).departures(nodes)

    def call(pod: Pod, method: MigrationMethod) -> Call | None:
        return departures.call(pod, Move(pod.key, pod.uid, "a", "b", method, DRAINED), noted.append)

    calls = [call(make_pod("x"), CHECKPOINT), call(make_pod("y"), CHECKPOINT), call(make_pod("z"), EVICT)]
    assert [each is not None for each in calls] == [True, False, True]
    outcomes = [each() for each in calls if each is not None]
    assert (outcomes, [(each.action, each.target) for each in outcomes]) == (
        noted,
        [(Action.MIGRATE, "b"), (Action.EVICT, "b")],
    )
