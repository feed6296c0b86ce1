"""Bodies of an earlier form are understood as what they said."""

import json
import shutil
import sqlite3
import zlib
from contextlib import closing
from enum import StrEnum
from pathlib import Path

import msgspec
import pytest

from htas.adapters.cassandra import rows
from htas.adapters.sqlite.store import SqliteStore
from htas.adapters.stored import decoded
from htas.adapters.write_behind.entries import JournalEntry, Kind
from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.disruptions import ANY_DISRUPTION, Drain, drains_of, rearrangement_of
from htas.model.former_names import FORMER
from htas.model.holds import Hold, HoldReason
from htas.model.migrations import Refusal
from htas.model.moves import MigrationMethod, MoveReason
from htas.model.outcomes import Action
from htas.model.rearrangement import OpenRearrangement
from htas.model.reasons import OutcomeReason, ProposalReason, Unplaced
from htas.model.record import CycleRecord
from htas.model.search_failures import OptionalSearch
from tests import earlier
from tests.far_store import FarStore

forms = pytest.mark.parametrize("form", earlier.FORMS)


@forms
def test_a_drain_of_old_empties_its_node_by_the_same_moves(form: str) -> None:
    drain = decoded(earlier.body(form, "drain"), ANY_DISRUPTION)
    assert isinstance(drain, Drain)
    assert [(move.pod, move.target, move.method) for move in drain.moves] == [
        ("default/web-1", "big-1", MigrationMethod.EVICT),
        ("default/web-2", "big-1", MigrationMethod.CHECKPOINT),
    ]
    assert {(bool(move.uid), move.reason) for move in drain.moves} == {(form != "3", MoveReason.NODE_DRAINED)}


@forms
def test_a_rearrangement_of_old_has_its_slots_and_victims(form: str) -> None:
    opened = decoded(earlier.body(form, "rearrangement"), ANY_DISRUPTION)
    assert isinstance(opened, OpenRearrangement)
    assert [(slot.pod.key, slot.node, slot.source, slot.method.value) for slot in opened.slots] == [
        ("default/urgent", "big-1", None, "evict"),
        ("default/web-1", "big-2", "small-1", "evict"),
        ("default/web-2", "big-2", "small-1", "checkpoint"),
    ]
    assert [(pod.key, pod.node) for pod in opened.victims] == [("default/batch", "big-1")]
    assert (opened.slots[1].left_at, opened.slots[2].twin, opened.evicted) == (1_000_003.0, "twin-uid", 3)


@forms
def test_a_suggestion_of_old_is_still_made_for_the_edge(form: str) -> None:
    opened = decoded(earlier.body(form, "suggestion"), ANY_DISRUPTION)
    assert isinstance(opened, OpenRearrangement)
    assert [(slot.method.value, slot.is_aim) for slot in opened.slots] == [("replace", True), ("evict", False)]
    assert (opened.is_suggestion, opened.starting) == (True, ("web-7",))


@forms
def test_a_cycle_of_old_tells_every_move_and_outcome(form: str) -> None:
    record = decoded(earlier.body(form, "cycle"), CycleRecord)
    plan = record.plan
    assert [(each.reason, len(each.moves), len(each.releases)) for each in plan.proposals] == [
        (ProposalReason.PREEMPTED, 1, 0),
        (ProposalReason.NEARER_TO_USERS, 1, 0),
        (ProposalReason.UNDERUTILIZED, 2, 1),
    ]
    assert [(move.pod, move.source, move.beneficiary) for move in plan.preempt] == [
        ("default/web-1", "small-1", "default/urgent")
    ]
    assert [seat.node for seat in plan.proposals[0].seats] == ["small-1"]
    assert [(removal.node, removal.savings_nanos_per_hour) for removal in plan.remove] == [
        (plan.migrate[0].source, plan.proposals[2].value)
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


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("the machine is on its way", HoldReason.MACHINE_STARTING),
        ("bound by default-scheduler", HoldReason.OTHER_SCHEDULER),
        ("its slot in the rearrangement under way is not free yet: makes room", HoldReason.REARRANGEMENT),
        ("moves a from b to c to make room instead of buying m2: saves 0.1 USD an hour", HoldReason.MOVES_MAKE_ROOM),
    ],
)
def test_a_plan_of_old_says_in_words_what_room_is_kept_for(why: str, reason: HoldReason) -> None:
    cycle = json.loads(earlier.body("3_moves", "cycle"))
    cycle["plan"]["nominate"] = [{"pod": "default/p", "node": "n", "why": why}]
    assert decoded(json.dumps(cycle), CycleRecord).plan.nominate == (Hold("default/p", "n", reason, why),)


@forms
@pytest.mark.parametrize("name", ["drain", "rearrangement", "suggestion", "cycle"])
def test_what_was_understood_is_written_in_todays_form(form: str, name: str) -> None:
    kind = CycleRecord if name == "cycle" else ANY_DISRUPTION
    read = decoded(earlier.body(form, name), kind)
    assert msgspec.json.decode(msgspec.json.encode(read), type=kind) == read


@pytest.mark.parametrize("only_reads", [False, True], ids=["gone on from", "looked at"])
@forms
def test_a_file_of_old(tmp_path: Path, form: str, only_reads: bool) -> None:
    shutil.copy(earlier.file_of(form), tmp_path / "store.sqlite")
    store = SqliteStore(str(tmp_path / "store.sqlite"), only_reads=only_reads)
    [drain], opened = drains_of(store.disruptions()), rearrangement_of(store.disruptions())
    assert (len(drain.moves), opened is not None and len(opened.slots)) == (2, 3)
    assert [move.beneficiary for record in store.cycles() for move in record.plan.preempt] == ["default/urgent"]
    if not only_reads:
        assert opened is not None
        written = [store.put_disruption(drain), store.put_disruption(msgspec.structs.replace(opened, moved=3))]
        assert store.disruptions() == written
    store.close()


def test_a_body_that_is_damaged_stays_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    shutil.copy(earlier.file_of("3_moves"), path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE drains SET body = CAST('{' AS BLOB)")
    store = SqliteStore(str(path))
    with pytest.raises(Exception, match="a stored Disruption cannot be read"):
        store.disruptions()
    store.close()


def test_what_waits_in_a_buffer_of_old_is_shipped(tmp_path: Path) -> None:
    shutil.copy(earlier.file_of("3_moves", "buffer"), tmp_path / "buffer.sqlite")
    far = FarStore(str(tmp_path / "far.sqlite"))
    store = WriteBehindStore(str(tmp_path / "buffer.sqlite"), lambda: far)
    try:
        own = store.disruptions()
        assert [each.id for each in own] == ["drain/small-1", "rearrangement"]
        assert store.catch_up(10.0)
        assert far.disruptions() == own == store.disruptions()
        assert [claim.id for claim in far.claims()] == ["small-1"]
    finally:
        store.close()


@forms
@pytest.mark.parametrize(
    ("name", "kind"), [("drain", ANY_DISRUPTION), ("rearrangement", ANY_DISRUPTION), ("cycle", CycleRecord)]
)
def test_rows_of_a_keyspace_and_entries_that_wait_for_it_are_understood(
    form: str, name: str, kind: type[msgspec.Struct]
) -> None:
    body = earlier.body(form, name)
    held = zlib.compress(body) if kind is CycleRecord else body
    entry = JournalEntry(1, Kind.CYCLE if kind is CycleRecord else Kind.DISRUPTION, "", held)
    assert rows.decoded(body.decode(), kind) == entry.holds(kind) == decoded(body, kind)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"node": "a"}', ANY_DISRUPTION),
        (b'{"node": "a", "claim": "c", "reason": "Empty", "started_at": 0.0, "moves": [3]}', ANY_DISRUPTION),
        (b'{"started_at": 0.0, "priority": 1, "victims": [null]}', ANY_DISRUPTION),
        (b'{"kind": "picnic", "started_at": 0.0}', ANY_DISRUPTION),
        (b'{"snapshot": {}, "plan": {"preempt": [{"node": "a"}]}}', CycleRecord),
        (b"[]", CycleRecord),
    ],
)
def test_what_no_version_wrote_is_refused(body: bytes, kind: type[msgspec.Struct]) -> None:
    with pytest.raises(msgspec.DecodeError):
        decoded(body, kind)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Unplaced, "GatheringForPurchase"),
        (ProposalReason, "InsteadOfBuying"),
        (OutcomeReason, "Promised"),
        (OutcomeReason, "WorkWaits"),
        (HoldReason, "PurchaseFirst"),
        (HoldReason, "MachineComing"),
        (HoldReason, "SlotOfRearrangement"),
        (HoldReason, "RoomMade"),
        (Refusal, "Promised"),
        (Action, "release"),
        (OptionalSearch, "look-ahead"),
    ],
)
def test_a_name_of_old_is_read_as_the_name_of_today(kind: type[StrEnum], name: str) -> None:
    assert msgspec.json.decode(f'"{name}"', type=kind) == FORMER[name]


def test_other_names_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode('"GatheringForPurchase"', type=Action)
