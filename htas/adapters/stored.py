"""Bodies as stores and queues hold them: read in today's form, or in that of an earlier htas.

Moves had seven types once, of which one told who is preempted, one what leaves a node that is drained, and so on; a
victim of a rearrangement was a pod with the node that it stands on anyway. The journal, recorded cycles and what waits
to be shipped are understood as they are read, and an entry of the journal is written anew in today's form as soon as it
goes a step further: nothing has to be migrated, and no file is rewritten of which most will never be read again.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from htas.model.disruptions import ANY_DISRUPTION
from htas.model.holds import HoldReason
from htas.model.moves import MigrationMethod, MoveReason
from htas.model.reasons import ProposalReason
from htas.model.record import CycleRecord
from htas.model.snapshot import ClusterSnapshot
from htas.ports import PermanentError

_T = TypeVar("_T")
_Row = TypeVar("_Row")
Json = dict[str, Any]


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError, zlib.error)
"""What reading a body raises that no htas wrote, or that was damaged since: lists in lists without end, too."""
MOST_UNPACKED = 256 * 2**20
"""Bytes of a cycle, of which 50,000 pods take some 40 million: 900 KB that unpack to 900 MB took 1.8 GB."""
_log = logging.getLogger(__name__)
"""Not structlog's: where nobody has set that up, in commands, it writes among their results."""


def readable(rows: Iterable[_Row], read: Callable[[_Row], _T]) -> Iterator[_T]:
    """Rows of history, each read as it is asked for, without those that cannot be read, which the log tells: one that
    is damaged must not lose the others. Raises PermanentError of the first one where none can be read.
    """
    found = failed = 0
    why = ""  # not the error itself: its traceback would keep the body, up to 256 MiB
    for row in rows:
        try:
            record = read(row)
        except PermanentError as error:
            failed, why = failed + 1, why or str(error)
            continue
        found += 1
        yield record
        del record  # or it were held beside the next one
    if failed and not found:
        raise PermanentError(why)
    if failed:
        _log.warning("%d of %d rows of history are left out: %s", failed, failed + found, why)


def unpacked(body: bytes) -> bytes:
    """A body that zlib has packed; raises zlib.error where it is damaged or larger than MOST_UNPACKED."""
    unpacker = zlib.decompressobj()
    found = unpacker.decompress(body, MOST_UNPACKED + 1)
    if len(found) > MOST_UNPACKED:
        raise zlib.error(f"it unpacks to more than {MOST_UNPACKED:,} bytes")
    if not unpacker.eof:
        raise zlib.error("it ends too early")
    return found


def decoded(body: bytes | str, kind: type[_T]) -> _T:
    """A body of that kind; raises one of UNREADABLE where it is of no form that was ever written."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        if kind not in _UPGRADES:
            raise
        try:
            return msgspec.convert(upgraded(msgspec.json.decode(body, type=Json), kind), kind)
        except (AttributeError, KeyError, TypeError):  # of no form at all: a row with a wrong bit, say
            raise error from None


def upgraded(old: Json, kind: type[Any]) -> Json:
    """A decoded body in today's form; as it is, where that kind has had no other."""
    upgrade = _UPGRADES.get(kind)
    return upgrade(old) if upgrade is not None else old


def name_of(kind: type[Any]) -> str:
    """What people are told of a body that cannot be read; a union has no name of its own."""
    return getattr(kind, "__name__", "Disruption")


def _disruption(old: Json) -> Json:
    """A drain and a rearrangement lay in tables of their own, and did not say which they were."""
    if old.get("kind", "drain" if "node" in old else "rearrangement") == "drain":
        return {**_drain(old), "kind": "drain"}
    return {**_rearrangement(old), "kind": "rearrangement"}


def _drain(old: Json) -> Json:
    return {**old, "moves": [_move(move, MoveReason.NODE_DRAINED) for move in old.get("moves", ())]}


def _rearrangement(old: Json) -> Json:
    return {**old, "victims": [victim.get("pod", victim) for victim in old.get("victims", ())]}


def _cycle(old: Json) -> Json:
    return {**old, "snapshot": _snapshot(old["snapshot"]), "plan": _plan(old["plan"])}


def _plan(old: Json) -> Json:
    """A plan had a field for each way of disrupting, before they were proposals, and said in words what room is kept
    for."""
    old = {**old, "nominate": [{"reason": _hold_reason(item["why"]), **item} for item in old.get("nominate", ())]}
    if "proposals" in old:
        return old
    carry = old.get("carry", {})
    steps = [_move(step, _step_reason(step)) for step in carry.get("steps", ())]
    rest = {key: value for key, value in old.items() if key not in ("preempt", "migrate", "remove")}
    carried = {key: value for key, value in carry.items() if key != "suggest"}
    return {**rest, "carry": {**carried, "steps": steps}, "proposals": [*_proposals(old, carry.get("suggest", ()))]}


def _proposals(old: Json, suggest: Iterable[Json]) -> Iterator[Json]:
    preempt = [_preemption(item) for item in old.get("preempt", ())]
    for pod, moves in groupby(preempt, key=lambda move: move["beneficiary"]):
        victims = list(moves)
        seat = {"pod": pod, "uid": "", "node": victims[0]["source"]}
        yield {"reason": ProposalReason.PREEMPTED, "moves": victims, "seats": [seat]}
    if suggest:
        shifts = [_move(move, _suggested_reason(move)) for move in suggest]
        yield {"reason": ProposalReason.NEARER_TO_USERS, "moves": shifts}
    leaving = [_move(move, MoveReason.NODE_DRAINED) for move in old.get("migrate", ())]
    for item in old.get("remove", ()):
        node, saved = item["node"], item["savings_nanos_per_hour"]
        yield {
            "reason": item["reason"],
            "moves": [move for move in leaving if move["source"] == node],
            "releases": [{"node": node, "claim": item["claim"]}],
            "value": saved,
            "message": item.get("message", ""),
        }


def _snapshot(old: Json) -> Json:
    rearrangement = old.get("rearrangement")
    return {
        **old,
        "drains": [_drain(drain) for drain in old.get("drains", ())],
        "moves": [_move(move, MoveReason.UNDER_WAY) for move in old.get("moves", ())],
        "rearrangement": _rearrangement(rearrangement) if rearrangement else None,
    }


def _move(old: Json, reason: MoveReason) -> Json:
    return {"uid": "", "reason": reason, **{key: value for key, value in old.items() if key not in _DROPPED}}


def _step_reason(old: Json) -> MoveReason:
    if old.get("is_detour"):
        return MoveReason.DETOUR
    return MoveReason.BREAKS_CYCLE if old.get("breaks_cycle") else MoveReason.MAKES_ROOM


def _suggested_reason(old: Json) -> MoveReason:
    return MoveReason.NEARER_TO_USERS if old.get("is_aim") else MoveReason.MAKES_ROOM


_HELD = {
    HoldReason.MACHINE_STARTING: "the machine is on its way",
    HoldReason.LAUNCH_FIRST: "once the machines bought by this plan have taken theirs",
    HoldReason.DRIVER_COMING: "the driver of its volumes has not registered there yet",
    HoldReason.BIND_FAILED: "its last bind failed; it is tried again in a moment",
    HoldReason.OTHER_SCHEDULER: "bound by",
    HoldReason.REARRANGEMENT: "its slot in the rearrangement under way is not free yet",
}
"""What an earlier htas wrote, instead of a reason."""


def _hold_reason(why: str) -> HoldReason:
    return next((reason for reason, words in _HELD.items() if why.startswith(words)), HoldReason.MOVES_MAKE_ROOM)


def _preemption(old: Json) -> Json:
    if "source" in old:
        return old
    move = {"pod": old["pod"], "source": old["node"], "target": None, "method": MigrationMethod.EVICT}
    return _move({**move, "beneficiary": old["beneficiary"]}, MoveReason.PREEMPTED)


_UPGRADES: dict[type[Any], Callable[[Json], Json]] = {
    ANY_DISRUPTION: _disruption,
    ClusterSnapshot: _snapshot,
    CycleRecord: _cycle,
}
_DROPPED = frozenset({"started_at", "is_detour", "breaks_cycle", "is_aim"})
"""Of a move: what its reason says now, and what nobody read."""
