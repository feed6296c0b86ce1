"""What a yes is for: once, for the pod that it was said of, and for no more pods than were told."""

from __future__ import annotations

import msgspec
import pytest

from htas.execution.approvals import Approvals
from htas.model.approvals import ApprovalState, QuestionKind, questions_of
from htas.model.modes import Approval, Otherwise
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.proposals import Launch, Proposal, Release, Seat
from htas.model.reasons import ProposalReason
from tests.builders import NOW, make_job, make_node, make_snapshot, running

IMPORTANT = make_job("important", priority=9)


def preempting(*leaving: str, waits: Pod = IMPORTANT) -> Plan:
    """Pods leave a node for `important`."""
    moves = tuple(
        Move(pod, pod, "n", None, MigrationMethod.EVICT, MoveReason.PREEMPTED, beneficiary=waits.key) for pod in leaving
    )
    return Plan(NOW, proposals=(Proposal(ProposalReason.PREEMPTED, moves, seats=(Seat(waits.key, waits.uid, "n"),)),))


def making_room() -> Plan:
    """A pod moves, and so no machine is bought."""
    move = Move("default/a", "a", "n", "m", MigrationMethod.CHECKPOINT, MoveReason.MAKES_ROOM)
    seat = Seat(IMPORTANT.key, IMPORTANT.uid, "n")
    return Plan(NOW, proposals=(Proposal(ProposalReason.INSTEAD_OF_BUYING, (move,), seats=(seat,)),))


def begun(approvals: Approvals, plan: Plan) -> int:
    """How many proposals of a plan are begun."""
    return len(approvals.gate(plan, make_snapshot((), (IMPORTANT,)), "USD")[0].proposals)


@pytest.fixture
def approved() -> Approvals:
    """One pod may leave for `important`: alice said so."""
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    assert begun(approvals, preempting("default/a")) == 0
    approvals.say((), "alice", is_approved=True, currency="USD")
    return approvals


def test_a_yes_is_for_once(approved: Approvals) -> None:
    assert [begun(approved, preempting("default/a")) for _ in range(3)] == [1, 0, 0]
    assert [each.state for each in approved.asked()] == [ApprovalState.WAITING]


def test_a_yes_to_moving_instead_of_buying_is_for_once() -> None:
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    assert begun(approvals, making_room()) == 0
    approvals.say((), "alice", is_approved=True, currency="USD")
    assert [begun(approvals, making_room()) for _ in range(2)] == [1, 0]


def test_a_yes_is_not_for_another_pod_of_that_name(approved: Approvals) -> None:
    other = msgspec.structs.replace(IMPORTANT, uid="another")
    assert begun(approved, preempting("default/a", waits=other)) == 0
    assert begun(approved, preempting("default/a")) == 1


def test_a_yes_is_not_for_more_pods_than_were_told(approved: Approvals) -> None:
    assert begun(approved, preempting("default/a", "default/b")) == 0


def emptying(*leaving: str) -> Plan:
    """Pods leave a node that is returned then."""
    moves = tuple(Move(pod, pod, "n", "m", MigrationMethod.EVICT, MoveReason.NODE_DRAINED) for pod in leaving)
    return Plan(NOW, proposals=(Proposal(ProposalReason.UNDERUTILIZED, moves, releases=(Release("n", "n"),)),))


@pytest.mark.parametrize(
    ("leaving", "is_begun"),
    [
        pytest.param(("default/a", "default/b"), 1, id="those that were told"),
        pytest.param(("default/a",), 1, id="one of them, since the other has ended"),
        pytest.param(("default/a", "default/c"), 0, id="one that came since"),
        pytest.param(("default/c", "default/d"), 0, id="others altogether, an hour later"),
    ],
)
def test_a_yes_to_emptying_a_node_is_for_the_pods_that_were_told(leaving: tuple[str, ...], is_begun: int) -> None:
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    assert begun(approvals, emptying("default/a", "default/b")) == 0
    approvals.say((), "alice", is_approved=True, currency="USD")
    assert begun(approvals, emptying(*leaving)) == is_begun


def test_what_was_said_is_told_as_it_was_said() -> None:
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    assert begun(approvals, emptying("default/a", "default/b")) == 0
    approvals.say((), "alice", is_approved=False, currency="USD")
    assert begun(approvals, emptying("default/c")) == 0
    assert [each.question.pods for each in approvals.asked()] == [("default/a", "default/b")]


def test_an_id_cannot_be_met_by_chance() -> None:
    snapshot = make_snapshot((), (IMPORTANT,))
    (question,) = questions_of(preempting("default/a"), snapshot)
    assert len(question.id.rpartition("-")[2]) * 4 == 128, "bits"


def test_who_leaves_with_a_node_that_is_replaced_is_told() -> None:
    """Where its pods go is planned once the machines are there; that they go is what is asked."""
    bought = Launch("new", "batch", "m3.small", None, 50_000_000, (), replaces=("old",))
    proposal = Proposal(ProposalReason.CONSOLIDATED, launches=(bought,), releases=(Release("old", "old"),), value=30)
    pods = [running(make_job("leaves"), "old"), running(make_job("stays"), "other"), IMPORTANT]
    snapshot = make_snapshot([make_node("old"), make_node("other")], pods)
    (question,) = questions_of(Plan(NOW, proposals=(proposal,)), snapshot)
    assert (question.kind, question.pods) == (QuestionKind.REPLACE, ("default/leaves",))
