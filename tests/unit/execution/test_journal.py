"""The journal while its disk is full: when it is tried again, what it is taken to hold, and how often that is told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from htas.adapters.sqlite.store import SqliteStore
from htas.execution.journal import Journal
from htas.model.claims import NodeClaim
from htas.ports import ConflictError, TransientError
from htas.sandbox.clock import VirtualClock
from tests.builders import NOW, owned_node, ready_claim

CLAIM = ready_claim(owned_node("n"))


class Disk(SqliteStore):
    """A store on a disk that is full or not."""

    is_full = False
    looks = 0

    def probe(self) -> None:
        self.looks += 1
        if self.is_full:
            raise TransientError("database or disk is full")
        super().probe()

    def claims(self) -> Sequence[NodeClaim]:
        if self.is_full:
            raise TransientError("database or disk is full")
        return super().claims()

    def put_claim(self, claim: NodeClaim) -> NodeClaim:
        if self.is_full:
            raise TransientError("database or disk is full")
        return super().put_claim(claim)


@pytest.fixture
def disk() -> Disk:
    return Disk(":memory:")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW)


@pytest.fixture
def journal(disk: Disk, clock: VirtualClock) -> Journal:
    return Journal(disk, clock)


def fail(journal: Journal, disk: Disk) -> None:
    disk.is_full = True
    with pytest.raises(TransientError, match="full"):
        journal.put_claim(CLAIM)


def test_a_journal_that_works_is_not_asked_whether_it_does(journal: Journal, disk: Disk) -> None:
    assert journal.works()
    assert (journal.problem, disk.looks) == ("", 0)


def test_it_is_tried_again_more_and_more_seldom_up_to_every_quarter_of_a_minute(
    journal: Journal, disk: Disk, clock: VirtualClock
) -> None:
    fail(journal, disk)
    assert journal.problem == "database or disk is full"
    tried = []
    for at in range(50):
        clock.set(NOW + at)
        before = disk.looks
        assert not journal.works()
        if disk.looks > before:
            tried.append(at)
    assert tried == [1, 3, 7, 15, 30, 45]


def test_it_works_again_once_it_can_be_written_and_pauses_begin_anew(
    journal: Journal, disk: Disk, clock: VirtualClock
) -> None:
    fail(journal, disk)
    clock.set(NOW + 1)
    assert not journal.works()
    disk.is_full = False
    clock.set(NOW + 2)
    assert not journal.works()
    clock.set(NOW + 3)
    assert journal.works()
    assert journal.problem == ""
    fail(journal, disk)
    disk.is_full = False
    clock.set(NOW + 4)
    assert journal.works()


def test_what_cannot_be_read_is_taken_for_what_was_read_last(journal: Journal, disk: Disk) -> None:
    journal.put_claim(CLAIM)
    assert [claim.id for claim in journal.business().claims] == ["n"]
    disk.is_full = True
    assert [claim.id for claim in journal.business().claims] == ["n"]
    assert journal.problem == "database or disk is full"


def test_what_another_wrote_meanwhile_is_known_as_soon_as_it_can_be_read(
    journal: Journal, disk: Disk, clock: VirtualClock
) -> None:
    fail(journal, disk)
    disk.is_full = False
    SqliteStore.put_claim(disk, CLAIM)
    clock.set(NOW + 1)
    assert journal.works()
    disk.is_full = True
    assert [claim.id for claim in journal.business().claims] == ["n"]


def test_that_another_writer_was_first_is_no_trouble_of_the_disk(journal: Journal) -> None:
    journal.put_claim(CLAIM)
    with pytest.raises(ConflictError):
        journal.put_claim(CLAIM)
    assert journal.problem == ""


def test_the_same_trouble_is_told_every_five_minutes_and_its_end_once(
    journal: Journal, disk: Disk, clock: VirtualClock
) -> None:
    with capture_logs() as lines:
        fail(journal, disk)
        for at in range(1, 302):
            clock.set(NOW + at)
            journal.works()
    told = [line["log_level"] for line in lines]
    assert told == ["warning", "warning"]
    disk.is_full = False
    with capture_logs() as lines:
        clock.set(NOW + 400)
        assert journal.works()
        assert journal.works()
    assert [line["log_level"] for line in lines] == ["info"]


def test_trouble_that_was_not_told_anew_does_not_end_with_a_word(
    journal: Journal, disk: Disk, clock: VirtualClock
) -> None:
    fail(journal, disk)
    disk.is_full = False
    clock.set(NOW + 1)
    assert journal.works()
    with capture_logs() as lines:
        fail(journal, disk)
        disk.is_full = False
        clock.set(NOW + 3)
        assert journal.works()
    assert lines == []
