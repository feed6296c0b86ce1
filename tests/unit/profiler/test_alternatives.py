"""What the same work would have cost on machines of one flavour."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.billing import Billing
from htas.model.flavours import Catalogue
from htas.model.packing import Packing, PackingAlgorithm, Scoring, ScoringStrategy
from htas.model.pods import WorkKind
from htas.model.policy import CleaningRules, EmptyRelease, NodeGroup
from htas.model.record import Bill
from htas.model.resources import Resources
from htas.profiler import accounts
from htas.profiler.alternatives import Terms, at_least, fixed_peak, single_flavour, too_large_for
from htas.profiler.recorded_work import RecordedWork, Work
from tests.builders import make_flavour, make_policy

GIB = 2**30
SMALL = make_flavour("small", "2", "4Gi", "0.10")
BY_SECOND = Billing(1, 1)
AT_ONCE = CleaningRules(empty_release=EmptyRelease.AT_ONCE)


def job(name: str, at: float, runs_s: float, cpu_m: int = 1000, memory: int = GIB, **fields: object) -> Work:
    asked = Resources(cpu_m, memory, pods=1)
    return msgspec.structs.replace(Work(name, "any", WorkKind.BATCH, asked, at, runs_s), **fields)


def service(name: str, at: float, until: float, cpu_m: int = 1000, memory: int = GIB, **fields: object) -> Work:
    return job(name, at, math.inf, cpu_m, memory, kind=WorkKind.SERVICE, ends_at=until, **fields)


def terms(group: NodeGroup, start_s: float = 0.0, until: float = 10_000.0, billing: Billing = BY_SECOND) -> Terms:
    policy = make_policy([group])
    policy = msgspec.structs.replace(policy, catalogue=Catalogue((SMALL,), billing=billing))
    return Terms(policy, 0.0, until, start_s, release_s=10.0)


def any_group(cleaning: CleaningRules = AT_ONCE, **fields: object) -> NodeGroup:
    return msgspec.structs.replace(NodeGroup("any", cleaning=cleaning), **fields)


Spans = list[tuple[float, float | None]]


def spans(work: list[Work], of: Terms, daemons: Resources | None = None) -> Spans:
    recorded = RecordedWork(work, {"any": daemons} if daemons is not None else {})
    return in_order(single_flavour(recorded, SMALL, of).bills)


def in_order(bills: Iterable[Bill]) -> Spans:
    found = [(bill.started_at, bill.ended_at) for bill in bills]
    return sorted(found, key=lambda span: (span[0], math.inf if span[1] is None else span[1]))


@pytest.mark.parametrize(
    ("work", "moving", "fixed"),
    [
        pytest.param([], [], [], id="no work, no machine"),
        pytest.param([job("a", 0, 60), job("b", 10, 80)], [(0, 90)], [(0, 90)], id="two that fit together: one machine, until both are gone"),
        pytest.param([job("a", 0, 60), job("b", 0, 60), job("c", 30, 60)], [(0, 60), (30, 90)], [(0, 90), (0, 90)], id="a third needs another, which the peak keeps all the time"),
        pytest.param([job("a", 0, 60), job("b", 60, 30)], [(0, 90)], [(0, 90)], id="one ends as the other comes: the same machine"),
        pytest.param([job("a", 0, 60), job("b", 61, 29)], [(0, 60), (61, 90)], [(0, 90)], id="one a second after the other: two machines, never at once"),
        pytest.param([job("a", 0, 60, memory=3 * GIB), job("b", 0, 60, memory=3 * GIB)], [(0, 60), (0, 60)], [(0, 60), (0, 60)], id="memory counts as CPU does"),
        pytest.param([service("a", 5, 5)], [], [], id="what took no time took no room"),
        pytest.param([service("a", 5, 50), service("b", 20, math.inf)], [(5, None)], [(5, None)], id="a service that still runs has an open bill"),
    ],
)  # fmt: skip
def test_machines_come_and_go_with_the_work(work: list[Work], moving: Spans, fixed: Spans) -> None:
    of = terms(any_group())
    assert spans(work, of) == moving
    played = single_flavour(RecordedWork(work, {}), SMALL, of)
    assert in_order(fixed_peak(played, SMALL, of)) == fixed


@pytest.mark.parametrize(
    ("work", "want", "wait_s"),
    [
        pytest.param([job("a", 100, 50)], [(100, 210)], 60, id="a machine takes 60 s to start, which is paid and waited for"),
        pytest.param([job("a", 0, 100), job("b", 30, 100)], [(0, 160)], 45, id="a second job waits for the machine to come"),
        pytest.param([service("a", 0, 100), service("b", 101, 140, cpu_m=2000)], [(0, 100), (101, 161)], 60, id="a service ends when it did: its machine comes too late"),
        pytest.param([job("a", 0, 100, was_running=True), job("b", 0, 30, cpu_m=500)], [(0, 100)], 0, id="what ran already when the record begins has its machine"),
        pytest.param([job("a", 0, 40, 2000, was_running=True), job("b", 20, 100, 1500)], [(0, 140), (20, 80)], 20, id="room that frees before the new machine comes is taken"),
    ],
)  # fmt: skip
def test_machines_take_as_long_to_start_as_they_did(work: list[Work], want: Spans, wait_s: float) -> None:
    of = terms(any_group(), start_s=60.0)
    played = single_flavour(RecordedWork(work, {}), SMALL, of)
    assert in_order(played.bills) == want
    assert played.mean_wait_s == wait_s


HOURLY, BY_MINUTE = Billing(3600, 3600), Billing(60, 60)


@pytest.mark.parametrize(
    ("cleaning", "billing", "work", "want"),
    [
        pytest.param(CleaningRules(empty_for_s=600, empty_release=EmptyRelease.AT_ONCE), BY_SECOND, [job("a", 0, 60), job("b", 500, 60)], [(0, 1160)], id="kept empty for ten minutes, and used again before"),
        pytest.param(CleaningRules(), BY_MINUTE, [job("a", 0, 65)], [(0, 70)], id="by the minute: deleted two cycles and a release before the next is paid"),
        pytest.param(CleaningRules(), HOURLY, [job("a", 0, 65), job("b", 3000, 60)], [(0, 3550)], id="by the hour: what is paid for is kept, and used"),
        pytest.param(CleaningRules(release_ahead_s=300), HOURLY, [job("a", 0, 65)], [(0, 3280)], id="released as far ahead as configured"),
        pytest.param(CleaningRules(enabled=False), BY_SECOND, [job("a", 0, 65)], [(0, None)], id="a group that is not cleaned keeps its machines"),
        pytest.param(CleaningRules(empty_release=EmptyRelease.AT_ONCE, delay_after_launch_s=900), BY_SECOND, [job("a", 0, 65)], [(0, 900)], id="a young machine is not deleted"),
    ],
)  # fmt: skip
def test_empty_machines_go_by_their_groups_rule(
    cleaning: CleaningRules, billing: Billing, work: list[Work], want: Spans
) -> None:
    assert spans(work, terms(any_group(cleaning), billing=billing)) == want


def test_a_group_keeps_its_least_number_of_machines() -> None:
    assert spans([job("a", 0, 60), job("b", 0, 90, cpu_m=2000)], terms(any_group(min_nodes=1))) == [(0, 60), (0, None)]


def test_groups_do_not_share_machines() -> None:
    work = [job("a", 0, 60), job("b", 0, 60, group="other")]
    assert spans(work, terms(any_group())) == [(0, 60), (0, 60)]


def test_each_machine_carries_its_daemon_sets() -> None:
    agent = Resources(500, GIB, pods=1)
    work = [job("a", 0, 60), job("b", 0, 60)]
    assert spans(work, terms(any_group())) == [(0, 60)]
    assert spans(work, terms(any_group()), agent) == [(0, 60), (0, 60)]


ON_THE_FULLEST, ON_THE_LASTING = [(0, 500), (0, 1000)], [(0, 100), (0, 1000)]


@pytest.mark.parametrize(
    ("packing", "want"),
    [
        pytest.param(Packing(PackingAlgorithm.BFD), ON_THE_FULLEST, id="best fit: the fullest machine"),
        pytest.param(Packing(PackingAlgorithm.TIME_BIN_BFD), ON_THE_LASTING, id="time bins: the machine that stays as long anyway"),
        pytest.param(Packing(PackingAlgorithm.SCORED, Scoring(ScoringStrategy.LEAST_ALLOCATED)), ON_THE_LASTING, id="spread: the emptiest machine"),
        pytest.param(Packing(PackingAlgorithm.SCORED, Scoring(ScoringStrategy.MOST_ALLOCATED)), ON_THE_FULLEST, id="kube-scheduler's bin packing: the fullest machine"),
    ],
)  # fmt: skip
def test_pods_are_placed_by_their_groups_order(packing: Packing, want: Spans) -> None:
    """One machine has 1.5 GiB free and ends at 100, another 2.5 GiB free and ends at 1000; 1 GiB until 500 comes."""
    fuller, lasting = job("a", 0, 100, 1200, 5 * GIB // 2), job("b", 0, 1000, 1100, 3 * GIB // 2)
    assert spans([fuller, lasting, job("c", 50, 450, 100)], terms(any_group(packing=packing))) == want


def test_work_that_no_machine_of_the_flavour_holds_is_named() -> None:
    big, gpu = job("ns/big", 0, 1, cpu_m=3000), job("ns/gpu", 0, 1)
    gpu = msgspec.structs.replace(gpu, requests=Resources(1, 1, pods=1, extended=(("nvidia.com/gpu", 1),)))
    recorded = RecordedWork([big, job("ns/small", 0, 1), gpu], {})
    assert [work.name for work in too_large_for(recorded, SMALL, terms(any_group()))] == ["ns/big", "ns/gpu"]


works = st.lists(
    st.tuples(st.integers(0, 500), st.integers(1, 500), st.integers(1, 2000), st.booleans()), min_size=1, max_size=25
)


@settings(max_examples=60, derandomize=True)
@given(works, st.sampled_from([0.0, 60.0]), st.sampled_from([BY_SECOND, BY_MINUTE, HOURLY]))
def test_what_comes_and_goes_costs_no_more_than_the_peak_and_no_less_than_fluid_work(
    found: list[tuple[int, int, int, bool]], start_s: float, billing: Billing
) -> None:
    work = [
        job(str(i), start, length, cpu_m) if is_job else service(str(i), start, start + length, cpu_m)
        for i, (start, length, cpu_m, is_job) in enumerate(found)
    ]
    of = terms(any_group(CleaningRules()), start_s, billing=billing)
    recorded = RecordedWork(sorted(work, key=lambda each: each.arrives_at), {})
    played = single_flavour(recorded, SMALL, of)
    billed = accounts.total(played.bills, billing, of.until)
    assert at_least(recorded, SMALL, of) <= billed
    assert accounts.total(played.bills, BY_SECOND, of.until) <= accounts.total(
        fixed_peak(played, SMALL, of), BY_SECOND, of.until
    )
    assert played == single_flavour(recorded, SMALL, of)
    assert played.mean_wait_s is not None and played.mean_wait_s <= start_s
