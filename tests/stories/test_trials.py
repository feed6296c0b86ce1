"""Trials: every contender ends all work of a small workload, and the same seed gives the same bytes."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from htas.model.billing import Billing
from htas.model.resources import Resources
from htas.sandbox.ledger import Ledger, Rental
from htas.sandbox.workload import Load, Rescale, Workload
from tests.stories.play import GIB, Story, job, service
from tools.lab.contenders import ACQUISITION_LAG_S, Contender, contenders
from tools.lab.results import RunResult
from tools.lab.trials.bill import Trial, billed_until, run
from tools.lab.trials.observing import Reckoning
from tools.lab.workloads.patterns import Pattern, Shape, workload

SMALL = Pattern("small", Shape.ON_OFF, high=8.0, low=1.0, length_s=600.0, period_s=300.0)
CONTENDERS = contenders()


def played(contender: Contender, seed: int = 1) -> RunResult:
    result, timing = run(Trial(contender, SMALL.name, workload(SMALL, seed), seed))
    assert timing.cycles > 0
    return result


@pytest.mark.parametrize("name", CONTENDERS)
def test_all_work_ends_and_nothing_is_lost(name: str) -> None:
    result = played(CONTENDERS[name])
    jobs = sum(arrival.task.runs_s is not None for arrival in workload(SMALL, 1).arrivals)
    assert (result.finished, result.lost, result.note) == (jobs, 0, "")
    assert result.cost > 0
    assert result.ended_at_s < 3600
    assert 0 < result.mean_scheduling_s <= result.p99_scheduling_s <= result.max_scheduling_s
    assert result.samples[-1].waiting == 0
    assert all(0 <= each.memory_utilization <= 1 and 0 <= each.cpu_utilization <= 1 for each in result.samples)


@pytest.mark.parametrize("name", ["htas", "coca", "stratus", "karpenter"])
def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    first, again = (msgspec.json.encode(played(contenders()[name], seed=3)) for _ in range(2))
    assert first == again


def test_who_moves_tasks_says_what_each_move_cost() -> None:
    """T = C ÷ B + K: 0.9 GiB at 150 MB a second and two seconds to end the pod are 8.4 s, and no move takes more."""
    result = played(CONTENDERS["karpenter"], seed=2)
    assert len(result.migration_s) <= result.migrations
    moved = played(CONTENDERS["stratus"], seed=2)
    assert all(2.0 <= seconds <= 8.5 + ACQUISITION_LAG_S for seconds in moved.migration_s)


def test_a_run_that_does_not_end_is_given_up_and_says_so() -> None:
    """A catalogue without machines: nothing can run. A minute of work is enough, since all of it waits for hours."""
    htas, brief = CONTENDERS["htas"], msgspec.structs.replace(SMALL, length_s=60.0)
    none = msgspec.structs.replace(htas.policy, catalogue=msgspec.structs.replace(htas.policy.catalogue, flavours=()))
    result, _ = run(Trial(replace(htas, policy=none), brief.name, workload(brief, 1), 1))
    assert (result.finished, result.bill_nano_seconds) == (0, 0)
    assert result.tasks > 0
    assert result.note.startswith("given up")


@pytest.mark.parametrize(
    ("started", "ended", "want_s"),
    [
        pytest.param(0.0, 90.0, 120, id="given back before the end: to the full minute"),
        pytest.param(0.0, None, 600, id="still runs: until the end"),
        pytest.param(0.0, 900.0, 600, id="given back after the end: until the end"),
        pytest.param(700.0, None, 0, id="bought after the end: not at all"),
    ],
)
def test_a_run_is_billed_until_its_work_has_ended(started: float, ended: float | None, want_s: int) -> None:
    ledger = Ledger(rentals=[Rental("vm", "claim", "small", 7, started, ended)])
    assert billed_until(ledger, Billing(60, 60), 600.0) == 7 * want_s


def _services_after_a_job() -> Workload:
    """A service of 1 core beside a job that has ended within 10 minutes; it grows after 40 and shrinks after 50."""
    rescales = (Rescale(2400.0, "default", "web", 3), Rescale(3000.0, "default", "web", 1))
    return Workload(
        "grows late", (service("web", 1, requests=Resources(1000, GIB, 0, 1)), job("a", runs_s=300.0)), rescales
    )


def test_a_trial_goes_on_until_its_work_changes_no_more() -> None:
    """What is rescaled after the last job's end is played, and all services are paid for until then."""
    work = _services_after_a_job()
    result, _ = run(Trial(CONTENDERS["htas"], work.name, work, 1))
    assert (work.last_change_s, result.note) == (3000.0, "")
    assert result.ended_at_s == pytest.approx(3000.0, abs=60.0)
    assert result.ended_at_s >= 3000.0
    assert result.machine_hours * 3600 > 2700
    nodes_before = max(each.nodes for each in result.samples if each.at_s < 2400)
    assert max(each.nodes for each in result.samples if each.at_s > 2400) > nodes_before


@pytest.mark.parametrize(
    ("work", "last_change_s", "could_end_s"),
    [
        pytest.param(Workload("w", (service("web", 1, at_s=20.0),)), 20.0, 20.0, id="a-service-comes"),
        pytest.param(Workload("w", (job("a", runs_s=300.0),)), 0.0, 300.0, id="a-job-ends-after-all-have-come"),
        pytest.param(_services_after_a_job(), 3000.0, 3000.0, id="a-rescale-after-the-last-jobs-end"),
        pytest.param(
            Workload("w", (service("web", 1),), loads=(Load(900.0, "default", "web", 5.0),)), 900.0, 900.0, id="a-load"
        ),
        pytest.param(Workload("w", ()), 0.0, 0.0, id="nothing"),
    ],
)
def test_when_work_changes_for_the_last_time_and_could_end(
    work: Workload, last_change_s: float, could_end_s: float
) -> None:
    assert (work.last_change_s, work.could_end_s) == (last_change_s, could_end_s)


def test_what_the_books_say_is_the_invoice_at_every_look_and_a_lost_bill_shows() -> None:
    """A bill that begins 90 s late is a minute or two short."""
    story = Story(None, job("a", runs_s=3000), job("b", runs_s=3000, cpu_m=700)).play(400)
    reckoning = Reckoning(story.world, story.daemon)
    reckoning.look()
    assert reckoning.said == reckoning.invoice > 0
    assert reckoning.off == 0
    first = next(iter(story.store.bills()))
    story.store.put_bill(msgspec.structs.replace(first, started_at=first.started_at + 90))
    reckoning.look()
    assert reckoning.off in (60 * first.nanos_per_hour, 120 * first.nanos_per_hour)


def test_a_trial_says_what_its_books_came_to() -> None:
    result = played(CONTENDERS["htas-default"])
    assert result.said_nano_seconds == result.invoice_nano_seconds >= result.bill_nano_seconds > 0
    assert result.books_off_nano_seconds == 0
