"""How what was spent compares with another way to do the same work."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from htas.documents.alternatives import Alternative, alternative, compared
from htas.documents.books import Books
from htas.model.flavours import Flavour, ZonePrice
from htas.model.money import NANOS
from htas.model.pods import WorkKind
from htas.model.record import Bill, Run
from htas.ports import GivenError
from htas.profiler.accounts import ALWAYS
from tests.builders import make_flavour, make_policy

HOUR = 3600.0
SMALL, LARGE = make_flavour("small", "2", "4Gi", "0.10"), make_flavour("large", "8", "16Gi", "0.36")
WIDE = make_flavour("wide", "4", "64Gi", "0.50")


def stay(pod: str, cpu_m: int, memory_gib: int) -> Run:
    return Run(
        "ns", pod, pod, "n", WorkKind.SERVICE, "ReplicaSet/web", "", cpu_m, memory_gib * 2**30, 0, 0.0, 0.0, HOUR, "c"
    )


def books(*stays: Run, others: Sequence[Flavour] = (LARGE, WIDE)) -> Books:
    policy = make_policy(flavours=[SMALL, *others])
    return Books(policy, [Bill("c", "any", "large", LARGE.nanos_per_hour, 0.0)], lambda: stays, HOUR, ALWAYS)


def test_the_cheapest_flavour_that_holds_every_pod_is_taken() -> None:
    """Four pods of 1 core: two small ones for 0.20, a large one for 0.36; with one of 3 cores only larger ones do."""
    of_one = [stay(str(i), 1000, 1) for i in range(4)]
    found = alternative(books(*of_one), "homogeneous")
    assert (found.flavour, found.machines) == ("small", 2)
    assert found.told == "The same work on small alone, the cheapest single flavour"
    assert (alternative(books(*of_one, stay("big", 3000, 1)), "homogeneous").flavour) == "large"


@pytest.mark.parametrize(
    ("against", "why"),
    [
        pytest.param("homogeneous", r"homogeneous: no single flavour holds every pod that ran: .* such as ns/.* requests .*; name a fixed cluster", id="no flavour holds both"),
        pytest.param("peak small", r"peak small: a small does not hold every pod that ran: ns/cores requests 6 cores, 1 GiB; name a larger flavour", id="the one named does not"),
        pytest.param("homogeneous huge", r"there is no flavour 'huge'; the price file has small, large, wide", id="unknown"),
    ],
)  # fmt: skip
def test_where_no_flavour_holds_every_pod_it_is_said(against: str, why: str) -> None:
    with pytest.raises(GivenError, match=why):
        alternative(books(stay("cores", 6000, 1), stay("memory", 1000, 40)), against)


@pytest.mark.parametrize(
    ("spent", "want"),
    [
        pytest.param(1.18, "The same work on small alone: 1.00 USD. HTAS spends 0.18 USD (18 %) more.", id="HTAS does not save"),
        pytest.param(0.80, "The same work on small alone: 1.00 USD. HTAS spends 0.20 USD (20 %) less.", id="HTAS saves"),
        pytest.param(1.00, "The same work on small alone: 1.00 USD. HTAS spends the same.", id="neither"),
        pytest.param(0.7951, "The same work on small alone: 1.00 USD. HTAS spends 0.20 USD (20 %) less.",
                     id="by what is printed as spent, 0.80"),
        pytest.param(1.004, "The same work on small alone: 1.00 USD. HTAS spends the same.", id="nor in what is printed"),
    ],
)  # fmt: skip
def test_whether_htas_saves_is_said_as_it_is(spent: float, want: str) -> None:
    other = Alternative("The same work on small alone", "small", 1, 3600 * NANOS)
    assert compared(other, round(spent * 3600 * NANOS), "USD") == want


def test_what_the_figure_assumes_comes_with_it() -> None:
    first, second = alternative(books(stay("a", 1000, 1)), "homogeneous").assumes
    assert "chosen in hindsight" in first
    assert "a machine starts in 60 s" in first
    assert "nothing is moved" in second


@pytest.mark.parametrize("against", ["homogeneous", "peak", "3 large"])
def test_where_prices_differ_by_zone_the_figure_says_which_counts(against: str) -> None:
    """HTAS's own bills have the price of their zone."""
    sentence = "Each machine costs the price of its flavour's cheapest zone."
    prices = (ZonePrice("a", LARGE.nanos_per_hour), ZonePrice("b", 2 * LARGE.nanos_per_hour))
    zoned = msgspec.structs.replace(LARGE, zones=("a", "b"), prices=prices)
    found = alternative(books(stay("a", 1000, 1), others=(zoned,)), against)
    assert found.assumes.count(sentence) == 1
    assert sentence not in alternative(books(stay("a", 1000, 1)), against).assumes
