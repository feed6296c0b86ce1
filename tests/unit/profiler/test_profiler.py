from decimal import Decimal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.billing import Billing
from htas.model.money import bill_amount
from htas.model.moves import MigrationMethod
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Bind, Cost, Plan, UnplacedPod
from htas.model.pods import Pod
from htas.model.proposals import Launch, Proposal, Release
from htas.model.reasons import ProposalReason, Unplaced
from htas.model.record import Bill, CycleRecord, ProfileEvent
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory
from htas.profiler import accounts
from htas.profiler.compare import differences
from htas.profiler.history import entries
from htas.profiler.rows import profile_rows
from tests.builders import NOW, make_job, make_move, make_node, make_policy, make_snapshot, running

POLICY = make_policy()


def rows(before: ClusterSnapshot | None, after: ClusterSnapshot) -> list[tuple[str, str]]:
    return [(row.event.value, row.instance_name) for row in profile_rows(before, after, POLICY)]


A, B = make_node("a"), make_node("b")
JOB = running(make_job("j", 100), "a", 30)


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param(([], []), ([A], []), [("provisioning", "a")], id="a node comes"),
        pytest.param(([A], []), ([], []), [("deprovisioning", "a")], id="a node goes"),
        pytest.param(([A], []), ([A], [JOB]), [("deployment", "a")], id="a task is deployed"),
        pytest.param(([A], [JOB]), ([A], []), [("termination", "a")], id="a task ends"),
        pytest.param(
            ([A, B], [JOB]),
            ([A, B], [msgspec.structs.replace(JOB, node="b")]),
            [("termination", "a"), ("rescheduling", "b")],
            id="a task moves: it leaves one node and comes to another",
        ),
        pytest.param(([A], [JOB]), ([A], [JOB]), [], id="nothing happens"),
    ],
)
def test_the_five_events(before: tuple, after: tuple, want: list[tuple[str, str]]) -> None:  # type: ignore[type-arg]
    assert rows(make_snapshot(*before), make_snapshot(*after)) == want


TWIN = running(make_job("j-m0", 100, uid="twin", twin_of=JOB.uid, is_moved=True), "b", 1)
UNDER_WAY = msgspec.structs.replace(JOB, is_moved=True)
SETTLED = msgspec.structs.replace(TWIN, twin_of="")
UNTOLD = msgspec.structs.replace(SETTLED, is_moved=False)
"""Settled by a process that knew nothing of the move: no annotation tells of it."""
DEPLOYED = [("provisioning", "a"), ("deployment", "a"), ("provisioning", "b")]
MOVED = [("termination", "a"), ("rescheduling", "b")]


@pytest.mark.parametrize(
    ("seen", "want"),
    [
        pytest.param([[JOB], [UNDER_WAY, TWIN], [TWIN], [SETTLED]], [DEPLOYED, [], MOVED[:1], MOVED[1:]], id="step by step: the source goes, then its twin has the place"),
        pytest.param([[JOB], [UNDER_WAY, TWIN], [SETTLED]], [DEPLOYED, [], MOVED], id="both at once"),
        pytest.param([[JOB], [SETTLED]], [DEPLOYED, MOVED], id="all of it between two cycles"),
        pytest.param([[UNDER_WAY, TWIN], [UNTOLD]], [DEPLOYED, MOVED], id="seen as a twin, then without any mark"),
        pytest.param([[JOB], [UNDER_WAY, TWIN], [JOB]], [DEPLOYED, [], []], id="taken back: there is no event"),
        pytest.param([[JOB], [UNDER_WAY, TWIN], [TWIN], []], [DEPLOYED, [], MOVED[:1], []], id="its source ends, and the twin goes without having had the place"),
        pytest.param([[SETTLED]], [[("provisioning", "a"), ("provisioning", "b"), ("deployment", "b")]], id="nothing is known of before: all is new"),
    ],
)  # fmt: skip
def test_the_events_of_a_move_by_a_twin(seen: list[list[Pod]], want: list[list[tuple[str, str]]]) -> None:
    before, told = None, []
    for pods in seen:
        after = make_snapshot([A, B], pods)
        told.append(rows(before, after))
        before = after
    assert told == want


def test_a_pod_whose_move_begins_in_the_cycle_that_sees_it_first_was_deployed() -> None:
    leaving = (make_move(JOB.key, "a", "b", MigrationMethod.KUBELET_CHECKPOINT),)
    after = msgspec.structs.replace(make_snapshot([A, B], [UNDER_WAY]), moves=leaving)
    assert rows(make_snapshot([A, B], []), after) == [("deployment", "a")]


def test_a_twin_takes_room_before_it_is_an_event() -> None:
    (row,) = profile_rows(make_snapshot([A], []), make_snapshot([A, B], [TWIN]), POLICY)
    assert (row.event, row.instance_name, row.cpuavailable) == (ProfileEvent.PROVISIONING, "b", 3900)


def test_a_row_is_the_papers_table_3() -> None:
    row = profile_rows(make_snapshot([A], []), make_snapshot([A], [JOB]), POLICY)[0]
    assert (row.event, row.runtime) == (ProfileEvent.DEPLOYMENT, 70)
    assert (row.cpucapacity, row.cpuavailable) == (4000, 3900)
    assert (row.ramcapacity - row.ramavailable) == 128 * 2**20


bills = st.lists(
    st.builds(
        Bill,
        claim=st.uuids().map(str),
        group=st.sampled_from(["a", "b"]),
        flavour=st.sampled_from(["x", "y"]),
        nanos_per_hour=st.integers(0, 10**9),
        started_at=st.floats(1.7e9, 1.7e9 + 3e5),
        ended_at=st.one_of(st.none(), st.floats(1.7e9 + 3e5, 1.7e9 + 6e5)),
    ),
    max_size=8,
)


billings = st.builds(Billing, st.sampled_from([1, 60, 3600]), st.sampled_from([0, 60, 600]))


@settings(max_examples=50, derandomize=True)
@given(bills, billings)
def test_every_split_sums_to_the_total(some: list[Bill], billing: Billing) -> None:
    now = 1.7e9 + 7e5
    total = accounts.total(some, billing, now)
    assert sum(accounts.by_day(some, billing, now).values()) == total
    assert sum(accounts.by(lambda bill: bill.group, some, billing, now).values()) == total
    assert sum(accounts.by(lambda bill: bill.flavour, some, billing, now).values()) == total


@settings(max_examples=50, derandomize=True)
@given(bills, billings, st.floats(1.7e9, 1.7e9 + 7e5))
def test_two_windows_that_follow_one_another_hold_every_billed_second(
    some: list[Bill], billing: Billing, cut: float
) -> None:
    now = 1.7e9 + 7e5
    before, after = accounts.Window(until=cut), accounts.Window(since=cut)
    parts = [accounts.total(some, billing, now, window) for window in (before, after)]
    assert sum(parts) == accounts.total(some, billing, now)
    assert parts[1] == sum(accounts.by_day(some, billing, now, after).values())


CENTS = 10_000_000
HOUR = 3600.0
MIDNIGHT = 1_700_006_400.0  # 2023-11-15


@pytest.mark.parametrize(
    ("started_at", "ended_at", "days"),
    [
        pytest.param(MIDNIGHT - 60, MIDNIGHT, {"2023-11-14": 60}, id="the last minute of a day is that day's"),
        pytest.param(MIDNIGHT - 30, MIDNIGHT - 10, {"2023-11-14": 30, "2023-11-15": 30}, id="what rounding adds may fall into the next day"),
        pytest.param(MIDNIGHT - 90, None, {"2023-11-14": 90, "2023-11-15": 86_400, "2023-11-16": 30}, id="a machine that runs is billed up to now"),
    ],
)  # fmt: skip
def test_days_of_a_bill(started_at: float, ended_at: float | None, days: dict[str, int]) -> None:
    bill = Bill("c", "g", "f", 1, started_at, ended_at)
    assert accounts.by_day([bill], Billing(), MIDNIGHT + 86_400 + 20) == days


def test_savings_against_one_fixed_machine() -> None:
    rented = [Bill("c1", "g", "small", 4 * CENTS, 0.0, HOUR), Bill("c2", "g", "small", 4 * CENTS, 3 * HOUR)]
    fixed = [Bill("fixed", "", "large", 8 * CENTS, 0.0)]
    saved = accounts.total(fixed, Billing(), 4 * HOUR) - accounts.total(rented, Billing(), 4 * HOUR)
    assert bill_amount(saved) == Decimal("0.24")
    assert accounts.nanos_per_hour(rented) == 4 * CENTS


def test_history_tells_what_and_why() -> None:
    price = 274_600_000
    made = Plan(
        NOW,
        launch=(
            Launch("c", "g", "m1.large", None, price, ("default/a", "default/b")),
            Launch("d", "g", "m1.large", None, price, ("default/c",)),
            Launch("e", "g", "m1.large", None, price, (), "for the minimum of group g"),
            Launch("f", "g", "m1.large", None, price, ("default/d",)),
        ),
        proposals=(Proposal(ProposalReason.EMPTY, releases=(Release("n1", "c1"),), value=137_100_000),),
    )
    outcomes = (
        *(Outcome(Action.LAUNCH, name, OutcomeStatus.DONE, "m1.large for group g") for name in "cde"),
        Outcome(Action.LAUNCH, "f", OutcomeStatus.FAILED, "out of stock"),
        Outcome(Action.DRAIN, "n1", OutcomeStatus.DONE),
        Outcome(Action.BIND, "default/z", OutcomeStatus.FAILED, "gone"),
    )
    record = CycleRecord(7, NOW, ("scheduling",), ClusterSnapshot(NOW, ClusterView()), made, outcomes)
    told = list(entries([record]))
    assert [(e.cycle, e.verb, e.subject, e.why, e.nanos_per_hour) for e in told] == [
        (7, "launch", "c", "m1.large at 0.2746 USD/h for 2 pods", price),
        (7, "launch", "d", "m1.large at 0.2746 USD/h for 1 pod", price),
        (7, "launch", "e", "m1.large at 0.2746 USD/h for the minimum of group g", price),
        (7, "launch", "f", "out of stock", None),
        (7, "drain", "n1", "Empty, saves 0.1371 USD/h", 137_100_000),
        (7, "bind", "default/z", "gone", None),
    ]
    assert [e.verb for e in entries([record], "bind")] == ["bind"]
    later = msgspec.structs.replace(record, id=8, at=NOW + 1)
    assert {e.cycle for e in entries([record, later], since=NOW + 1)} == {8}


def test_history_knows_what_a_late_answer_was_to() -> None:
    made = Plan(NOW, launch=(Launch("c", "g", "m1.large", None, 274_600_000, ("default/a",)),))
    asked = CycleRecord(1, NOW, ("scheduling",), ClusterSnapshot(NOW, ClusterView()), made)
    answer = (Outcome(Action.LAUNCH, "c", OutcomeStatus.DONE, "m1.large for group g"),)
    answered = CycleRecord(2, NOW + 3, ("scheduling",), ClusterSnapshot(NOW + 3, ClusterView()), Plan(NOW + 3), answer)
    (entry,) = entries([asked, answered], since=NOW + 1)
    assert (entry.cycle, entry.why) == (2, "m1.large at 0.2746 USD/h for 1 pod")


AN, BN, AM = Bind("a", "n"), Bind("b", "n"), Bind("a", "m")


@pytest.mark.parametrize(
    ("recorded", "again", "want"),
    [
        pytest.param(Plan(NOW, bind=(AN, BN)), Plan(NOW, bind=(AN, BN)), [], id="equal plans"),
        pytest.param(Plan(NOW, bind=(AN, BN)), Plan(NOW, bind=(AM, BN)), ['bind: recorded only: {"pod":"a","node":"n"}', 'bind: now only: {"pod":"a","node":"m"}'], id="a pod goes elsewhere"),
        pytest.param(Plan(NOW, bind=(AN, BN)), Plan(NOW, bind=(BN, AN)), ["bind: another order"], id="the same in another order"),
        pytest.param(Plan(NOW, bind=(AN, AN)), Plan(NOW, bind=(AN,)), ['bind: recorded only: {"pod":"a","node":"n"}'], id="once instead of twice"),
        pytest.param(
            Plan(NOW, memory=Memory(queue_empty_since=1.0)),
            Plan(NOW, cost=Cost(after_nanos=5), memory=Memory(queue_empty_since=2.0)),
            [
                'cost: recorded {"currency":"USD","before_nanos":0,"after_nanos":0,"beside_nanos":0}, now {"currency":"USD","before_nanos":0,"after_nanos":5,"beside_nanos":0}',
                'memory: recorded {"underutilized_since":{},"empty_since":{},"queue_empty_since":1.0,"reservations":{},"consolidated_at":{},"cleaned_at":null,"room_made":{},"states_costs":[],"launches":{},"lapses":{}}, now {"underutilized_since":{},"empty_since":{},"queue_empty_since":2.0,"reservations":{},"consolidated_at":{},"cleaned_at":null,"room_made":{},"states_costs":[],"launches":{},"lapses":{}}',
            ],
            id="what the plan remembers comes last",
        ),
        pytest.param(
            Plan(NOW, unplaced=(UnplacedPod("a", Unplaced.NO_FLAVOUR_FITS, "", {"x": 1, "y": 2}),)),
            Plan(NOW, unplaced=(UnplacedPod("a", Unplaced.NO_FLAVOUR_FITS, "", {"y": 2, "x": 1}),), bind=(AN,)),
            ['bind: now only: {"pod":"a","node":"n"}'],
            id="the order of counts is no difference",
        ),
    ],
)  # fmt: skip
def test_differences_between_plans(recorded: Plan, again: Plan, want: list[str]) -> None:
    assert differences(recorded, again) == want
