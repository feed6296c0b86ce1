"""`htas demo`: a day of mixed work, or a real trace, played in the sandbox in front of your eyes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.live import Live

from htas.adapters.sqlite.store import SqliteStore
from htas.cli.console import out
from htas.cli.demo_state import DemoState
from htas.cli.demo_view import demo_view, plain_line, summary_view
from htas.config.loader import Loaded, load_catalogue, load_configuration
from htas.config.places import config_file
from htas.config.sandbox import SandboxSetting
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.documents.alternatives import Alternative, alternative
from htas.documents.books import books_of
from htas.execution.ports import Ports
from htas.model.moves import MigrationMethod
from htas.model.packing import Packing, PackingAlgorithm
from htas.model.policy import CleaningRules, NodeGroup, Policy, Workload
from htas.ports import GivenError, StorePort
from htas.profiler.accounts import ALWAYS
from htas.sandbox.workloads import openb
from htas.sandbox.workloads.day import day
from htas.sandbox.world import World

DAY_H = 24.0
FRAMES_PER_S = 8
STEP_S = 60.0
"""Virtual time between two looks at the clock of the wall."""
TRACE_TAIL_S = 86_400.0
"""After the last task could have ended: one that waited, and was moved a dozen times, ends hours later."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    config: Path | None
    trace: Path | None
    sample: bool
    seed: int
    hours: float | None
    """How much to play; None: the day of 24 hours, or the whole trace."""
    seconds: float


def play(options: DemoOptions) -> None:
    """Play to the end and print the summary."""
    if options.trace is not None or options.sample:
        _play_trace(options)
    else:
        _play_day(options)


def _play_day(options: DemoOptions) -> None:
    loaded = load_configuration(options.config or config_file("htas.yaml"))
    length_s = (options.hours or DAY_H) * 3600
    work = day(options.seed, length_s=length_s)
    world = world_of(loaded, options.seed)
    world.load(work)
    _show(DemoState(loaded.policy, work.name, world, length_s), options.seconds)


def _play_trace(options: DemoOptions) -> None:
    path = options.trace if options.trace is not None else openb.SAMPLE
    work = openb.openb(path)
    policy = load_configuration(options.config).policy if options.config is not None else trace_policy()
    world = World(start=0.0, seed=options.seed)
    world.load(work)
    length_s = work.could_end_s + TRACE_TAIL_S
    if options.hours is not None:
        length_s = min(length_s, options.hours * 3600)
    _show(DemoState(policy, f"trace {work.name}", world, length_s), 0.0)


def trace_policy() -> Policy:
    """One batch group on the trace's own machine shapes, at prices of ours, without limits."""
    group = NodeGroup(
        name="batch",
        workload=Workload.BATCH,
        packing=Packing(PackingAlgorithm.TIME_BIN_BFD),
        cleaning=CleaningRules(migration=MigrationMethod.CHECKPOINT),
    )
    return Policy("trace", load_catalogue(config_file("flavours/openb.yaml")), (group,))


def world_of(loaded: Loaded, seed: int) -> World:
    """A sandbox as quick and as large as configured."""
    setting = loaded.sandbox or SandboxSetting()
    return World(seed=seed, startup_s=setting.startup_delay, quota=setting.quota.model())


def _show(state: DemoState, seconds: float) -> None:
    """Drive the world, on a terminal as a live view, otherwise as plain lines; then print the summary."""
    store, world, policy = SqliteStore(":memory:"), state.world, state.policy
    ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
    daemon = Daemon(ports, policy, keeps_history=False)
    daemon.listeners.append(state.saw)
    steps = _steps(VirtualDriver(world, daemon), world, state.length_s, seconds)
    if out.is_terminal:
        with Live(console=out, auto_refresh=False, screen=False) as live:
            shown = 0.0
            for _ in steps:
                if time.monotonic() - shown >= 1 / FRAMES_PER_S:
                    live.update(demo_view(state, out.width), refresh=True)
                    shown = time.monotonic()
            live.update(demo_view(state, out.width), refresh=True)
    else:
        told = -1
        for _ in steps:
            part = int(state.progress * 24)
            if part > told:
                out.print(plain_line(state), markup=False, soft_wrap=True)
                told = part
    out.print(summary_view(state, _comparison(state, store)))
    store.close()


def _comparison(state: DemoState, store: StorePort) -> Alternative | str:
    """The cheapest single flavour, as `htas cost --against homogeneous` prints it; or why it cannot be compared."""
    seen = state.result.snapshot if state.result is not None else None
    books = books_of(lambda: nullcontext(store), state.policy, ALWAYS, state.now, seen)
    try:
        return alternative(books, "homogeneous") if books.bills else ""
    except GivenError as error:
        return str(error)


def _steps(driver: VirtualDriver, world: World, length_s: float, seconds: float) -> Iterator[None]:
    """Let virtual time pass in steps, no faster than the day fits into `seconds` of real time."""
    start, began = world.clock.now(), time.monotonic()
    step_s = STEP_S if seconds else length_s / 2000
    passed = 0.0
    while passed < length_s:
        passed = min(passed + step_s, length_s)
        driver.run_until(start + passed)
        ahead = passed / length_s * seconds - (time.monotonic() - began)
        if ahead > 0:
            time.sleep(ahead)
        yield
