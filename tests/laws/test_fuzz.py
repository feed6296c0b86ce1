"""A few of the inputs of `make fuzz`, always the same: nothing is raised, none is slow or large."""

from __future__ import annotations

import pytest

from tools.fuzz.targets import targets
from tools.fuzz.trying import Tally, place_of, try_some

COUNTS = {"dumps": 60, "watch events": 60, "configurations": 25, "price files": 25, "HTTP requests": 60}
SEED = 18
HANGS_S = 60.0
"""What is slow is `make fuzz`'s business: a crowded machine must fail no test."""


@pytest.mark.parametrize("name", COUNTS)
def test_nothing_that_others_write_is_a_defect(name: str) -> None:
    with targets() as every:
        [target] = [each for each in every if each.name == name]
        tally = Tally()
        try_some(target, tally, SEED, COUNTS[name], shrinks=False, most_cpu_s=HANGS_S)
    assert tally.defects == {}
    assert tally.inputs >= COUNTS[name] // 2, "hypothesis may find some twice"


def test_failures_of_one_place_are_one_defect() -> None:
    assert place_of(ValueError("x")) == "ValueError at outside htas"
