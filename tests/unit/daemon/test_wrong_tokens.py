"""Who shows wrong tokens waits longer before each next one is judged."""

from __future__ import annotations

from dataclasses import dataclass

from htas.daemon.wrong_tokens import FORGOTTEN_S, FREE, LONGEST_S, MOST_SOURCES, WrongTokens


@dataclass
class Hand:
    """A clock that a test moves."""

    at: float = 1000.0

    def __call__(self) -> float:
        return self.at


def test_a_few_mistakes_cost_nothing_and_more_cost_twice_as_much_each() -> None:
    wrong = WrongTokens(clock=Hand())
    pauses = []
    for _ in range(FREE + 8):
        pauses.append(wrong.pause_s("192.0.2.1"))
        wrong.wrong("192.0.2.1")
    assert pauses[: FREE + 1] == [0.0] * (FREE + 1)
    assert pauses[FREE + 1 : FREE + 4] == [0.25, 0.5, 1.0]
    assert pauses[-1] == LONGEST_S
    assert wrong.pause_s("192.0.2.2") == 0.0, "another source"


def test_the_right_token_and_time_end_the_pause() -> None:
    hand = Hand()
    wrong = WrongTokens(clock=hand)
    for source in ("192.0.2.1", "192.0.2.2"):
        for _ in range(20):
            wrong.wrong(source)
    wrong.right("192.0.2.1")
    assert (wrong.pause_s("192.0.2.1"), wrong.pause_s("192.0.2.2")) == (0.0, LONGEST_S)
    hand.at += FORGOTTEN_S + 1
    assert wrong.pause_s("192.0.2.2") == 0.0


def test_what_is_remembered_is_bounded_and_each_wrong_token_is_counted() -> None:
    heard: list[int] = []
    wrong = WrongTokens(lambda: heard.append(1), Hand())
    for number in range(MOST_SOURCES + 50):
        for _ in range(FREE + 1):
            wrong.wrong(f"source {number}")
    assert len(heard) == (MOST_SOURCES + 50) * (FREE + 1)
    assert wrong.pause_s("source 0") == 0.0, "the oldest is forgotten"
    assert wrong.pause_s(f"source {MOST_SOURCES + 49}") > 0
