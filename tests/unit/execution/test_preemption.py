"""Preemption on a fresh view: only those leave whom the plan meant, and only while it still helps and is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from htas.execution.expectations import PATIENCE_S
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.nodes import DO_NOT_DISRUPT, DRAINING_TAINT, Node
from htas.model.outcomes import Outcome
from htas.model.plan import Plan, UnplacedPod
from htas.model.pods import MAY_MIGRATE, Pod
from htas.model.policy import Policy, Promises
from htas.model.proposals import Proposal, Seat
from htas.model.reasons import ProposalReason, Unplaced
from htas.planning.planner import plan
from htas.ports import TransientError
from htas.sandbox.workload import Budget
from tests.builders import NOW, labels_are, make_node, make_snapshot
from tests.stories.play import Story
from tests.unit.planning.preemption.world import incoming, on, policy

VICTIM, IMPORTANT, NODE = on("n", "a", labels={"app": "foo"}), incoming(), make_node("n")


class Preempting:
    """A world as it is now, in which a plan of a moment ago is carried out that preempts `a` on `n` for `p`."""

    def __init__(
        self,
        nodes: Iterable[Node] = (NODE,),
        pods: Iterable[Pod] = (VICTIM, IMPORTANT),
        keep: int | None = None,
        how: Policy | None = None,
    ) -> None:
        self.policy = how or policy(Promises.KEEP)
        self.story = Story(self.policy)
        self.cluster = self.story.world.cluster
        for node in nodes:
            self.cluster.add_node(node)
        for pod in pods:
            self.cluster.add_pod(pod)
        if keep is not None:  # of the pods of app foo so many at least are to run
            self.cluster.add_budget(Budget("default", "foo", labels_are(app="foo"), keep))

    def carry_out(self, *victims: Pod, gives_way: Iterable[Pod] = ()) -> list[Outcome]:
        snapshot = make_snapshot([NODE], [VICTIM, IMPORTANT, *victims, *gives_way])
        moves = tuple(
            Move(each.key, each.uid, "n", None, MigrationMethod.EVICT, MoveReason.PREEMPTED, beneficiary=IMPORTANT.key)
            for each in (VICTIM, *victims)
        )
        lesser = tuple(UnplacedPod(each.key, Unplaced.GIVES_WAY, "") for each in gives_way)
        seat = Seat(IMPORTANT.key, IMPORTANT.uid, "n")
        proposal = Proposal(ProposalReason.PREEMPTED, moves, seats=(seat,))
        return self.story.daemon._executor.begin(Plan(NOW, proposals=(proposal,), unplaced=lesser), snapshot)

    @property
    def gone(self) -> int:
        return self.story.world.ledger.evictions + self.story.world.ledger.preempted


@pytest.mark.parametrize(
    ("uid", "evictions"),
    [pytest.param("a", 1, id="the very pod"), pytest.param("a-again", 0, id="another that bears its name by now")],
)
def test_a_victim_is_the_pod_that_the_plan_saw(uid: str, evictions: int) -> None:
    snapshot = make_snapshot([NODE], [VICTIM, IMPORTANT])
    made = plan(snapshot, policy(), snapshot.taken_at)
    assert [(each.pod, each.source, each.beneficiary) for each in made.preempt] == [("default/a", "n", "default/p")]
    now = Preempting(pods=(msgspec.structs.replace(VICTIM, uid=uid), IMPORTANT), how=policy())
    now.story.daemon._executor.begin(made, snapshot)
    assert now.gone == evictions


def changed(pod: Pod, **fields: Any) -> Pod:
    return msgspec.structs.replace(pod, **fields)


GONE, CLOSED = "NothingGained", "NodeClosed"


@pytest.mark.parametrize(
    ("now", "reason", "words"),
    [
        pytest.param(lambda: Preempting(pods=(VICTIM,)), GONE, "default/p is gone or no longer pending", id="who it is for is gone"),
        pytest.param(lambda: Preempting(pods=(VICTIM, changed(IMPORTANT, node="n"))), GONE, "default/p is gone or no longer pending", id="it was bound"),
        pytest.param(lambda: Preempting(pods=(VICTIM, changed(IMPORTANT, deleted_at=NOW))), GONE, "default/p is gone or no longer pending", id="it ends"),
        pytest.param(lambda: Preempting(pods=(VICTIM, changed(IMPORTANT, gates=("quota",)))), GONE, "default/p is gone or no longer pending", id="it is gated"),
        pytest.param(lambda: Preempting(pods=(VICTIM, changed(IMPORTANT, uid="again"))), GONE, "default/p is gone or no longer pending", id="it is another by now"),
        pytest.param(lambda: Preempting([make_node("m")], (IMPORTANT,)), CLOSED, "node n is gone or closed", id="its node is gone"),
        pytest.param(lambda: Preempting([make_node("n", is_ready=False)]), CLOSED, "node n is gone or closed", id="its node is not Ready"),
        pytest.param(lambda: Preempting([make_node("n", is_unschedulable=True)]), CLOSED, "node n is gone or closed", id="its node is cordoned"),
        pytest.param(lambda: Preempting([make_node("n", taints=(DRAINING_TAINT,))]), CLOSED, "node n is gone or closed", id="its node is drained"),
        pytest.param(lambda: Preempting(pods=(changed(VICTIM, priority=1000, disruption={MAY_MIGRATE: "true"}), IMPORTANT)), "Protected", "default/a is not of lower priority than default/p", id="its victim is as important by now"),
        pytest.param(lambda: Preempting(pods=(changed(VICTIM, disruption={DO_NOT_DISRUPT: "true"}), IMPORTANT)), "Protected", DO_NOT_DISRUPT, id="its victim asked to be left alone"),
        pytest.param(lambda: Preempting(keep=1), "EvictionRefused", "budget", id="a budget allows no more"),
    ],
)  # fmt: skip
def test_nobody_leaves_where_it_would_be_wrong_by_now(now: Callable[[], Preempting], reason: str, words: str) -> None:
    world = now()
    (outcome,) = world.carry_out()
    assert (outcome.action.value, outcome.subject, outcome.status.value) == ("preempt", "default/a", "dropped")
    assert str(outcome.reason) == reason
    assert words in outcome.message
    assert world.gone == 0


@pytest.mark.parametrize(
    "victim",
    [
        pytest.param(changed(VICTIM, node="m"), id="moved on"),
        pytest.param(changed(VICTIM, deleted_at=NOW - 1), id="ends already"),
    ],
)
def test_victims_that_are_out_of_the_way_already_need_nothing(victim: Pod) -> None:
    world = Preempting([NODE, make_node("m")], (victim, IMPORTANT))
    assert [each.action.value for each in world.carry_out()] == ["nominate"]
    assert world.gone == 0


def test_room_is_made_by_nominating_first_and_evicting_then() -> None:
    world = Preempting(keep=0)
    outcomes = world.carry_out()
    assert [(each.action.value, each.subject, each.status.value, each.message) for each in outcomes] == [
        ("nominate", "default/p", "done", "n"),
        ("preempt", "default/a", "done", "for default/p of priority 1000 on n"),
    ]
    assert world.gone == 1


def test_of_two_victims_under_a_budget_for_one_none_leaves() -> None:
    other = changed(VICTIM, name="b", uid="b")
    world = Preempting(pods=(VICTIM, other, IMPORTANT), keep=1)
    assert [str(each.reason) for each in world.carry_out(other)] == ["EvictionRefused", "EvictionRefused"]
    assert world.gone == 0
    allowed = Preempting(pods=(VICTIM, other, IMPORTANT), keep=0)
    allowed.carry_out(other)
    assert allowed.gone == 2


def test_where_budgets_do_not_bind_only_those_beyond_them_are_deleted_as_kube_scheduler_does() -> None:
    other = changed(VICTIM, name="b", uid="b")
    world = Preempting(pods=(VICTIM, other, IMPORTANT), keep=1, how=policy())
    world.carry_out(other)
    ledger = world.story.world.ledger
    assert (ledger.evictions, ledger.preempted) == (1, 1)


def test_what_was_done_and_is_not_seen_yet_is_taken_for_done_for_a_while() -> None:
    world = Preempting()
    world.carry_out()
    now, pods = world.story.world.clock.now(), (VICTIM, IMPORTANT)
    victim, important = world.story.daemon._expectations.applied(pods, now)
    assert (victim.deleted_at, important.nominated_node) == (now, "n")
    still = world.story.daemon._expectations.applied(pods, now + PATIENCE_S - 1)
    assert [each.deleted_at for each in still] == [now, None]
    assert world.story.daemon._expectations.applied(pods, now + PATIENCE_S) == pods
    assert world.story.daemon._expectations.applied(pods, now) == pods, "and is not believed again"


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param((changed(VICTIM, deleted_at=NOW), changed(IMPORTANT, nominated_node="n")), id="as it was done"),
        pytest.param((changed(IMPORTANT, node="n"),), id="and more"),
        pytest.param((), id="neither is there any more"),
    ],
)
def test_what_is_seen_is_believed_from_then_on(seen: tuple[Pod, ...]) -> None:
    world = Preempting()
    world.carry_out()
    now = world.story.world.clock.now()
    assert world.story.daemon._expectations.applied(seen, now) == seen
    assert world.story.daemon._expectations.applied((VICTIM, IMPORTANT), now) == (VICTIM, IMPORTANT)


@pytest.mark.parametrize(
    ("lesser", "gives_way"),
    [
        pytest.param(incoming(name="q", priority=5, nominated_node="n"), True, id="less important"),
        pytest.param(incoming(name="q", nominated_node="n"), False, id="as important"),
        pytest.param(incoming(name="q", priority=5, nominated_node="m"), False, id="on another node"),
        pytest.param(incoming(name="q", priority=5, nominated_node="n", scheduler="other"), False, id="of another scheduler"),
    ],
)  # fmt: skip
def test_nominations_to_the_node_that_give_way_are_taken_back(lesser: Pod, gives_way: bool) -> None:
    world = Preempting(pods=(VICTIM, IMPORTANT, lesser))
    told = [(each.action.value, each.subject, each.message) for each in world.carry_out(gives_way=[lesser])]
    assert (("nominate", "default/q", "") in told) == gives_way


def test_a_cluster_that_does_not_answer_is_left_alone() -> None:
    world = Preempting()
    world.cluster.faults.arrange("observe", TransientError("the API server is away"))
    (outcome,) = world.carry_out()
    assert (outcome.subject, outcome.status.value, outcome.message) == (
        "default/a",
        "dropped",
        "the API server is away",
    )
