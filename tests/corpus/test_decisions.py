"""Decisions on record are made again: planning may be rebuilt inside, and no decision changes unnoticed.

The questions were recorded from stories, laws, table tests and days in the sandbox (`python -m tools.corpus record`),
and chosen so that together they run nearly every line of planning twice. Plans, searches of the optimiser and answers
of `htas simulate` are those of random clusters (`python -m tools.corpus answers`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.corpus.answers import ASKED, RECORDED
from tools.corpus.decisions import Corpus

SHARES = 6
"""The recorded questions are asked in so many parts, that workers share them."""
MOST = 5
HOW_TO_RENEW = """
If that is meant: python -m tools.corpus renew
Read the diff of tests/corpus before you commit it. A question is printed by: python -m tools.corpus show ID"""


@pytest.mark.parametrize("share", range(SHARES))
def test_what_is_on_record_is_decided_again(share: int) -> None:
    assert_the_same(RECORDED, share, SHARES)


@pytest.mark.parametrize("name", [name for name in ASKED if name != RECORDED])
def test_what_was_answered_is_answered_again(name: str) -> None:
    assert_the_same(name)


def assert_the_same(name: str, share: int = 0, shares: int = 1) -> None:
    corpus, differing = Corpus(Path(__file__).parent / name), []
    questions = [each for index, each in enumerate(corpus) if index % shares == share]
    assert questions
    for question in questions:
        found = corpus.differing(question, ASKED[name])
        if found:
            differing.append("\n    ".join((f"{question.name}:", *found[:MOST])))
    count = f"on {len(differing)} of {len(questions)} of this part something else is decided, on the first ones:"
    assert not differing, "\n".join((count, *differing[:MOST], HOW_TO_RENEW))
