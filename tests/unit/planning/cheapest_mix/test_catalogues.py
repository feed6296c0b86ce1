"""The benches' large catalogues keep what is said of them: what is measured on them depends on it."""

from __future__ import annotations

import pytest

from htas.model.flavours import dominating
from tools.bench.catalogues import FAMILIES, incomparable
from tools.bench.numbers import numbers


@pytest.mark.parametrize("family", FAMILIES)
def test_a_catalogue_has_the_size_asked_for_and_is_the_same_for_the_same_seed(family: str) -> None:
    made = FAMILIES[family](130, 3)
    assert len({flavour.name for flavour in made}) == 130
    assert made == FAMILIES[family](130, 3)
    assert made != FAMILIES[family](130, 4)


def test_no_incomparable_flavour_is_replaced_by_another_one() -> None:
    made = incomparable(200, 3)
    assert [flavour.name for flavour in made if dominating(flavour, made)] == []


@pytest.mark.parametrize("family", ["aws-like", "random"])
def test_most_flavours_of_the_other_families_are_replaced_by_another_one(family: str) -> None:
    made = FAMILIES[family](200, 3)
    assert sum(dominating(flavour, made) is not None for flavour in made) > 100


def test_numbers_are_told_one_by_one_and_as_ranges() -> None:
    assert numbers("1,4-6") == [1, 4, 5, 6]
    with pytest.raises(ValueError, match="invalid literal"):
        numbers("1,x")
