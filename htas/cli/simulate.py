"""`htas simulate`: what a cluster would cost under HTAS, worked out from a dump. Nothing is contacted or changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from htas.adapters.kubernetes.dump import Dump
from htas.adapters.kubernetes.gaps import Gap
from htas.cli.console import InputError, err
from htas.cli.options import found
from htas.cli.planning import instant_in, read_cluster, the_rest, the_rest_told
from htas.cli.recognising import recognised_in
from htas.config.loader import load_catalogue, load_configuration
from htas.documents.words import counted, hourly
from htas.model.flavours import Catalogue
from htas.model.nodes import Node
from htas.model.policy import NodeGroup, Policy
from htas.planning.what_if.answer import NothingPricedError, WhatIfAnswer, what_if
from htas.planning.what_if.recognising import Recognised, Unlike, nearest, size_text, unlike_their_flavour


@dataclass(frozen=True, slots=True)
class Simulated:
    """An answer, and how the dump was read to get it."""

    answer: WhatIfAnswer
    dated_by: str
    """The object that names the newest instant in the dump, its present; empty: that was stated."""
    gaps: Sequence[Gap]
    the_rest: str
    """The command that gives what the dump lacks."""
    the_rest_told: str
    """The same, with what it does."""
    recognised: Sequence[Recognised]
    unlike: Sequence[Unlike] = ()
    sizes: Sequence[str] = ()
    """Of nodes without a price: how large they are, and which flavour is nearest, in words."""
    capped: Sequence[str] = ()
    """Flavours whose month costs no more than their cap."""

    @property
    def doubts(self) -> list[str]:
        """Why no figure is to be believed: the dump lacks too much."""
        return [gap.doubt for gap in self.gaps if gap.doubt]


def simulate(
    path: Path,
    flavours: Path | None,
    config: Path | None,
    at: str | None,
    as_annotated: bool,
    types: Sequence[str] = (),
) -> Simulated:
    """Answer for a dump. Raises InputError and ConfigurationError."""
    policy = policy_of(flavours, config)
    columns = SpinnerColumn("dots"), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("reading", total=1.0)
        dump = _without_what_waits(read_cluster(path))
        if types and not dump.view.nodes:
            raise InputError(
                f"{path}: has no nodes, so there is none that --type could name. {the_rest_told(dump, path)}"
            )
        dump, recognised = recognised_in(dump, policy.catalogue, types)
        nodes = dump.view.nodes
        unlike = unlike_their_flavour(nodes, dump.machines, policy.catalogue)
        sizes = _sizes(nodes, dump, policy)
        _refuse_without_pods(path, dump, nodes, policy)
        try:
            answer = what_if(
                dump.view,
                policy,
                instant_in(at, dump),
                as_annotated=as_annotated,
                tell=lambda step, done: progress.update(task, description=f"working out {step}", completed=done),
            )
        except NothingPricedError as error:
            rest = f". {'; '.join(sizes)}" if dump.view.nodes else f". {the_rest_told(dump, path)}"
            raise InputError(f"{path}: {error}{rest}") from None
    dated_by = dump.newest.of if at is None else ""
    lacks = the_rest(dump, path), the_rest_told(dump, path)
    return Simulated(answer, dated_by, dump.gaps, *lacks, recognised, unlike, sizes, _capped(policy.catalogue))


def _capped(catalogue: Catalogue) -> list[str]:
    return [
        flavour.name
        for flavour in catalogue.flavours
        if flavour.cap is not None or any(price.cap is not None for price in flavour.prices)
    ]


def _without_what_waits(dump: Dump) -> Dump:
    """What waits is left out, and so is what its pods alone would need."""
    return msgspec.structs.replace(dump, gaps=tuple(gap for gap in dump.gaps if not gap.of_waiting))


def _sizes(nodes: Sequence[Node], dump: Dump, policy: Policy) -> list[str]:
    """How large the nodes without a price are, the most frequent size first, each with the nearest flavour."""
    unpriced = [node for node in nodes if policy.price_of(node) is None]
    sizes = Counter(dump.machines.get(node.name, node.allocatable) for node in unpriced)
    told = []
    for size, count in sizes.most_common(3):
        flavour = nearest(size, policy.catalogue)
        has = "has" if count == 1 else "have"
        near = f"{flavour.name} ({size_text(flavour.capacity)})"
        told.append(f"{counted(count, 'node')} {has} {size_text(size)}, nearest is {near}")
    return told


def _refuse_without_pods(path: Path, dump: Dump, nodes: Sequence[Node], policy: Policy) -> None:
    """Without pods all nodes look empty, and giving all of them back looks like the best of savings."""
    if dump.view.pods or not dump.view.nodes:
        return
    prices = [price for node in nodes if (price := policy.price_of(node)) is not None]
    cost = ""
    if prices:
        total = f"{hourly(sum(prices))} {policy.catalogue.currency}/h"
        cost = f"; {counted(len(prices), 'node')} with a price cost {total} now"
    raise InputError(f"{path}: has no pods, so it is unknown which nodes are needed{cost}. {the_rest_told(dump, path)}")


def policy_of(flavours: Path | None, config: Path | None) -> Policy:
    """The configuration's policy with the prices of a file; without a configuration one group that buys everything."""
    if config is None and (config := None if flavours is not None else found()) is None:
        if flavours is None:
            raise InputError("--flavours: name a price file, or a configuration that has one (--config)")
        return Policy("simulated", load_catalogue(flavours), (NodeGroup("nodes"),))
    policy = load_configuration(config).policy
    if flavours is not None:
        policy = msgspec.structs.replace(policy, catalogue=load_catalogue(flavours))
    if flavours is not None and not any(policy.flavours_of(group) for group in policy.groups):
        raise InputError(f"--flavours: no node group of {config} may launch any flavour of {flavours}")
    return policy
