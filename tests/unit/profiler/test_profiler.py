import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htas.model.flavours import Billing
from htas.model.plan import Bind, Launch, Plan
from htas.model.record import Bill, CycleRecord, Outcome, OutcomeStatus, ProfileEvent
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.profiler import accounts
from htas.profiler.compare import differences
from htas.profiler.history import entries
from htas.profiler.rows import profile_rows
from tests.builders import NOW, make_job, make_node, make_policy, make_snapshot, running

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


@given(bills)
def test_every_split_sums_to_the_total(some: list[Bill]) -> None:
    billing, now = Billing(), 1.7e9 + 7e5
    total = sum(accounts.nano_seconds(bill, billing, now) for bill in some)
    assert sum(accounts.by_day(some, billing, now).values()) == total
    assert sum(accounts.by(lambda bill: bill.group, some, billing, now).values()) == total
    assert sum(accounts.by(lambda bill: bill.flavour, some, billing, now).values()) == total


def test_history_tells_what_and_why() -> None:
    made = Plan(NOW, launch=(Launch("c", "g", "m1.large", None, 274_600_000, ("default/a", "default/b")),))
    outcomes = (
        Outcome("launch", "c", OutcomeStatus.DONE, "m1.large for group g"),
        Outcome("bind", "default/z", OutcomeStatus.FAILED, "gone"),
    )
    record = CycleRecord(7, NOW, ("scheduling",), ClusterSnapshot(NOW, ClusterView()), made, outcomes)
    told = list(entries([record]))
    assert [(e.cycle, e.verb, e.why) for e in told] == [
        (7, "launch", "m1.large at 0.2746 USD/h for 2 pods"),
        (7, "bind", "gone"),
    ]
    assert [e.verb for e in entries([record], "bind")] == ["bind"]


def test_differences_between_plans() -> None:
    one = Plan(NOW, bind=(Bind("a", "n"), Bind("b", "n")))
    assert differences(one, one) == []
    other = Plan(NOW, bind=(Bind("a", "m"), Bind("b", "n")))
    assert differences(one, other) == [
        'bind: recorded only: {"pod":"a","node":"n"}',
        'bind: now only: {"pod":"a","node":"m"}',
    ]
