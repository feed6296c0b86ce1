"""Heavy work for those who ask: one at a time, a share of the time, and few documents kept."""

from __future__ import annotations

import pytest

from htas.ports import TransientError
from htas.web.shelf import MOST_BYTES, Shelf
from htas.web.turns import Turns


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_second_piece_of_work_is_told_to_come_again() -> None:
    turns = Turns("a what-if", share=0.25, saved_s=10.0)
    with turns.one(), pytest.raises(TransientError, match="somebody else") as told, turns.one():
        pass
    assert told.value.retry_after_s
    with turns.one():
        pass


def test_work_takes_its_share_of_the_time_whatever_is_asked_for() -> None:
    clock = Clock()
    turns, worked = Turns("a what-if", share=0.25, saved_s=10.0, clock=clock), 0.0
    while clock.now < 3600:
        try:
            with turns.one():
                clock.now += 3.0
                worked += 3.0
        except TransientError as refused:
            assert refused.retry_after_s is not None and refused.retry_after_s > 0
            clock.now += refused.retry_after_s
    assert 0.2 * clock.now < worked < 0.25 * clock.now + 13.0


def test_what_fails_frees_its_place_and_is_counted() -> None:
    clock = Clock()
    turns = Turns("a what-if", share=0.25, saved_s=1.0, clock=clock)
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
