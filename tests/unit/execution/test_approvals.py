"""What a yes is for: once, for the pod that it was said of, and for no more pods than were told."""

from __future__ import annotations

import msgspec
import pytest

from htas.execution.approvals import Approvals
from htas.model.approvals import ApprovalState, QuestionKind, questions_of
from htas.model.modes import Approval, Otherwise
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.outcomes import CLUSTER, Action, Outcome, OutcomeStatus
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.proposals import Launch, Proposal, Release, Seat
from htas.model.reasons import ProposalReason
from htas.model.snapshot import ClusterSnapshot
from htas.ports import ConflictError
from tests.builders import NOW, make_job, make_move, make_node, make_snapshot, owned_node, ready_claim, running

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
    return Plan(NOW, proposals=(Proposal(ProposalReason.INSTEAD_OF_LAUNCH, (move,), seats=(seat,)),))


def replacing(node: str) -> Plan:
    """A cheaper machine takes the place of a node."""
    launch = Launch("c", "any", "small", None, 1, (), replaces=(node,))
    released = Release(node, "old")
    return Plan(NOW, proposals=(Proposal(ProposalReason.CONSOLIDATED, (), launches=(launch,), releases=(released,)),))


def after(seconds: float) -> ClusterSnapshot:
    made = make_snapshot([make_node("n")], (IMPORTANT,))
    return msgspec.structs.replace(made, taken_at=NOW + seconds)


def begun(approvals: Approvals, plan: Plan) -> int:
    """How many proposals of a plan are begun."""
    return len(approvals.gate(plan, make_snapshot([make_node("n")], (IMPORTANT,)), "USD")[0].proposals)


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


def at(seconds: float, *, is_there: bool = True, runs: bool = True) -> ClusterSnapshot:
    nodes = [make_node("n")] if is_there else []
    pods = [running(make_job("a"), "n")] if is_there and runs else []
    return msgspec.structs.replace(make_snapshot(nodes, (IMPORTANT, *pods)), taken_at=NOW + seconds)


@pytest.mark.parametrize(
    ("seconds", "is_there", "state", "why"),
    [
        pytest.param(60, True, [ApprovalState.APPROVED], "", id="it may be proposed again"),
        pytest.param(60, False, [ApprovalState.LAPSED], "node n is gone", id="its node is gone"),
        pytest.param(900, True, [ApprovalState.LAPSED], "no plan has had it for 15 minutes", id="nobody proposes it"),
    ],
)
def test_a_yes_that_comes_to_nothing_is_told(seconds: float, is_there: bool, state: list[str], why: str) -> None:
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    approvals.gate(emptying("default/a"), at(0), "USD")
    approvals.say((), "alice", is_approved=True, currency="USD")
    approvals.gate(Plan(NOW), at(seconds, is_there=is_there), "USD")
    assert [each.state for each in approvals.asked()] == state
    assert [each.lapsed for each in approvals.asked()] == [why]
    approvals.gate(Plan(NOW), at(seconds + 3600), "USD")
    if why:
        assert approvals.asked() == [], "told for a while"


def test_what_waits_for_pods_that_have_ended_waits_no_more() -> None:
    """An empty node was told to wait, and two pods to leave it."""
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    approvals.gate(emptying("default/a"), at(0), "USD")
    approvals.gate(Plan(NOW), at(5), "USD")
    assert [each.state for each in approvals.asked()] == [ApprovalState.WAITING]
    approvals.gate(Plan(NOW), at(5, runs=False), "USD")
    assert approvals.asked() == []


def test_a_yes_that_cannot_be_begun_in_time_lapses_and_is_asked_about_anew() -> None:
    """It is proposed all the while, but with other pods beside: those were not told."""
    approvals = Approvals(Approval(600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    approvals.gate(emptying("default/a"), at(0), "USD")
    approvals.say((), "alice", is_approved=True, currency="USD")
    approvals.gate(Plan(NOW), at(600), "USD")
    assert [each.lapsed for each in approvals.asked()] == ["it could not be started within 10 minutes of the approval"]
    assert begun(approvals, emptying("default/a")) == 0
    assert [each.state for each in approvals.asked()] == [ApprovalState.WAITING, ApprovalState.LAPSED]


def test_a_yes_to_fewer_pods_is_told_as_lapsed_and_known_so_after_a_restart() -> None:
    """It was replaced by the question about more pods, and when that was over nothing told of it."""
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    approvals.gate(emptying("default/a"), at(0), "USD")
    approvals.say((), "alice", is_approved=True, currency="USD")
    _, told = approvals.gate(emptying("default/a", "default/b"), at(60), "USD")
    assert [(each.status, each.target) for each in told if each.action is Action.APPROVE][1:] == [
        (OutcomeStatus.DROPPED, "alice")
    ]
    again = Approvals(approvals.approval, lambda: NOW)
    again.remember(approvals.asked())
    for each in (approvals, again):
        assert [(asked.state, len(asked.question.pods)) for asked in each.asked()] == [
            (ApprovalState.WAITING, 2),
            (ApprovalState.LAPSED, 1),
        ]
        each.gate(Plan(NOW), at(70, is_there=False), "USD")
        assert [asked.lapsed for asked in each.asked()] == ["more pods would leave: it is proposed again"]


@pytest.mark.parametrize(
    ("first", "then", "waiting"),
    [
        pytest.param("drain", "replace", [QuestionKind.REPLACE], id="to be replaced, no more to be emptied"),
        pytest.param("replace", "drain", [QuestionKind.DRAIN], id="to be emptied, no more to be replaced"),
        pytest.param("drain", "preempt", [QuestionKind.DRAIN, QuestionKind.PREEMPT], id="about a pod beside"),
    ],
)
def test_a_node_is_asked_about_in_one_way_at_once(first: str, then: str, waiting: list[QuestionKind]) -> None:
    """Two cards stood for one node: a drain, and a replacement that would have had the same pods leave."""
    plans = {"drain": emptying("default/a"), "replace": replacing("n"), "preempt": preempting("default/a")}
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    for plan in (plans[first], plans[then]):
        approvals.gate(plan, at(0), "USD")
    assert [each.question.kind for each in approvals.asked()] == waiting


def test_a_yes_stands_beside_another_question_about_the_node() -> None:
    """Only what nobody has answered is replaced."""
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    approvals.gate(emptying("default/a"), at(0), "USD")
    approvals.say((), "alice", is_approved=True, currency="USD")
    approvals.gate(replacing("n"), at(5), "USD")
    assert [each.state for each in approvals.asked()] == [ApprovalState.WAITING, ApprovalState.APPROVED]


def test_what_waits_for_a_node_that_is_gone_waits_no_more() -> None:
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    approvals.gate(emptying("default/a"), at(0), "USD")
    approvals.gate(Plan(NOW), at(5, is_there=False), "USD")
    assert approvals.asked() == []


def test_a_word_said_twice_is_one_and_another_is_refused(approved: Approvals) -> None:
    (before,) = approved.asked()
    key, words = before.question.id, approved.words
    assert approved.say([key], "bob", is_approved=True, currency="USD") == [before]
    with pytest.raises(ConflictError, match=f"{key}: approved by alice already"):
        approved.say([key], "bob", is_approved=False, currency="USD")
    assert (approved.asked(), approved.words) == ([before], words)


def test_what_was_said_last_comes_first() -> None:
    times = iter([NOW + 1, NOW + 2])
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: next(times))
    approvals.gate(emptying("default/a"), at(0), "USD")
    approvals.gate(preempting("default/a"), at(0), "USD")
    one, other = (each.question.id for each in approvals.asked())
    for key in (one, other):
        approvals.say([key], "alice", is_approved=False, currency="USD")
    assert [each.question.id for each in approvals.asked()] == [other, one]


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


def test_what_is_proposed_after_a_gap_keeps_its_yes() -> None:
    """The leader was away for longer than what nobody proposes is remembered: the yes lapsed, and was asked for anew."""
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    begun(approvals, preempting("default/a"))
    approvals.say((), "alice", is_approved=True, currency="USD")
    plan, told = approvals.gate(preempting("default/a"), after(1000.0), "USD")
    assert len(plan.proposals) == 1
    assert [outcome.action for outcome in told] == [Action.APPROVE]


def test_a_yes_that_lapses_is_on_record(approved: Approvals) -> None:
    approved.gate(Plan(NOW), after(10.0), "USD")
    _, told = approved.gate(Plan(NOW), after(1000.0), "USD")
    assert [(outcome.action, outcome.status, outcome.target) for outcome in told] == [
        (Action.APPROVE, OutcomeStatus.DROPPED, "alice")
    ]
    assert told[0].message.startswith("lapsed, no plan has had it for 15 minutes: preempt default/important")


def test_silence_is_no_yes_to_what_is_proposed_no_more() -> None:
    approvals = Approvals(Approval(600.0, Otherwise.CARRY_OUT, 14400.0), lambda: NOW)
    begun(approvals, preempting("default/a"))
    assert approvals.gate(Plan(NOW), after(650.0), "USD")[1] == []
    assert [each.state for each in approvals.asked()] == [ApprovalState.WAITING]


def test_while_nobody_could_be_asked_is_no_silence() -> None:
    """The daemon was away for hours, and its successor did in its first cycle what nobody had been able to refuse."""
    first = Approvals(Approval(1800.0, Otherwise.CARRY_OUT, 14400.0), lambda: NOW)
    first.gate(preempting("default/a"), after(0.0), "USD")
    first.gate(preempting("default/a"), after(600.0), "USD")
    second = Approvals(Approval(1800.0, Otherwise.CARRY_OUT, 14400.0), lambda: NOW + 36_600.0)
    second.remember(first.asked())
    times = (36_600.0, 37_200.0, 37_790.0, 37_800.0)
    done = [len(second.gate(preempting("default/a"), after(s), "USD")[0].proposals) for s in times]
    assert done == [0, 0, 0, 1], "ten minutes before, and twenty since"


def test_nor_is_a_time_without_any_plan() -> None:
    approvals = Approvals(Approval(1800.0, Otherwise.CARRY_OUT, 14400.0), lambda: NOW)
    times = (0.0, 600.0, 4000.0, 4600.0, 5100.0, 5200.0)
    done = [len(approvals.gate(preempting("default/a"), after(s), "USD")[0].proposals) for s in times]
    assert done == [0, 0, 0, 0, 0, 1]


def test_silence_is_about_the_pods_that_were_told() -> None:
    approvals = Approvals(Approval(1800.0, Otherwise.CARRY_OUT, 14400.0), lambda: NOW)
    for seconds in (0.0, 800.0, 1600.0):
        approvals.gate(preempting("default/a"), after(seconds), "USD")
    plan, told = approvals.gate(preempting("default/a", "default/b"), after(1795.0), "USD")
    assert (plan.proposals, [outcome.action for outcome in told]) == ((), [Action.PROPOSE])
    assert "more pods would leave" in told[0].message
    for seconds in (1800.0, 2600.0, 3400.0):
        assert approvals.gate(preempting("default/a", "default/b"), after(seconds), "USD")[0].proposals == ()
    assert len(approvals.gate(preempting("default/b"), after(3595.0), "USD")[0].proposals) == 1, "one fewer is no news"


def test_what_waits_for_a_pod_that_has_a_node_waits_no_more() -> None:
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    begun(approvals, preempting("default/a"))
    approvals.gate(Plan(NOW), make_snapshot([make_node("n")], (running(IMPORTANT, "n"),)), "USD")
    assert approvals.asked() == []


@pytest.mark.parametrize(
    ("plan", "outcomes", "begun_again"),
    [
        pytest.param(
            preempting("default/a"),
            [(Action.PREEMPT, "default/a", OutcomeStatus.DROPPED)],
            1,
            id="the world had changed",
        ),
        pytest.param(
            preempting("default/a"), [(Action.NOMINATE, IMPORTANT.key, OutcomeStatus.FAILED)], 1, id="a call failed"
        ),
        pytest.param(
            preempting("default/a"),
            [(Action.PREEMPT, "default/a", OutcomeStatus.DONE), (Action.PREEMPT, "default/b", OutcomeStatus.FAILED)],
            0,
            id="another's outcome is none of it",
        ),
        pytest.param(making_room(), [(Action.REARRANGE, CLUSTER, OutcomeStatus.DROPPED)], 1, id="no move was begun"),
        pytest.param(replacing("n"), [(Action.LAUNCH, "c", OutcomeStatus.DROPPED)], 1, id="nothing was ordered"),
        pytest.param(replacing("n"), [(Action.LAUNCH, "c", OutcomeStatus.FAILED)], 0, id="an order that goes on"),
        pytest.param(preempting("default/a"), [], 0, id="nothing is known of it"),
    ],
)
def test_a_yes_stands_until_something_has_been_begun(
    plan: Plan, outcomes: list[tuple[Action, str, OutcomeStatus]], begun_again: int
) -> None:
    """A hiccup of the API server cost somebody's yes, and nobody was told."""
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    begun(approvals, plan)
    approvals.say((), "alice", is_approved=True, currency="USD")
    assert begun(approvals, plan) == 1
    approvals.settle([Outcome(*each) for each in outcomes])
    assert begun(approvals, plan) == begun_again


@pytest.mark.parametrize(
    ("is_second_half", "asked"),
    [
        pytest.param(True, [], id="what was bought for it has come: that was said yes to"),
        pytest.param(False, [QuestionKind.DRAIN], id="a later time, whatever was once bought for it"),
    ],
)
def test_a_node_whose_replacement_was_approved_is_asked_about_once(
    is_second_half: bool, asked: list[QuestionKind]
) -> None:
    old = owned_node("old")
    bought = msgspec.structs.replace(ready_claim(owned_node("new")), replaces=("old",))
    moves = (make_move("default/a", "old", "new"),)
    proposal = Proposal(ProposalReason.EXPIRED, moves, releases=(Release("old", "old"),), is_second_half=is_second_half)
    snapshot = make_snapshot([old], (), claims=(ready_claim(old), bought))
    assert [each.kind for each in questions_of(Plan(NOW, proposals=(proposal,)), snapshot)] == asked


def second_half(*leaving: Pod) -> tuple[Plan, ClusterSnapshot]:
    """What was bought 140 s ago to take over from a node is Ready, and its pods would go there."""
    old = owned_node("old")
    bought = msgspec.structs.replace(ready_claim(owned_node("new")), replaces=("old",), created_at=NOW - 140)
    moves = tuple(
        Move(pod.key, pod.uid, "old", "new", MigrationMethod.EVICT, MoveReason.NODE_DRAINED) for pod in leaving
    )
    proposal = Proposal(ProposalReason.CONSOLIDATED, moves, releases=(Release("old", "old"),), is_second_half=True)
    return Plan(NOW, proposals=(proposal,)), make_snapshot([old], leaving, claims=(ready_claim(old), bought))


WAS_THERE, CAME = running(make_job("was-there"), "old", 300.0), running(make_job("came"), "old", 100.0)


@pytest.mark.parametrize(
    ("leaving", "asked"),
    [
        pytest.param([WAS_THERE], [], id="who was there when it was bought"),
        pytest.param([WAS_THERE, CAME], ["default/came", "default/was-there"], id="another has come since"),
        pytest.param([CAME], ["default/came"], id="another altogether"),
        pytest.param([make_job("bound", node="old")], ["default/bound"], id="one that was bound and has not begun"),
        pytest.param([make_job("binding")], ["default/binding"], id="one that is only being bound to it"),
    ],
)
def test_a_yes_to_a_replacement_is_for_no_more_pods_than_were_told(leaving: list[Pod], asked: list[str]) -> None:
    """A drain asked anew for each that came; the second half of a replacement asked nobody, whoever had come."""
    plan, snapshot = second_half(*leaving)
    questions = questions_of(plan, snapshot)
    assert [(each.kind, list(each.pods)) for each in questions] == ([(QuestionKind.DRAIN, asked)] if asked else [])


def test_who_came_while_the_replacement_started_leaves_by_a_yes_of_its_own() -> None:
    approvals = Approvals(Approval(3600.0, Otherwise.REJECT, 14400.0), lambda: NOW)
    plan, snapshot = second_half(WAS_THERE, CAME)
    left, told = approvals.gate(plan, snapshot, "USD")
    assert (left.proposals, [outcome.action for outcome in told]) == ((), [Action.PROPOSE])
    assert "pending approval: drain old: 2 pods leave" in told[0].message
    approvals.say((), "alice", is_approved=True, currency="USD")
    assert approvals.gate(plan, snapshot, "USD")[0].proposals == plan.proposals
