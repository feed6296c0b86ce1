"""Heavy work for those who ask: one at a time, a share of the time, and few documents kept."""

from __future__ import annotations

import msgspec
import pytest

from htas.ports import TransientError
from htas.web import queries
from htas.web.shelf import MOST_BYTES, OLDEST_S, Shelf
from htas.web.turns import BusyError, Share, Turns


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_second_piece_of_work_is_told_to_come_again() -> None:
    turns = Turns("a what-if", Share(0.25, saved_s=10.0))
    with turns.one(), pytest.raises(TransientError, match="another user") as told, turns.one():
        pass
    assert told.value.retry_after_s
    with turns.one():
        pass


def test_work_takes_its_share_of_the_time_whatever_is_asked_for() -> None:
    clock = Clock()
    turns, worked = Turns("a what-if", Share(0.25, saved_s=10.0, clock=clock)), 0.0
    while clock.now < 3600:
        try:
            with turns.one():
                clock.now += 3.0
                worked += 3.0
        except TransientError as refused:
            assert refused.retry_after_s is not None and refused.retry_after_s > 0
            clock.now += refused.retry_after_s
    assert 0.2 * clock.now < worked < 0.25 * clock.now + 13.0


def test_kinds_of_work_take_one_share_together() -> None:
    """Reading had half of the time beside the quarter of what-ifs, and pages as much as they liked."""
    clock = Clock()
    share = Share(0.25, saved_s=10.0, clock=clock)
    first, second = Turns("a what-if", share), Turns("reading", share, line=3)
    with first.one():
        clock.now += 20.0
    with pytest.raises(BusyError, match="reading took long"), second.one():
        pass


def test_what_fails_frees_its_place_and_is_counted() -> None:
    clock = Clock()
    turns = Turns("a what-if", Share(0.25, saved_s=1.0, clock=clock))
    with pytest.raises(ValueError, match="no"), turns.one():
        clock.now += 9.0
        raise ValueError("no")
    with pytest.raises(TransientError, match="took long"), turns.one():
        pass


@pytest.mark.parametrize(
    ("number", "length"),
    [
        pytest.param(130, 2**20, id="many long ones"),
        pytest.param(1, MOST_BYTES + 1, id="one longer than all may be"),
        pytest.param(1_000, 10, id="many short ones"),
    ],
)
def test_documents_are_kept_up_to_a_number_of_bytes(number: int, length: int) -> None:
    shelf, plain = Shelf(), bytes(length)
    for key in range(number):
        assert shelf.get(str(key), 1, lambda: plain).plain == plain
    assert shelf._bytes <= MOST_BYTES


def test_a_document_that_is_made_anew_is_counted_once() -> None:
    shelf = Shelf()
    for version in range(5):
        shelf.get("a", version, lambda: bytes(500))
    assert shelf._bytes <= 500


def test_where_it_is_others_turn_a_page_goes_on_with_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("htas.web.shelf.time.monotonic", clock)
    shelf, share = Shelf(), Share(0.25, saved_s=1.0, clock=clock)
    with share.taken("another"):
        clock.now += 1_000.0

    def made() -> bytes:
        with share.taken("this"):
            return b"new"

    with pytest.raises(BusyError):
        shelf.get("a", 1, made)
    assert shelf.get("a", 1, lambda: b"old").plain == b"old"
    assert shelf.get("a", 2, made).plain == b"old"
    clock.now += OLDEST_S + 1.0
    with pytest.raises(BusyError):
        shelf.get("a", 3, made)


@pytest.mark.parametrize(("asked", "whole"), [(1, 1.0), (1.4, 1.0), (23.50001, 24.0), (19_200, 19_200.0)])
@pytest.mark.parametrize("kind", [queries.OfMoney, queries.OfAgainst])
def test_windows_are_of_whole_hours(asked: float, whole: float, kind: type[queries.OfMoney]) -> None:
    way: dict[str, str] = {"way": "peak"} if kind is queries.OfAgainst else {}
    assert msgspec.convert({"hours": str(asked), **way}, kind, strict=False).hours == whole
