"""A trial for the bill: tasks come, machines are bought and returned, until the last has ended and nothing changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from htas.daemon.loops.cycle import CycleResult
from htas.daemon.loops.virtual import VirtualDriver
from htas.model.billing import Billing
from htas.model.nodes import Node
from htas.model.pods import Phase
from htas.sandbox.cloud import Chances
from htas.sandbox.ledger import Ledger
from htas.sandbox.workload import Workload
from htas.sandbox.world import World
from tools.lab.contenders import ACQUISITION_LAG_S, Contender
from tools.lab.results import RunResult, Sample, Timing
from tools.lab.trials.observing import Observer, Reckoning
from tools.lab.trials.sandboxed import PlanningTimes, daemon_of
from tools.lab.workloads.patterns import with_movable_services, with_pinned_jobs

SAMPLE_S, LONG_SAMPLE_S = 30.0, 3600.0
"""Between two samples; the second where work arrives or is rescaled for more than a day."""
GIVE_UP_S = 4 * 3600.0
"""So long after its last task could have ended a run is given up: something in it will never end."""
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Trial:
    """Who, on what, with which seed."""

    contender: Contender
    pattern: str
    work: Workload
    seed: int
    startup_s: float = ACQUISITION_LAG_S
    chances: Chances | None = None


def run(trial: Trial, *listeners: Callable[[CycleResult], None]) -> tuple[RunResult, Timing]:
    """Play a trial until its last batch task has ended, nothing of it is still to change and all its services run.

    Listeners are told of each cycle.
    """
    result, timing, _ = run_with_starts(trial, *listeners)
    return result, timing


def run_with_starts(
    trial: Trial, *listeners: Callable[[CycleResult], None]
) -> tuple[RunResult, Timing, tuple[tuple[str, float], ...]]:
    """The same, and when each task (namespace/name) began: a service as often as it has replicas."""
    began = time.perf_counter()
    contender, work = trial.contender, trial.work
    world = World(start=0.0, seed=trial.seed, startup_s=trial.startup_s, chances=trial.chances)
    world.load(_as_operated(work, contender))
    observer, times = Observer(), PlanningTimes()
    with daemon_of(contender, world, times.saw, observer.saw, *listeners) as driver:
        reckoning = Reckoning(world, driver.daemon)
        driver.daemon.listeners.append(reckoning.saw)
        samples, is_over = _play(driver, world, work)
        reckoning.look()
    result = _result(trial, world, observer, samples, is_over)
    result = msgspec.structs.replace(
        result,
        said_nano_seconds=reckoning.said,
        invoice_nano_seconds=reckoning.invoice,
        books_off_nano_seconds=reckoning.off,
    )
    timing = times.timing(contender, trial.pattern, trial.seed, time.perf_counter() - began)
    return result, timing, tuple(world.ledger.first_starts)


def _as_operated(work: Workload, contender: Contender) -> Workload:
    """The work with the annotations that a contender's operator would write."""
    work = with_movable_services(work) if contender.evicts_services else work
    return with_pinned_jobs(work) if contender.pins_jobs else work


def _play(driver: VirtualDriver, world: World, work: Workload) -> tuple[list[Sample], bool]:
    """Let time pass a sample at a time; whether all ended before it was given up."""
    tasks = sum(arrival.replicas for arrival in work.arrivals if arrival.task.runs_s is not None)
    samples = [_sample(world)]
    step_s = SAMPLE_S if work.last_change_s <= DAY_S else LONG_SAMPLE_S
    longest_s = max(arrival.task.runs_s or 0.0 for arrival in work.arrivals)
    give_up_s = work.could_end_s + max(GIVE_UP_S, longest_s)  # evicted just before its end, it runs again
    while world.clock.now() < give_up_s:
        driver.run_until(world.clock.now() + step_s)
        samples.append(_sample(world))
        has_all_come = world.clock.now() > work.last_change_s and not samples[-1].waiting
        if has_all_come and world.ledger.finished + world.ledger.lost >= tasks:
            return samples, True
    return samples, False


def _sample(world: World) -> Sample:
    view = world.cluster.observe()
    ready: list[Node] = [node for node in view.nodes if node.is_ready]
    running = [pod for pod in view.pods if pod.phase is Phase.RUNNING and not pod.is_daemon]
    cpu_m = sum(node.allocatable.cpu_m for node in ready)
    memory = sum(node.allocatable.memory_bytes for node in ready)
    return Sample(
        at_s=world.clock.now(),
        cpu_utilization=sum(pod.requests.cpu_m for pod in running) / cpu_m if cpu_m else 0.0,
        memory_utilization=sum(pod.requests.memory_bytes for pod in running) / memory if memory else 0.0,
        nodes=len(ready),
        machines=world.ledger.running_machines(),
        waiting=sum(pod.phase is Phase.PENDING for pod in view.pods),
    )


def _result(trial: Trial, world: World, observer: Observer, samples: list[Sample], is_over: bool) -> RunResult:
    ledger, billing = world.ledger, trial.contender.policy.catalogue.billing
    ended_at_s = _ended_at(world, trial.work) if is_over else world.clock.now()
    kept = tuple(sample for sample in samples if sample.at_s <= ended_at_s) or tuple(samples[:1])
    waits = sorted(ledger.first_waits_s)
    return RunResult(
        policy=trial.contender.name,
        pattern=trial.pattern,
        seed=trial.seed,
        bill_nano_seconds=billed_until(ledger, billing, ended_at_s),
        ended_at_s=ended_at_s,
        tasks=sum(arrival.replicas for arrival in trial.work.arrivals),
        finished=ledger.finished,
        lost=ledger.lost,
        mean_scheduling_s=sum(waits) / len(waits) if waits else 0.0,
        max_scheduling_s=waits[-1] if waits else 0.0,
        p99_scheduling_s=waits[max(0, -(-99 * len(waits) // 100) - 1)] if waits else 0.0,
        machines=sum(rental.started_at < ended_at_s for rental in ledger.rentals),
        machine_hours=sum(_held_s(rental.started_at, rental.ended_at, ended_at_s) for rental in ledger.rentals) / 3600,
        peak_nodes=max(sample.nodes for sample in kept),
        mean_cpu_utilization=sum(sample.cpu_utilization for sample in kept) / len(kept),
        mean_memory_utilization=sum(sample.memory_utilization for sample in kept) / len(kept),
        migrated_at_s=tuple(observer.migrated_at),
        migration_s=tuple(observer.migration_s),
        deprovisioned_at_s=tuple(observer.deprovisioned_at),
        emptied=observer.emptied,
        work_lost_s=ledger.work_lost_s,
        samples=kept,
        note="" if is_over else f"given up: {len(waits)} pods began, {ledger.finished} tasks ended",
    )


def _ended_at(world: World, work: Workload) -> float:
    """When the last batch task ended, the last service began to run, or the work changed for the last time."""
    view = world.cluster.observe()
    ends = [ended.at for ended in view.ended if ended.succeeded and ended.at is not None]
    starts = [pod.started_at for pod in view.pods if pod.started_at is not None]
    return max([*ends, *starts, work.last_change_s])


def billed_until(ledger: Ledger, billing: Billing, end: float) -> int:
    """The invoice had every machine that still ran been given back at an instant: price × billed seconds."""
    return sum(
        billing.bill(rental.price, rental.started_at, _held_s(rental.started_at, rental.ended_at, end))
        for rental in ledger.rentals
        if rental.started_at < end
    )


def _held_s(started_at: float, ended_at: float | None, end: float) -> float:
    return max(0.0, min(end if ended_at is None else ended_at, end) - started_at)
