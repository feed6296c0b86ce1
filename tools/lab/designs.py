"""What is played against what: the paper's comparison, the ablation of HTAS, the trace, and the edge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from htas.config.loader import load_catalogue
from htas.config.places import config_file
from htas.model.flavours import Catalogue
from htas.model.packing import Packing, PackingAlgorithm
from htas.model.policy import Consolidation, NodeGroup, Policy
from htas.ports import GivenError
from htas.sandbox.workload import Workload
from htas.sandbox.workloads import openb
from tools.lab.contenders import (
    AS_PRINTED,
    HTAS,
    HTAS_DEFAULT,
    HTAS_DEFAULT_MIX,
    HTAS_MIX,
    WELL_SET,
    Contender,
    contenders,
    with_cheapest_mix,
)
from tools.lab.edge.contenders import edge_contenders
from tools.lab.edge.results import EDGE
from tools.lab.edge.scenarios import SCENARIOS, ScenarioSource
from tools.lab.edge.scenarios import SEEDS as EDGE_SEEDS
from tools.lab.workloads import patterns, table

PAPER, ABLATION, TRACE = "paper", "ablation", "trace"
SEEDS = 10
"""Repetitions, unless told otherwise; of the edge there are as many as its document's goals ask for."""


class DesignError(GivenError):
    """An experiment that cannot be played."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a workload comes from: one of the paper's patterns, a table of one's own, or a trace."""

    name: str
    path: Path | None = None
    is_trace: bool = False

    def workload(self, seed: int) -> Workload:
        """The tasks. Those of a table or a trace are the same with every seed."""
        if self.path is None:
            return patterns.workload(patterns.named(self.name), seed)
        return openb.openb(self.path) if self.is_trace else table.read_workload(self.path)


@dataclass(frozen=True, slots=True)
class Design:
    """An experiment: its contenders by name, made anew in every process, and its workloads."""

    name: str
    contenders: tuple[str, ...]
    sources: tuple[Source | ScenarioSource, ...]
    seeds: tuple[int, ...]
    prices: Path | None = None
    """A price file in the place of the paper's."""

    @property
    def runs(self) -> int:
        return len(self.contenders) * len(self.sources) * len(self.seeds)


def design(
    name: str,
    *,
    policies: Iterable[str] = (),
    sources: Iterable[str] = (),
    seeds: Sequence[int] = (),
    path: Path | None = None,
    prices: Path | None = None,
) -> Design:
    """A design by its name, or a part of it; raises DesignError with what there is to choose from.

    Without `policies` all play but those that are `on_request`. `path` is a workload to play in the place of the
    patterns: a table (`python -m tools.lab workload`), or for `trace` an openb pod list, by default the small part of
    it that comes with HTAS. `prices` is a price file for the paper's flavours, of the paper's experiment and its
    ablation.
    """
    if name not in _MAKERS:
        raise DesignError(f"no experiment {name!r}; there are {', '.join(_MAKERS)}")
    there, named = _MAKERS[name](), on_request(name)
    chosen = _chosen("policy", tuple(policies) or (each for each in there if each not in named), there)
    sources = tuple(sources)
    if name == EDGE:
        if prices is not None:
            raise DesignError("prices: nothing is launched for the edge; leave them out")
        if path is not None:
            raise DesignError(f"workload {path}: the edge's scenarios are drawn; leave it out, or name a --pattern")
        drawn = map(ScenarioSource, _chosen("pattern", sources, SCENARIOS))
        return Design(name, chosen, tuple(drawn), tuple(seeds) or tuple(range(1, EDGE_SEEDS + 1)))
    seeds = tuple(seeds) or tuple(range(1, SEEDS + 1))
    if prices is not None and name == TRACE:
        raise DesignError("prices: the trace has flavours of its own, with its models of GPU; leave them out")
    if sources and (name == TRACE or path is not None):
        played = "the trace" if name == TRACE else path
        raise DesignError(f"pattern {', '.join(sources)}: has no effect where {played} is played; leave it out")
    if name == TRACE:
        file = path if path is not None else openb.SAMPLE
        return Design(name, chosen, (Source(file.name, file, is_trace=True),), (1,))
    if path is not None:
        return Design(name, chosen, (Source(path.stem, path),), seeds, prices)
    names = _chosen("pattern", sources, {pattern.name: None for pattern in patterns.PAPER})
    return Design(name, chosen, tuple(map(Source, names)), seeds, prices)


def on_request(name: str) -> tuple[str, ...]:
    """The policies of an experiment that play only where they are named.

    Of the paper's patterns those with the cheapest mix: purchases there are of a pod or two, for which the greedy buys
    the same. They took a quarter of the time, and the ablation has that comparison (`htas/cheapest-mix`). Neither do
    other readings of what the paper prints (docs/paper/as-printed.md). Baselines as a good operator sets them play in
    `tools.bench.money`, over more than the paper's patterns.
    """
    otherwise = (each for each in contenders() if each.startswith(f"{AS_PRINTED}/"))
    more = (HTAS_MIX, HTAS_DEFAULT_MIX, *otherwise) if name == PAPER else ()
    return (*more, *WELL_SET) if name in (PAPER, TRACE) else ()


def _chosen(what: str, wanted: Iterable[str], there: Mapping[str, object]) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(wanted)) or tuple(there)  # named twice it is still played once
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise DesignError(f"no {what} {', '.join(unknown)}; there are {', '.join(there)}")
    return wanted


def contender_of(design_name: str, name: str, prices: Path | None = None) -> Contender:
    """One contender of an experiment, with its flavours and their prices if not the paper's."""
    if prices is None:
        return _MAKERS[design_name]()[name]
    with_prices = {PAPER: contenders, ABLATION: ablations}[design_name]
    return with_prices(load_catalogue(prices))[name]


# The ablation: HTAS with one of its parts switched off, or one more switched on.


def ablations(catalogue: Catalogue | None = None) -> dict[str, Contender]:
    """HTAS in the paper's cycles and by default, as it is and with one part switched at a time."""
    made, there = {}, contenders(catalogue)
    for base in (HTAS, HTAS_DEFAULT):
        whole = there[base]
        made[base] = whole
        for name, (title, change) in SWITCHES.items():
            changed = change(whole.policy)
            if changed != whole.policy:
                made[f"{base}/{name}"] = replace(
                    whole, name=f"{base}/{name}", title=f"{whole.title}, {title}", policy=changed
                )
    return made


def _without_bundling(policy: Policy) -> Policy:
    """Services and batch jobs share nodes of one group, which takes the batch group's rules."""
    batch = policy.groups[-1]
    one = msgspec.structs.replace(
        batch,
        name="any",
        workload=NodeGroup("any").workload,
        min_nodes=sum(group.min_nodes for group in policy.groups),
    )
    return msgspec.structs.replace(policy, groups=(one,))


def _with(**settings: Any) -> Callable[[Policy], Policy]:
    """A policy with other settings."""
    return lambda policy: msgspec.structs.replace(policy, **settings)


def _cleaned_with(**rules: Any) -> Callable[[Policy], Policy]:
    """A policy whose groups are cleaned by other rules."""

    def change(group: NodeGroup) -> NodeGroup:
        return msgspec.structs.replace(group, cleaning=msgspec.structs.replace(group.cleaning, **rules))

    return lambda policy: each_group(policy, change)


def _without_time_bins(policy: Policy) -> Policy:
    return each_group(policy, lambda group: msgspec.structs.replace(group, packing=Packing(PackingAlgorithm.BFD)))


QUICK_CONSOLIDATION = Consolidation(enabled=True, after_s=120.0, cool_down_s=120.0)
"""Sets of nodes are replaced by cheaper ones. Jobs of minutes: looked at every two, not every fifteen."""


def each_group(policy: Policy, change: Callable[[NodeGroup], NodeGroup]) -> Policy:
    return msgspec.structs.replace(policy, groups=tuple(map(change, policy.groups)))


SWITCHES: Mapping[str, tuple[str, Callable[[Policy], Policy]]] = {
    # Rules by name: in words, and the policy changed.
    "no-bundling": ("one group for all work", _without_bundling),
    "no-time-bins": ("without time bins", _without_time_bins),
    # No work waits for nodes that are about to end theirs.
    "no-zero-bin": ("without the 0-bin", _with(max_wait_for_capacity_s=0.0)),
    # Only nodes that have become empty by themselves are given back: no use is low enough to be cleaned.
    "no-rescheduling": ("without rescheduling", _cleaned_with(utilization_threshold=0.0)),
    # No node is ever given back.
    "no-cleaner": ("without the cleaner", _cleaned_with(enabled=False)),
    # Machines are bought for work that waits already.
    "no-look-ahead": ("without looking ahead", _with(look_ahead_s=0.0)),
    "cheapest-mix": ("with the cheapest mix", with_cheapest_mix),
    "consolidation": ("with consolidation", _cleaned_with(consolidation=QUICK_CONSOLIDATION)),
}


# The trace.


def on_trace() -> dict[str, Contender]:
    """Contenders on the trace's own machine shapes; those that know one flavour alone cannot hold its work.

    The trace asks for seven models of GPU: no single flavour has them all. What the paper prints counts CPU and memory
    alone, and would buy machines without GPUs for ever.
    """
    catalogue = load_catalogue(config_file("flavours/openb.yaml"))
    there = contenders()
    made = {
        name: replace(each, policy=msgspec.structs.replace(each.policy, catalogue=catalogue))
        for name, each in there.items()
        if name not in ("default-kubernetes", "coca") and not name.startswith(AS_PRINTED)
    }
    for name in (HTAS, HTAS_DEFAULT, HTAS_MIX, HTAS_DEFAULT_MIX):
        made[name] = replace(made[name], policy=_on_demand(made[name].policy))
    return made


def _on_demand(policy: Policy) -> Policy:
    """Without limits and minimum sizes: machines of the trace cost a hundred times those of the paper."""
    batch = msgspec.structs.replace(policy.groups[-1], min_nodes=0, limits=NodeGroup("batch").limits)
    return msgspec.structs.replace(policy, groups=(batch,), limits=NodeGroup("batch").limits)


_MAKERS: Mapping[str, Callable[[], Mapping[str, Contender]]] = {
    PAPER: contenders,
    ABLATION: ablations,
    TRACE: on_trace,
    EDGE: edge_contenders,
}
EXPERIMENTS = tuple(_MAKERS)
"""By name, as `design` takes them."""
WORK: Mapping[str, tuple[str, ...]] = {
    "patterns": tuple(pattern.name for pattern in patterns.PAPER),
    f"patterns of {EDGE}": tuple(SCENARIOS),
}
"""What there is to play in them; the trace is its own."""
