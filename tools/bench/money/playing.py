"""One contender on one scene, and its line in the file of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.daemon.loops.cycle import CycleResult
from htas.model.flavours import Catalogue
from htas.model.policy import Limits, Policy
from htas.planning.planner import plan
from tools.bench.money.bound import least_nano_seconds
from tools.bench.money.families import families
from tools.bench.money.scenes import Scene
from tools.bench.money.switches import EVICTS, HTAS, MOVES_SERVICES, by_eviction, with_services_moved, without
from tools.lab.contenders import WELL_SET, Contender, contenders, tuned_to
from tools.lab.results import RunResult
from tools.lab.trials.bill import Trial, run

ONE = "cluster-autoscaler-one"
SHIPPED = ("cluster-autoscaler", "karpenter")
FAIR = (*WELL_SET, ONE)
"""As a good operator sets them: HTAS is held against the best of these in each family."""
CHOSEN_ON = 1
"""The seed on which the one flavour is chosen; it is not played for the table."""
MOST_CANDIDATES = 4


class Played(msgspec.Struct, frozen=True):
    """What one run came to. Bills are billionths of the currency an hour × seconds, as the ledger has them."""

    family: str
    seed: int
    contender: str
    bill: int
    bound: int
    mean_wait_s: float
    p99_wait_s: float
    work_lost_s: float
    moved: int
    machines: int
    note: str = ""
    said: int = 0
    """What `htas cost` says in the end, the invoice of the same instant, and the greatest difference on the way."""
    invoice: int = 0
    off: int = 0


def play(family: str, seed: int, contender: str, trace: Path | None = None) -> Played:
    """Play to the end of the work; raises KeyError for names that there are not."""
    result, scene = played(family, seed, contender, trace), families(trace)[family].draw(seed)
    return Played(
        family,
        seed,
        contender,
        result.bill_nano_seconds,
        least_nano_seconds(scene),
        result.mean_scheduling_s,
        result.p99_scheduling_s,
        result.work_lost_s,
        result.migrations,
        result.machines,
        result.note,
        result.said_nano_seconds,
        result.invoice_nano_seconds,
        result.books_off_nano_seconds,
    )


def played(
    family: str, seed: int, contender: str, trace: Path | None, *listeners: Callable[[CycleResult], None]
) -> RunResult:
    """One run, of whose cycles listeners are told."""
    scene = families(trace)[family].draw(seed)
    trial = trial_of(contender_of(contender, family, scene.catalogue, trace), family, scene, seed)
    return run(trial, *listeners)[0]


def trial_of(contender: Contender, family: str, scene: Scene, seed: int) -> Trial:
    return Trial(contender, family, scene.work, seed, scene.startup_s, scene.chances)


def contender_of(name: str, family: str, catalogue: Catalogue, trace: Path | None) -> Contender:
    if name == HTAS:
        return Contender(HTAS, "HTAS, as shipped", as_shipped(catalogue), plan)
    if name == MOVES_SERVICES:
        return Contender(name, "HTAS, moving services", with_services_moved(as_shipped(catalogue)), plan)
    if name == EVICTS:
        return Contender(name, "HTAS, evicting jobs", by_eviction(as_shipped(catalogue)), plan)
    if name.startswith(HTAS):
        return Contender(name, name, without(name, as_shipped(catalogue)), plan)
    if name == ONE:
        return tuned_to(catalogue, _chosen_flavour(family, trace))
    return contenders(catalogue)[name]


def as_shipped(catalogue: Catalogue) -> Policy:
    """`config/htas.yaml` with a scene's prices, and without the limits that are each user's own."""
    policy = load_configuration(config_file("htas.yaml")).policy
    groups = tuple(msgspec.structs.replace(group, limits=Limits(), min_nodes=0) for group in policy.groups)
    return msgspec.structs.replace(policy, catalogue=catalogue, groups=groups, limits=Limits())


@cache
def _chosen_flavour(family: str, trace: Path | None) -> str:
    """The flavour with which Cluster Autoscaler is cheapest on a seed of the family that is not in the table.

    Of all that hold each task alone those are tried that cost least for what the work asks for together.
    """
    scene = families(trace)[family].draw(CHOSEN_ON)
    asked = [each.task.requests for each in scene.work.arrivals]
    able = [each for each in scene.catalogue.flavours if all(one.fits_in(each.allocatable) for one in asked)]
    if not able:
        raise NoFlavourError(f"{family}: no flavour holds every task alone")
    cpu_m, memory = sum(each.cpu_m for each in asked), sum(each.memory_bytes for each in asked)
    worth: Mapping[str, float] = {
        each.name: each.nanos_per_hour * max(cpu_m / each.allocatable.cpu_m, memory / each.allocatable.memory_bytes)
        for each in able
    }
    candidates = sorted(worth, key=lambda name: (worth[name], name))[:MOST_CANDIDATES]
    results = {name: run(trial_of(tuned_to(scene.catalogue, name), family, scene, CHOSEN_ON))[0] for name in candidates}
    bills = {name: result.bill_nano_seconds for name, result in results.items() if not result.note}
    if not bills:
        raise NoFlavourError(f"{family}: with one flavour ({', '.join(candidates)}) the work does not end")
    return min(bills, key=lambda name: (bills[name], name))


class NoFlavourError(Exception):
    """One flavour cannot do: with GPUs of several models no machine holds all tasks."""
