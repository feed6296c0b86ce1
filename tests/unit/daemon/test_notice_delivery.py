"""Notices on their way: nobody who is away holds anything up, and what was written down is delivered."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from htas.daemon.notice_delivery import (
    APART_S,
    BURST,
    GIVEN_UP_S,
    MOST_WAITING,
    NoticeQueue,
    Notifier,
    Pace,
    Receiver,
    ReceiverQueue,
)
from htas.model.notices import TOLD, Notice, Occasion
from htas.ports import HTASError, PermanentError, TransientError

AT = 1_764_000_000.0


def notice(key: str = "a", at: float = AT) -> Notice:
    return Notice(Occasion.BUDGET, key, "title", "text", at, "main")


class Inbox:
    """Implements NoticePort: takes what comes, but for as many failures as it is given."""

    def __init__(self, *failures: HTASError) -> None:
        self.failures = list(failures)
        self.got: list[str] = []

    def send(self, notice: Notice) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.got.append(notice.key)


class Hands:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = AT

    def __call__(self) -> float:
        return self.now


def desk(port: Inbox, spool: Path | None = None, clock: Hands | None = None) -> tuple[ReceiverQueue, list[str]]:
    told: list[str] = []
    hands = clock or Hands()
    return ReceiverQueue(Receiver("chat", port, frozenset(TOLD), spool), told.append, hands, hands), told


def test_what_was_not_delivered_is_there_after_a_restart(tmp_path: Path) -> None:
    inbox = Inbox(TransientError("away"))
    first, _ = desk(inbox, tmp_path / "spool")
    first.put(notice("a"))
    first.put(notice("b"))
    first.deliver(notice("a"))
    again = NoticeQueue(tmp_path / "spool")
    assert [len(again), again.first().key] == [2, "a"]
    second, told = desk(inbox, tmp_path / "spool")
    second.deliver(again.first())
    assert (inbox.got, told, len(NoticeQueue(tmp_path / "spool"))) == (["a"], ["sent"], 1)


def test_a_daemon_that_begins_delivers_what_waited(tmp_path: Path) -> None:
    """With its thread: what the file has is sent without anybody telling."""
    NoticeQueue(tmp_path / "spool").put(notice("a"), AT)
    inbox = Inbox()
    told: list[str] = []
    notifier = Notifier([Receiver("chat", inbox, frozenset(TOLD), tmp_path / "spool")], told.append)
    notifier.start()
    notifier.tell([notice("b")])
    for _ in range(500):
        if len(told) == 2:
            break
        notifier._desks[0]._thread.join(0.01)
    notifier.close()
    assert (inbox.got, told) == (["a", "b"], ["sent", "sent"])


@pytest.mark.parametrize(
    ("failure", "age_s", "told", "left"),
    [
        pytest.param(TransientError("away"), 60.0, [], 1, id="away: it waits"),
        pytest.param(TransientError("away"), GIVEN_UP_S + 1, ["given-up"], 0, id="away for a day: given up"),
        pytest.param(PermanentError("no"), 60.0, ["refused"], 0, id="refused for good"),
    ],
)
def test_what_becomes_of_a_failure(failure: HTASError, age_s: float, told: list[str], left: int) -> None:
    clock = Hands()
    made, said = desk(Inbox(failure), clock=clock)
    made.put(notice())
    clock.now += age_s
    made.deliver(notice())
    assert (said, len(made._waiting)) == (told, left)


def test_a_notice_of_a_sandboxs_clock_is_tried_as_long_as_any() -> None:
    """That clock is months beside the wall's: what was told by it was given up at the first 503."""
    made, told = desk(Inbox(TransientError("answered 503")))
    made.put(notice(at=AT - 200 * GIVEN_UP_S))
    made.deliver(notice(at=AT - 200 * GIVEN_UP_S))
    assert (told, len(made._waiting)) == ([], 1)


def test_a_queue_is_bounded_and_the_oldest_go_first() -> None:
    made, told = desk(Inbox())
    for number in range(MOST_WAITING + 3):
        made.put(notice(str(number)))
    assert (told, made._waiting.first().key) == (["dropped"] * 3, "3")


def test_after_failures_it_waits_twice_as_long_and_as_long_as_it_is_asked_to() -> None:
    clock = Hands()
    pace = Pace(clock)
    waits = []
    for _ in range(9):
        pace.failed(None)
        waits.append(pace.wait_s())
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 300]
    pace.failed(900.0)
    assert pace.wait_s() == 900.0
    pace.sent()
    assert pace.wait_s() == 0.0


def test_a_burst_is_followed_by_one_every_so_often() -> None:
    clock = Hands()
    pace = Pace(clock)
    for _ in range(BURST):
        assert pace.wait_s() == 0.0
        pace.sent()
    assert pace.wait_s() == BURST * APART_S
    clock.now += BURST * APART_S
    assert pace.wait_s() == 0.0


def test_who_hangs_at_its_end_leaves_the_file_to_whoever_follows(tmp_path: Path) -> None:
    """As where the configuration is read anew while a receiver does not answer."""
    old, _ = desk(Inbox(), tmp_path / "spool")
    old.put(notice("a"))
    old._is_left = True
    new, _ = desk(Inbox(), tmp_path / "spool")
    new.put(notice("b"))
    old.deliver(notice("a"))
    assert len(NoticeQueue(tmp_path / "spool")) == 2


def test_a_spool_that_makes_no_sense_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "spool").write_bytes(b"\xff{")
    assert len(NoticeQueue(tmp_path / "spool")) == 0
    full = NoticeQueue(tmp_path / "nowhere" / "spool")  # as where the disk is full
    full.put(notice(), AT)
    assert len(full) == 1


def test_who_asked_for_some_is_told_of_those_alone() -> None:
    inbox = Inbox()
    notifier = Notifier([Receiver("chat", inbox, frozenset({Occasion.DRAIN_UNDONE}))])
    notifier.tell([notice("a"), msgspec.structs.replace(notice("b"), occasion=Occasion.DRAIN_UNDONE)])
    assert [len(each._waiting) for each in notifier._desks] == [1]
