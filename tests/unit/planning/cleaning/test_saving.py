"""What emptying a node would save, what it would cost, and how a node that is kept for that is told."""

from __future__ import annotations

import pytest

from htas.model.policy import NodeGroup
from htas.planning.disrupt.cleaning.candidates import Candidate, percent, span
from htas.planning.disrupt.cleaning.rescheduling import Saving
from tests.builders import owned_node, ready_claim

PRICE = 400


def saving(saved_s: int, repeated_s: float = 0.0, left_s: float = 130.0, price: int = PRICE) -> Saving:
    node = owned_node("n")
    return Saving(
        Candidate(node, NodeGroup("any"), ready_claim(node), (), 0.2, False, price), left_s, saved_s, repeated_s
    )


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
    ("kept", "added", "words"),
    [
        (saving(45), 0, "its work ends in 2m10s; moving it would save 45s of rental"),
        (saving(-5), 0, "its work ends in 2m10s; moving it would save 0s of rental"),
        (saving(0), 0, "its work ends in 2m10s; moving it would save 0s of rental"),
        (saving(45, 60.0), 0, "its work ends in 2m10s; moving it would save 45s of rental and repeat 1m00s of work"),
        (
            saving(45),
            100 * PRICE,
            "its work ends in 2m10s; moving it would save 45s of rental, and have others rented longer for as much as 1m40s of it",
        ),
        (saving(45, price=0), 100, "its work ends in 2m10s; moving it would save 45s of rental"),
    ],
    ids=["saved", "less than nothing", "nothing", "repeated", "others longer", "without a price"],
)  # fmt: skip
def test_why_it_is_kept_is_told_with_its_figures(kept: Saving, added: int, words: str) -> None:
    told = kept.kept(added)
    assert (told.node, told.reason.value, told.message) == ("n", "EmptyBeforeMigrationPays", words)


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
