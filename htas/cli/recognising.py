"""Nodes of a dump that do not tell their flavour: as `--type` says, else by their size, which is told as a guess."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from htas.adapters.kubernetes.dump import Dump
from htas.cli.console import InputError
from htas.documents.words import counted, did_you_mean, some
from htas.model.flavours import Catalogue
from htas.model.nodes import Node
from htas.planning.what_if.recognising import Recognised, recognise

MANY = 3
"""Labels that are named in a sentence."""


def recognised_in(dump: Dump, catalogue: Catalogue, types: Sequence[str]) -> tuple[Dump, tuple[Recognised, ...]]:
    """The dump with the flavours its nodes are taken for, and which those are; `types` are options `--type`.

    Raises InputError with every mistake in them.
    """
    stated = _stated(types, dump.view.nodes, catalogue)
    nodes, recognised = recognise(dump.view.nodes, dump.machines, catalogue, stated)
    return msgspec.structs.replace(dump, view=msgspec.structs.replace(dump.view, nodes=nodes)), recognised


def _stated(texts: Sequence[str], nodes: Sequence[Node], catalogue: Catalogue) -> list[tuple[str, str]]:
    """Pairs of a pattern of node names and a flavour; every mistake is told at once."""
    names = [flavour.name for flavour in catalogue.flavours]
    pairs, problems = [], []
    for text in texts:
        pattern, is_pair, flavour = text.rpartition("=")
        if not is_pair or not pattern:
            problems.append(f"--type: {text!r} is no pattern and flavour; write it as 'worker-*=m1.large'")
        elif flavour not in names:
            problems.append(f"--type: the price file has no flavour {flavour!r}{did_you_mean(flavour, names)}")
        elif not any(fnmatchcase(node.name, pattern) for node in nodes):
            problems.append(f"--type: no node is called {pattern!r}; there are {some([node.name for node in nodes])}")
        pairs.append((pattern, flavour))
    if problems:
        raise InputError("\n".join(problems))
    return pairs


def refuse_types_without_dump(types: Sequence[str], dump: Path | None) -> None:
    """The daemon guesses nothing of a live cluster, so no plan for one does."""
    if types and dump is None:
        raise InputError("--type: names the flavour of nodes of a dump; name one with --from")


def guesses(recognised: Iterable[Recognised]) -> Iterable[str]:
    """Which nodes were taken for which flavours by their size, by flavour; a guess is called one."""
    guessed = [each for each in recognised if not each.is_stated]
    for flavour in sorted({each.flavour for each in guessed}):
        mine = [each for each in guessed if each.flavour == flavour]
        others = sorted({name for each in mine for name in each.others})
        or_ = f" (or {' or '.join(others)}, as large for another price)" if others else ""
        yield (
            f"A guess by size: {counted(len(mine), 'node')} without an instance type{_labelled(mine)}"
            f" {'is' if len(mine) == 1 else 'are'} taken for {flavour}{or_}: {some([each.node for each in mine], 3)}."
            f" To state it: --type 'PATTERN={flavour}'."
        )


def _labelled(mine: Iterable[Recognised]) -> str:
    """Labels that were passed over, since the price file has none of those that nodes bear."""
    labels = sorted({each.labelled for each in mine if each.labelled})
    return f" that the price file has (they are labelled {some(labels, MANY)})" if labels else ""
