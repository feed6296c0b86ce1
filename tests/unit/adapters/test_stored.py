"""Bodies of an earlier form are understood as what they said."""

import shutil
import zlib
from pathlib import Path

import msgspec
import pytest

from htas.adapters.cassandra import rows
from htas.adapters.sqlite.store import SqliteStore
from htas.adapters.stored import decoded
from htas.adapters.write_behind.entries import Entry, Kind
from htas.model.moves import MigrationMethod, MoveReason
from htas.model.outcomes import Action
from htas.model.rearrangement import OpenRearrangement
from htas.model.record import CycleRecord
from htas.model.snapshot import Drain
from tests import earlier


def test_a_drain_of_old_empties_its_node_by_the_same_moves() -> None:
    moves = decoded(earlier.body(3, "drain"), Drain).moves
    assert [(move.pod, move.target, move.method) for move in moves] == [
        ("default/web-1", "big-1", MigrationMethod.EVICT),
        ("default/web-2", "big-1", MigrationMethod.CHECKPOINT),
    ]
    assert {(move.uid, move.reason) for move in moves} == {("", MoveReason.NODE_DRAINED)}


def test_a_rearrangement_of_old_has_its_slots_and_victims() -> None:
    opened = decoded(earlier.body(3, "rearrangement"), OpenRearrangement)
    assert [(slot.pod.key, slot.node, slot.source, slot.method.value) for slot in opened.slots] == [
        ("default/urgent", "big-1", None, "evict"),
        ("default/web-1", "big-2", "small-1", "evict"),
        ("default/web-2", "big-2", "small-1", "checkpoint"),
    ]
    assert [(pod.key, pod.node) for pod in opened.victims] == [("default/batch", "big-1")]
    assert (opened.slots[1].left_at, opened.slots[2].twin, opened.evicted) == (1_000_003.0, "twin-uid", 3)


def test_a_suggestion_of_old_is_still_made_for_the_edge() -> None:
    opened = decoded(earlier.body(3, "suggestion"), OpenRearrangement)
    assert [(slot.method.value, slot.is_aim) for slot in opened.slots] == [("replace", True), ("evict", False)]
    assert (opened.is_suggestion, opened.starting) == (True, ("web-7",))


def test_a_cycle_of_old_tells_every_move_and_outcome() -> None:
    record = decoded(earlier.body(3, "cycle"), CycleRecord)
    plan = record.plan
    assert [(move.pod, move.source, move.beneficiary) for move in plan.preempt] == [
        ("default/web-1", "small-1", "default/urgent")
    ]
    assert [move.target for move in plan.migrate] == ["big-1", "big-1"]
    assert [move.reason for move in (*plan.carry.steps, *plan.suggest)] == [
        MoveReason.DETOUR,
        MoveReason.BREAKS_CYCLE,
        MoveReason.NEARER_TO_USERS,
    ]
    assert [move.reason for move in record.snapshot.moves] == [MoveReason.UNDER_WAY]
    assert record.snapshot.failed_moves[0].of_drain
    assert [outcome.action for outcome in record.outcomes][:4] == [
        Action.DRAIN,
        Action.MIGRATE,
        Action.EVICT,
        Action.PREEMPT,
    ]


@pytest.mark.parametrize("name", ["drain", "rearrangement", "suggestion", "cycle"])
def test_what_was_understood_is_written_in_todays_form(name: str) -> None:
    kinds = {"drain": Drain, "cycle": CycleRecord}
    kind = kinds.get(name, OpenRearrangement)
    read = decoded(earlier.body(3, name), kind)
    assert msgspec.json.decode(msgspec.json.encode(read), type=kind) == read


def test_a_file_of_old_is_gone_on_from(tmp_path: Path) -> None:
    shutil.copy(earlier.file_of(3), tmp_path / "store.sqlite")
    store = SqliteStore(str(tmp_path / "store.sqlite"))
    [drain], opened, [record] = store.drains(), store.rearrangement(), store.cycles()
    assert (len(drain.moves), opened is not None and len(opened.slots), record.plan.preempt[0].beneficiary) == (
        2,
        3,
        "default/urgent",
    )
    assert opened is not None
    written = store.put_rearrangement(msgspec.structs.replace(opened, moved=3)), store.put_drain(drain)
    assert (store.rearrangement(), *store.drains()) == written
    store.close()


@pytest.mark.parametrize(
    ("name", "kind"), [("drain", Drain), ("rearrangement", OpenRearrangement), ("cycle", CycleRecord)]
)
def test_rows_of_a_keyspace_and_entries_that_wait_for_it_are_understood(name: str, kind: type[msgspec.Struct]) -> None:
    body = earlier.body(3, name)
    held = zlib.compress(body) if kind is CycleRecord else body
    entry = Entry(1, Kind.CYCLE if kind is CycleRecord else Kind.DRAIN, "", held)
    assert rows.decoded(body.decode(), kind) == entry.holds(kind) == decoded(body, kind)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"node": "a"}', Drain),
        (b'{"node": "a", "claim": "c", "reason": "Empty", "started_at": 0.0, "moves": [3]}', Drain),
        (b'{"started_at": 0.0, "priority": 1, "victims": [null]}', OpenRearrangement),
        (b'{"snapshot": {}, "plan": {"preempt": [{"node": "a"}]}}', CycleRecord),
        (b"[]", CycleRecord),
    ],
)
def test_what_no_version_wrote_is_refused(body: bytes, kind: type[msgspec.Struct]) -> None:
    with pytest.raises(msgspec.DecodeError):
        decoded(body, kind)
