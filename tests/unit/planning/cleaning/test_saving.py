"""What emptying a node would save beside what it costs, and how spans and shares are told."""

from __future__ import annotations

import pytest

from htas.planning.disrupt.cleaning.candidates import percent, span
from htas.planning.rental.moving import Saving

PRICE = 400


def saving(saved_s: int, repeated_s: float = 0.0, restarts: int = 0) -> Saving:
    return Saving(PRICE, 130.0, saved_s, repeated_s, restarts)


@pytest.mark.parametrize(
    ("saved_s", "repeated_s", "added", "pays"),
    [
        pytest.param(1, 0.0, 0, True, id="a second"),
        pytest.param(0, 0.0, 0, False, id="nothing"),
        pytest.param(60, 60.0, 0, False, id="as much as is repeated"),
        pytest.param(61, 60.0, 0, True, id="a second more than is repeated"),
        pytest.param(61, 60.0, PRICE, False, id="and others are rented for it longer for as much"),
        pytest.param(61, 60.0, PRICE - 1, True, id="for less"),
        pytest.param(60, 59.5, PRICE // 2 - 1, True, id="half a second, others for less"),
        pytest.param(60, 59.5, PRICE // 2, False, id="half a second, others for as much"),
    ],
)
def test_a_node_is_emptied_where_more_is_saved_than_repeated_and_added(
    saved_s: int, repeated_s: float, added: int, pays: bool
) -> None:
    assert saving(saved_s, repeated_s).exceeds(added) == pays


@pytest.mark.parametrize(
    ("restarts", "added", "pays"),
    [
        pytest.param(PRICE - 1, 0, True, id="restarts are worth less"),
        pytest.param(PRICE, 0, False, id="as much"),
        pytest.param(PRICE // 2, PRICE // 2, False, id="as much with what is added"),
        pytest.param(PRICE // 2, PRICE // 2 - 1, True, id="less with what is added"),
    ],
)
def test_what_restarts_cost_is_taken_off(restarts: int, added: int, pays: bool) -> None:
    assert saving(61, 60.0, restarts).exceeds(added) == pays
    assert saving(61, 60.0, restarts).worth == PRICE


@pytest.mark.parametrize(
    ("saved_s", "added", "held", "pays"),
    [
        pytest.param(0, 0, 0, True, id="nothing is lost: it has no end, and saves one day"),
        pytest.param(61, 0, PRICE, True, id="it holds another as dear"),
        pytest.param(10**9, 0, PRICE + 1, False, id="it holds a dearer one, whatever is saved until then"),
        pytest.param(1, PRICE, PRICE, False, id="it holds another as dear for as long"),
        pytest.param(2, PRICE, PRICE, True, id="for a second less"),
    ],
)
def test_a_service_holds_for_ever_what_it_is_moved_to(saved_s: int, added: int, held: int, pays: bool) -> None:
    assert Saving(PRICE, 3600.0, saved_s, 0.0, serves=True).exceeds(added, held) == pays


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0s"), (59.9, "59s"), (60, "1m00s"), (61, "1m01s"), (3599, "59m59s"), (3600, "60m00s")]
)
def test_spans_are_told_in_whole_seconds(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("share", "words"), [(0.5, "50%"), (0.504, "50.4%"), (0.5049, "50.5%"), (1.0, "100%"), (0.0, "0%")]
)
def test_shares_are_told_to_a_tenth_of_a_percent(share: float, words: str) -> None:  # fmt: skip
    assert percent(share) == words
