"""Days in the sandbox beside the tests' stories: the demo's, the paper's patterns, a trace, the edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from htas.cli.demo import trace_policy
from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.model.policy import Policy
from htas.planning.planner import Planner, plan
from htas.sandbox.workload import Workload
from htas.sandbox.workloads.day import day
from htas.sandbox.workloads.openb import SAMPLE, openb
from htas.sandbox.world import World
from tools.corpus.recording import Recorder
from tools.lab.contenders import Contender
from tools.lab.designs import contender_of, design, on_trace
from tools.lab.edge.contenders import EdgeContender, edge_contenders
from tools.lab.trials import bill, edge
from tools.lab.trials.sandboxed import daemon_of

PAPERS = ("htas", "htas-default", "htas-mix")
EDGES = ("kubedsm", "kubedsm/mid-mig", "kubedsm/respect-d", "kubedsm/c-over-a")
SCENARIOS = ("1.1_0.4", "1.4_0.4", "1.6_0.4", "1.5_0.1", "1.5_0.5")
HOURS_S = 6 * 3600.0
TRACED_S = 48 * 3600.0
TRACED = 300
"""Tasks of the whole trace: it is played from where its machines are most in demand."""


def play(recorder: Recorder, trace: Path | None) -> None:
    """All of them, while the recorder looks; some minutes."""
    for name, playing in _days(recorder, trace):
        recorder.source = name
        print(f"{name}: {len(recorder.questions)} decisions so far", flush=True)
        playing()


def _days(recorder: Recorder, trace: Path | None) -> Iterator[tuple[str, Callable[[], object]]]:
    watched = recorder.watching(plan)
    default = load_configuration(config_file("htas.yaml")).policy
    for seed, density in ((1, 1.0), (2, 2.0), (3, 0.5)):
        work = day(seed, density, HOURS_S)
        yield f"day {seed}, density {density:g}", partial(_sandboxed, _as(watched, default), work, HOURS_S)
    yield "trace, sample", partial(_sandboxed, _as(watched, trace_policy()), openb(SAMPLE), TRACED_S)
    if trace is not None:
        whole = openb(trace)
        arrivals = sorted(whole.arrivals, key=lambda arrival: arrival.at_s)[-TRACED:]
        first_s = arrivals[0].at_s
        shifted = (msgspec.structs.replace(each, at_s=each.at_s - first_s) for each in arrivals)
        cut = msgspec.structs.replace(whole, arrivals=tuple(shifted))
        for name in PAPERS:
            contender = replace(on_trace()[name], planner=watched)
            yield f"trace, its end, {name}", partial(_sandboxed, contender, cut, TRACED_S)
    for experiment, names, sources in (
        ("paper", PAPERS, ("stable", "growing", "cycle", "on-off")),
        ("ablation", design("ablation").contenders, ("cycle",)),
    ):
        for source in design(experiment, sources=sources, seeds=[1]).sources:
            for name in names:
                contender = replace(contender_of(experiment, name), planner=watched)
                trial = bill.Trial(contender, source.name, source.workload(1), 1)
                yield f"{experiment}, {source.name}, {name}", partial(bill.run, trial)
    for source in design("edge", sources=SCENARIOS, seeds=[1]).sources:
        for name in EDGES:
            near: EdgeContender = replace(edge_contenders()[name], planner=watched)
            yield f"edge, {source.name}, {name}", partial(edge.run, near, source.name, source.workload(1), 1)


def _as(planner: Planner, policy: Policy) -> Contender:
    return Contender("corpus", "the corpus", policy, planner)


def _sandboxed(contender: Contender, work: Workload, length_s: float) -> None:
    world = World(start=0.0, seed=1)
    world.load(work)
    with daemon_of(contender, world) as driver:
        driver.run_until(length_s)
