"""Decisions on record are made again: planning may be rebuilt inside, and no plan changes unseen.

Each was recorded from a story, a law, a table test or a day in the sandbox (`python -m tools.corpus record`), and chosen
so that together they run nearly every line of planning several times over. Plans, searches of the
optimiser and answers of `htas simulate` are those of random clusters (`python -m tools.corpus answers`).
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from htas.planning.planner import plan
from tools.corpus.answers import ASKED
from tools.corpus.decisions import Asked, Corpus, Decision

CORPUS = Corpus(Path(__file__).parent)
SHARES = 6
"""The decisions are told in so many parts, that workers share them."""
MOST = 5
HOW_TO_RENEW = """
If they are meant to be decided otherwise now: python -m tools.corpus renew
It prints each that changed; read them before you commit what it wrote."""


@cache
def shares() -> dict[int, list[Decision]]:
    found = defaultdict(list)
    for index, decision in enumerate(CORPUS):
        found[index % SHARES].append(decision)
    return found


@pytest.mark.parametrize("share", range(SHARES))
def test_what_is_on_record_is_decided_again(share: int) -> None:
    assert_the_same(CORPUS, shares()[share], plan)


@pytest.mark.parametrize(("name", "asked"), ASKED.items(), ids=list(ASKED))
def test_what_was_answered_is_answered_again(name: str, asked: Asked) -> None:
    corpus = Corpus(Path(__file__).parent / name)
    assert_the_same(corpus, list(corpus), asked)


def assert_the_same(corpus: Corpus, decisions: list[Decision], asked: Asked) -> None:
    differing = []
    for decision in decisions:
        found = corpus.differing(decision, asked)
        if found:
            differing.append("\n    ".join((f"{decision.name}:", *found[:MOST])))
    count = f"{len(differing)} of {len(decisions)} of this part differ, the first ones so:"
    assert not differing, "\n".join((count, *differing[:MOST], HOW_TO_RENEW))
