"""What is told of moves that are over, and how long a node is left alone after one that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from htas.execution.moves_seen import FIRST_PAUSE_S, MovesSeen, Retries, summary
from htas.model.migrations import Failure, MigrationRecord, MigrationState
from htas.model.move_times import MoveTimes
from htas.model.moves import MigrationMethod, Move
from htas.model.pods import Pod
from htas.model.policy import Timeouts
from htas.model.snapshot import MoveBackoff
from tests.builders import NOW

DONE = MigrationRecord(
    "m1",
    "team/train",
    "u1",
    "a",
    "b",
    MigrationMethod.KUBELET_CHECKPOINT,
    MigrationState.DONE,
    NOW - 20,
    reached={
        "Prepared": NOW - 20,
        "Checkpointed": NOW - 16.5,
        "Transferred": NOW - 6.5,
        "Restored": NOW - 3.5,
        "Switched": NOW - 3.2,
        "Done": NOW - 2,
    },
    dumped_at=NOW - 20,
    archive_bytes=531_900_000,
    memory_bytes=2**30,
)
BACK = msgspec.structs.replace(
    DONE,
    id="m2",
    state=MigrationState.ROLLED_BACK,
    attempt=3,
    reached={"Prepared": NOW - 9, "RolledBack": NOW - 5},
    reason="DigestWrong",
    detail="sha256:1 is not sha256:2",
)
FRESH = msgspec.structs.replace(
    DONE,
    id="m3",
    method=MigrationMethod.REPLACE,
    reached={state: at for state, at in DONE.reached.items() if state not in ("Checkpointed", "Transferred")},
    dumped_at=None,
    archive_bytes=0,
)


@pytest.mark.parametrize(
    ("move", "line"),
    [
        pytest.param(DONE, "from a to b in 18.0 s (checkpoint 3.5 s, copy 10.0 s, restore 3.0 s, switch 0.3 s, end 1.2 s), 507.3 MiB, 16.5 s of work repeated", id="done"),
        pytest.param(msgspec.structs.replace(DONE, attempt=2), "from a to b in 18.0 s (checkpoint 3.5 s, copy 10.0 s, restore 3.0 s, switch 0.3 s, end 1.2 s), 507.3 MiB, 16.5 s of work repeated, after 2 attempts", id="at the second attempt"),
        pytest.param(FRESH, "from a to b in 18.0 s (start 16.5 s, switch 0.3 s, end 1.2 s)", id="started afresh"),
        pytest.param(BACK, "to b rolled back after 3 attempts: DigestWrong: sha256:1 is not sha256:2; it stays on a", id="rolled back"),
        pytest.param(msgspec.structs.replace(BACK, attempt=1, reason="SourceEnded", detail="it ended"), "to b rolled back after 1 attempt: SourceEnded: it ended; nothing was left to move", id="nothing to move"),
    ],
)  # fmt: skip
def test_what_is_told_of_a_move(move: MigrationRecord, line: str) -> None:
    assert summary(move) == line


class Book:
    """A port whose moves a test writes down."""

    def __init__(self, *records: MigrationRecord) -> None:
        self.written = list(records)

    def start(self, pod: Pod, target: str, method: MigrationMethod = MigrationMethod.CHECKPOINT) -> None:
        raise AssertionError("nothing is begun here")

    def moving(self) -> Sequence[Move]:
        return ()

    def records(self) -> Sequence[MigrationRecord]:
        return tuple(self.written)


def seen(*records: MigrationRecord, **timeouts: Any) -> MovesSeen:
    return MovesSeen(Book(*records), Retries(Timeouts(**timeouts)))


def test_each_move_is_told_once() -> None:
    moves = seen(DONE, BACK)
    assert [(o.action, o.subject, o.status.value, o.move) for o in moves.look()] == [
        ("moved", "team/train", "done", DONE),
        ("moved", "team/train", "failed", BACK),
    ]
    assert moves.look() == []


def test_a_pod_that_ended_during_its_move_failed_nothing() -> None:
    """`htas history` and the page Decisions had it as a move that failed."""
    ended = msgspec.structs.replace(BACK, reason=Failure.SOURCE_ENDED, detail="it ended")
    assert [outcome.status for outcome in seen(ended).look()] == ["dropped"]


def test_what_an_earlier_daemon_told_is_not_told_again() -> None:
    moves = seen(DONE, BACK)
    moves.begin({"kubelet-checkpoint": MoveTimes().learned(DONE)}, NOW - 4)
    assert [outcome.move for outcome in moves.look()] == [DONE]
    moves = seen(DONE)
    moves.begin({}, NOW)
    assert moves.look() == []


def test_only_what_succeeded_teaches_how_long_moves_take() -> None:
    moves = seen(DONE, BACK)
    moves.look()
    assert moves.times == {"kubelet-checkpoint": MoveTimes().learned(DONE)}


@pytest.mark.parametrize(
    ("pod", "uid", "since", "why"),
    [
        pytest.param("team/train", "u1", NOW - 30, "DigestWrong: sha256:1 is not sha256:2", id="it failed"),
        pytest.param("team/train", "u1", NOW, None, id="before the drain began"),
        pytest.param("team/train", "u2", NOW - 30, None, id="another pod of that name"),
        pytest.param("team/other", "u1", NOW - 30, None, id="another pod"),
    ],
)
def test_why_a_drain_cannot_finish(pod: str, uid: str, since: float, why: str | None) -> None:
    moves = seen(BACK)
    moves.look()
    assert moves.failure(pod, uid, since) == why


def test_a_new_try_under_way_makes_an_old_failure_the_past() -> None:
    book = Book(BACK)
    moves = MovesSeen(book, Retries(Timeouts()))
    moves.look()
    book.written.append(msgspec.structs.replace(DONE, id="m3", state=MigrationState.PREPARED, started_at=NOW))
    moves.look()
    assert moves.failure("team/train", "u1", NOW - 30) is None


def test_a_node_is_left_alone_twice_as_long_each_time_up_to_a_bound() -> None:
    moves = seen(backoff_initial_s=300.0, backoff_max_s=900.0)
    lengths = []
    now = NOW
    for _ in range(4):
        moves.retries.leave_alone("a", "team/train", "why", now)
        (failed,) = moves.retries.left_alone(now)
        lengths.append(failed.until - now)
        now = failed.until
        assert moves.retries.left_alone(now) == ()
    assert lengths == [300.0, 600.0, 900.0, 900.0]


def test_a_move_that_succeeds_ends_the_wait() -> None:
    book = Book()
    moves = MovesSeen(book, Retries(Timeouts()))
    moves.retries.leave_alone("a", "team/train", "why", NOW - 30)
    book.written.append(DONE)
    moves.look()
    assert moves.retries.left_alone(NOW) == ()


def test_a_pod_that_is_moved_says_nothing_of_its_neighbours_but_that_its_node_can_be_drained() -> None:
    book = Book()
    moves = MovesSeen(book, Retries(Timeouts()))
    moves.retries.leave_alone("a", "team/guarded", "the webhook says no", NOW - 30)
    moves.retries.leave_alone("a", "team/big", "TransferFailed: no route to the registry", NOW - 30, of_drain=True)
    moves.retries.leave_alone("b", "team/other", "TransferFailed: no route to the registry", NOW - 30, of_drain=True)
    book.written.append(DONE)
    moves.look()
    assert [failed.pod for failed in moves.retries.left_alone(NOW)] == ["team/guarded", "team/other"]


def test_a_pod_whose_move_was_taken_back_is_left_alone_for_one_wait_whoever_tells_it() -> None:
    moves = seen(BACK)
    moves.look()
    moves.retries.leave_alone(BACK.source, BACK.pod, "told by the drain, too", NOW, of_drain=True)
    (failed,) = moves.retries.left_alone(NOW)
    assert (failed.pod, failed.wait_s, failed.of_drain) == (BACK.pod, FIRST_PAUSE_S, True)


@pytest.mark.parametrize("reason", [Failure.SOURCE_ENDED, Failure.SOURCE_LOST, Failure.INTERRUPTED])
def test_what_was_taken_back_through_no_fault_of_the_move_may_be_tried_again(reason: Failure) -> None:
    moves = seen(msgspec.structs.replace(BACK, reason=reason.value))
    moves.look()
    assert moves.retries.left_alone(NOW) == ()


def test_a_wait_on_record_is_followed_by_one_twice_as_long() -> None:
    moves = seen(backoff_initial_s=300.0, backoff_max_s=1800.0)
    moves.retries.begin((MoveBackoff("a", "team/train", "why", NOW + 60, 600.0),))
    moves.retries.leave_alone("a", "team/train", "why", NOW + 60)
    assert [failed.until - NOW for failed in moves.retries.left_alone(NOW + 60)] == [1260.0]


def test_failures_on_record_count_after_a_start() -> None:
    moves = seen()
    failed = MoveBackoff("a", "team/train", "why", NOW + 60)
    moves.retries.begin((failed,))
    assert moves.retries.left_alone(NOW) == (failed,)


def test_starting_a_copy_teaches_nothing_of_how_long_checkpoints_take() -> None:
    book = seen(FRESH)
    assert [outcome.subject for outcome in book.look()] == ["team/train"]
    assert not book.times
