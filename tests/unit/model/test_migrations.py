"""Moves as journalled: which state may follow which, and what a record tells."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.migrations import FINAL, TRANSITIONS, MigrationRecord, MigrationState, can_checkpoint, can_restore
from htas.model.moves import MigrationMethod

P, C, T, R, S, DONE, BACK = MigrationState


def record(state: MigrationState = P) -> MigrationRecord:
    return MigrationRecord(
        "m1", "default/a", "uid", "n1", "n2", MigrationMethod.CHECKPOINT, state, 100.0, reached={state.value: 100.0}
    )


def test_every_state_has_its_row_and_only_the_last_ones_have_none_after_them() -> None:
    assert set(TRANSITIONS) == set(MigrationState)
    assert {state for state, after in TRANSITIONS.items() if not after} == FINAL


@pytest.mark.parametrize("state", [P, C, T, R, S])
def test_from_any_state_on_the_way_a_move_can_be_taken_back(state: MigrationState) -> None:
    assert record(state).advanced(BACK, 101.0).is_over


def test_nothing_is_switched_that_was_not_restored() -> None:
    assert {state for state, after in TRANSITIONS.items() if S in after} == {R}
    assert {state for state, after in TRANSITIONS.items() if DONE in after} == {S}


@pytest.mark.parametrize(("state", "after"), [(P, S), (T, C), (DONE, P), (BACK, P), (S, P), (C, DONE)])
def test_a_false_edge_is_an_error_that_names_it(state: MigrationState, after: MigrationState) -> None:
    with pytest.raises(ValueError, match=f"move m1 of default/a cannot go from {state} to {after}"):
        record(state).advanced(after, 101.0)


def test_a_new_attempt_forgets_what_the_last_one_had_made() -> None:
    failed = record().advanced(C, 103.0, archive="/var/lib/kubelet/checkpoints/x.tar", archive_bytes=5, digest="d")
    again = failed.advanced(P, 110.0, reason="TransferFailed")
    assert (again.attempt, again.archive, again.archive_bytes, again.digest) == (2, "", 0, "")
    assert (again.reached, again.reason, again.started_at) == ({"Prepared": 110.0}, "TransferFailed", 100.0)


def test_a_record_tells_how_long_each_step_took() -> None:
    move = record().advanced(C, 103.0).advanced(T, 109.0).advanced(R, 111.0).advanced(S, 111.5)
    assert (move.took(P, C), move.took(C, T), move.took(T, R), move.took(S, DONE)) == (3.0, 6.0, 2.0, None)
    assert move.ended_at is None
    assert move.advanced(DONE, 112.0).ended_at == 112.0


def test_a_record_survives_its_annotation() -> None:
    move = record().advanced(C, 103.0, archive_bytes=5)
    assert msgspec.json.decode(msgspec.json.encode(move), type=MigrationRecord) == move


@pytest.mark.parametrize(
    ("runtime", "checkpoints", "restores"),
    [
        ("containerd://1.7.24", False, False),
        ("containerd://2.1.9", True, False),
        ("containerd://2.2.9", True, True),
        ("containerd://2.3.7", True, True),
        ("containerd://v2.3.7-rc.1", True, True),
        ("containerd://2.4.2", True, False),
        ("cri-o://1.33.0", False, False),
        ("", False, False),
    ],
)
def test_what_a_runtime_can_do_is_known_by_its_version(runtime: str, checkpoints: bool, restores: bool) -> None:
    assert (can_checkpoint(runtime), can_restore(runtime)) == (checkpoints, restores)
