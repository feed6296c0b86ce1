"""The reference of words: labels and annotations, reasons, Events, each with what the code says of it."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from htas.model.holds import HoldReason
from htas.model.migrations import Failure, Refusal
from htas.model.news import EventReason
from htas.model.orphans import OrphanReason
from htas.model.reasons import Blocking, Kept, OutcomeReason, ProposalReason, Reason, Unplaced

PACKAGE = Path(__file__).resolve().parents[2] / "htas"
_KEY = re.compile(r"(htas\.io|cluster-autoscaler\.kubernetes\.io|karpenter\.sh|controller\.kubernetes\.io)/[a-z-]+")
NO_KEYS = frozenset({"htas.io/htas"})
"""What looks like a key and is none: the name of the controller that Events are from."""


class UndescribedError(Exception):
    """A word of the reference has no description in the code; the message names it."""


def labels_page() -> str:
    """docs/reference/labels.md: keys on nodes, pods and other objects."""
    described = keys()
    missing = [key for key, said in described.items() if not said.startswith("The ")]
    if missing:
        raise UndescribedError(f"'The label …', 'The annotation …' or 'The taint …' is missing: {', '.join(missing)}")
    own = {key for key in described if key.startswith("htas.io/")}
    return "\n".join(
        [
            "# Labels and annotations",
            "Keys that HTAS reads or writes. Durations are written `30s`, `5m`, `1h30m`.",
            "",
            "## Keys of HTAS",
            *_key_rows(own, described),
            "",
            "## Keys of others",
            *_key_rows(described.keys() - own, described),
            "",
        ]
    )


def _key_rows(which: Iterable[str], described: Mapping[str, str]) -> Iterator[str]:
    yield "| key | what it is |\n|---|---|"
    yield from (f"| `{key}` | {_cell(described[key])} |" for key in sorted(which))


def keys() -> dict[str, str]:
    """Every key that a constant of the package names, with the text below it."""
    return {
        value: said
        for path in sorted(PACKAGE.rglob("*.py"))
        for value, said in _described(ast.parse(path.read_text()).body)
        if _KEY.fullmatch(value) and value not in NO_KEYS
    }


def _described(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Texts that names are given in a module or class, each with the text right below; empty: there is none."""
    statements = list(body)
    for i, each in enumerate(statements):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            below = statements[i + 1] if i + 1 < len(statements) else None
            text = below.value if isinstance(below, ast.Expr) else None
            said = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
            yield each.value.value, " ".join(said.split())


REASONS: Mapping[str, type[StrEnum]] = {
    "Why a pod is pending": Unplaced,
    "Why a node stays": Kept,
    "Why a pod holds its node": Blocking,
    "Why a node is drained, or a pod leaves": ProposalReason,
    "Why an action is not begun, or not finished": OutcomeReason,
    "Why room is reserved": HoldReason,
    "Why a pod is not moved": Refusal,
    "Why a move was undone": Failure,
    "Why a machine is an orphan": OrphanReason,
}


def reasons_page() -> str:
    """docs/reference/reasons.md: every reason by what it explains."""
    return "\n".join(
        [
            "# Reasons",
            "Words in commands, pages, status, logs, Events and metrics. The [runbook](../runbook.md) says what to do.",
            "",
            *(line for title, kind in REASONS.items() for line in (f"## {title}", *_reason_rows(kind), "")),
        ]
    )


def _reason_rows(kind: type[StrEnum]) -> Iterator[str]:
    if issubclass(kind, Reason):
        yield "| reason | meaning | what changes it |\n|---|---|---|"
        yield from (f"| `{each.value}` | {_cell(each.says)} | {_cell(each.remedy)} |" for each in kind)
    else:
        yield from _word_rows(kind)


def events_page() -> str:
    """docs/reference/events.md: the Events of HTAS, on pods and nodes."""
    return "\n".join(
        [
            "# Events",
            "HTAS writes Events on pods and nodes; `kubectl get events` shows them. It repeats one after five minutes",
            "at the earliest. Those that begin with *Warning* have the type Warning.",
            "",
            *_word_rows(EventReason),
            "",
        ]
    )


def _word_rows(kind: type[StrEnum]) -> Iterator[str]:
    said = descriptions(kind)
    yield "| reason | meaning |\n|---|---|"
    yield from (f"| `{each.value}` | {_cell(said[each.value])} |" for each in kind)


def descriptions(kind: type[StrEnum]) -> dict[str, str]:
    """The text below each member of an enumeration; raises UndescribedError where one has none."""
    tree = ast.parse(Path(inspect.getfile(sys.modules[kind.__module__])).read_text())
    (body,) = (each.body for each in tree.body if isinstance(each, ast.ClassDef) and each.name == kind.__name__)
    said = dict(_described(body))
    missing = [each.value for each in kind if not said.get(each.value)]
    if missing:
        raise UndescribedError(f"{kind.__name__}: {', '.join(missing)}")
    return said


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
