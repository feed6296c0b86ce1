"""Plans, snapshots and policies as plain data, in a form that outlives a renamed field.

A plan is compared by the documented JSON of it and, beside that, what only the executor reads: who renames a field of
the plan changes its name here as well, and what is on record stays. Snapshots and policies are written as they are: a
field of theirs that is renamed is told in RENAMED, with the old name's path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from htas.model.moves import Move, MoveReason
from htas.model.plan import Plan
from htas.model.plan_document import plan_document
from htas.model.snapshot import ClusterSnapshot
from tools.corpus import earlier

RENAMED: Mapping[str, str] = {}
"""Path of a field as it was recorded to its name now, such as "cluster.pods.*.owner": "controller" (`*`: each item)."""
GONE = ("memory.awaited", "migration.secure_copy.route", "migration.secure_copy.authorized_keys_file")
"""Paths of fields that were recorded and decide nothing any more."""

Read = TypeVar("Read")
Document = dict[str, Any]


class LostError(Exception):
    """A recorded field that the code of today does not read."""


def document_of(plan: Plan) -> Document:
    """All that a plan says: the public document, and beside it what that leaves out."""
    return {
        **plan_document(plan),
        "beside": {
            "at": plan.taken_at,
            "nanos": [plan.cost.before_nanos, plan.cost.after_nanos, plan.cost.beside_nanos],
            "launch": {item.claim: item.why for item in plan.launches},
            "steps": [_step(step) for step in plan.carry.steps],
            "carry": plan.carry.message,
            "remove": {item.node: [item.claim, item.message] for item in plan.remove},
            "memory": _memory(plan),
        },
    }


YOUNGER = frozenset({"put_off", "room_made"})
"""Fields of the memory that are left out while they are empty: decisions were recorded before there were any."""


LEFT_OUT = frozenset({"awaited", "launches"})
"""Fields of the memory that are not compared. Launches name owners by digests of all that their pods ask of nodes,
which any new field there changes; `awaited` was there before them."""


def _memory(plan: Plan) -> Document:
    fields = plain(plan.memory).items()
    return {key: value for key, value in fields if key not in LEFT_OUT and (value or key not in YOUNGER)}


TEXTS = frozenset({"remedy", "carry"})
"""Keys of sentences for people, which are not compared: a better word is no other decision."""
CODED = frozenset({"message", "why"})
"""The same where a reason may stand, alone or before the sentence: that is compared."""
KEYS = {"unschedulable": "unplaced", "insteadOfBuying": "insteadOfLaunch"}
"""Keys of a plan's document as they were recorded, and as they are now."""


def decided(document: Document) -> Document:
    """What a document decides: without its sentences and what is left out of the memory, by the names of today."""
    found: Document = _decided(document)
    beside = found.get("beside", {})
    if beside:
        memory = {key: value for key, value in beside.get("memory", {}).items() if key not in LEFT_OUT}
        remove = {node: claim for node, (claim, _) in beside["remove"].items()}
        found["beside"] = {**beside, "memory": memory, "launch": sorted(beside["launch"]), "remove": remove}
    return found


def _decided(value: Any) -> Any:
    if isinstance(value, dict):
        return {KEYS.get(key, key): _by_key(key, each) for key, each in value.items() if key not in TEXTS}
    return [_decided(each) for each in value] if isinstance(value, list) else earlier.FORMER.get(value, value)


def _by_key(key: str, value: Any) -> Any:
    if key in CODED and isinstance(value, str):
        return code_of(value)
    if key == "kept" and isinstance(value, dict):  # by node, in an answer of `htas simulate`
        return {node: code_of(why) for node, why in value.items()}
    if key == "nodes" and isinstance(value, dict):  # how many refuse a pod, by a filter's sentence
        return sorted(value.values())
    return _decided(value)


def code_of(text: str) -> str:
    """The reason that a text is or begins with, by its name today; empty: there is none."""
    found = _CODE.match(text)
    return earlier.FORMER.get(found[0], found[0]) if found else ""


_CODE = re.compile(r"[A-Z]\w+(?=: |$)")


def _step(step: Move) -> list[object]:
    return [step.uid, step.reason is MoveReason.DETOUR, step.reason is MoveReason.BREAKS_CYCLE]


def plain(value: object) -> Any:
    """As JSON has it: a set in order, a tuple as a list."""
    return msgspec.json.decode(msgspec.json.encode(value, order="deterministic"))


def read(document: Document, kind: type[Read]) -> Read:
    """The structure that a recorded document tells of; raises LostError where a field of it is read no more."""
    for path in GONE:
        _drop(document, path.split("."))
    for path, name in RENAMED.items():
        _rename(document, path.split("."), name)
    document = earlier.renamed(document)
    if kind is ClusterSnapshot:
        document = earlier.snapshot(document)
    made = msgspec.convert(document, kind)
    lost = next(_lost(document, msgspec.to_builtins(made), kind.__name__), None)
    if lost is not None:
        raise LostError(f"{lost}: recorded, but not read any more; tell its new name in tools/corpus/documents.py")
    return made


def _drop(value: Any, path: list[str]) -> None:
    first, *rest = path
    if isinstance(value, dict) and first in value:
        if rest:
            _drop(value[first], rest)
        else:
            del value[first]


def _rename(value: Any, path: list[str], name: str) -> None:
    first, *rest = path
    if first == "*":
        for each in value.values() if isinstance(value, dict) else value:
            _rename(each, rest, name)
    elif isinstance(value, dict) and first in value:
        if rest:
            _rename(value[first], rest, name)
        else:
            value[name] = value.pop(first)


def _lost(recorded: Any, now: Any, where: str) -> Iterator[str]:
    """Paths of what is recorded and not there now. What is there now beside it are defaults of new fields."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key, value in recorded.items():
            if key in now:
                yield from _lost(value, now[key], f"{where}.{key}")
            elif value not in (None, [], "", "evict"):  # defaults, which are not written
                yield f"{where}.{key}"
    elif isinstance(recorded, list) and isinstance(now, list | tuple):
        for index, value in enumerate(recorded):
            yield from _lost(value, now[index], f"{where}[{index}]")


def differences(recorded: Any, now: Any, where: str = "") -> Iterator[str]:
    """Where two documents differ, in words, from the top down."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*recorded, *now)):
            at = f"{where}.{key}" if where else str(key)
            if key not in now:
                yield f"{at}: recorded {_text(recorded[key])}, now nothing"
            elif key not in recorded:
                yield f"{at}: recorded nothing, now {_text(now[key])}"
            else:
                yield from differences(recorded[key], now[key], at)
    elif isinstance(recorded, list) and isinstance(now, list):
        yield from _differing_items(recorded, now, where)
    elif recorded != now:
        yield f"{where}: recorded {_text(recorded)}, now {_text(now)}"


def _differing_items(recorded: list[Any], now: list[Any], where: str) -> Iterator[str]:
    if len(recorded) == len(now):
        for index, (old, new) in enumerate(zip(recorded, now, strict=True)):
            yield from differences(old, new, f"{where}[{index}]")
        return
    lost, come = [item for item in recorded if item not in now], [item for item in now if item not in recorded]
    yield from (f"{where}: recorded only: {_text(item)}" for item in lost)
    yield from (f"{where}: now only: {_text(item)}" for item in come)
    if not lost and not come:
        yield f"{where}: recorded {len(recorded)} items, now {len(now)}"


def _text(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 300 else f"{text[:300]}…"
