"""The same work in another way, and how its cost compares with what was spent.

The demo, `htas cost --against`, the Money page and the API all take their figure, its words and its assumptions from
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from htas.documents.asking import Progress, said_in
from htas.documents.books import Books
from htas.model.flavours import Catalogue, Flavour
from htas.model.money import bill_amount
from htas.model.policy import Policy
from htas.model.record import Bill
from htas.model.resources import amount_text
from htas.ports import GivenError
from htas.profiler import accounts
from htas.profiler.alternatives import Played, Terms, at_least, fixed_peak, single_flavour, too_large_for
from htas.profiler.recorded_work import RecordedWork, Work, recorded_work

MOST_STAYS = 250_000
"""More are not played: at a few thousand a second, for each flavour, that is minutes."""


class Alternative(msgspec.Struct, frozen=True):
    """Another way to do the same work: in words, its flavour, how many machines at most, and price × billed seconds.

    `assumes`: what the figure assumes, a sentence or two a line; whoever prints the figure prints these.
    """

    told: str
    flavour: str
    machines: int
    nano_seconds: int
    assumes: tuple[str, ...] = ()


def compared(other: Alternative, spent: int, currency: str) -> str:
    """`The same work on m3.small alone, the cheapest single flavour: 11.98 USD. HTAS spends 2.10 USD (18 %) more.`"""
    there, ours = (round(bill_amount(each), 2) for each in (other.nano_seconds, spent))  # as they are printed
    saved = there - ours
    share = f" ({100 * abs(saved) / there:.0f} %)" if there else ""
    than = "less" if saved > 0 else "more"
    verdict = f"{abs(saved):.2f} {currency}{share} {than}" if saved else "the same"
    return f"{other.told}: {there:.2f} {currency}. HTAS spends {verdict}."


def alternative(books: Books, against: str, progress: Progress | None = None) -> Alternative:
    """What is compared with: a fixed cluster ("3 m1.large"), "homogeneous [FLAVOUR]" or "peak [FLAVOUR]".

    Raises GivenError where it makes no sense; who asks says where that stands (`said_in`).
    """
    word, _, name = against.strip().partition(" ")
    name = name.strip()
    if re.fullmatch(r"[1-9][0-9]{0,4}", word) and name:
        start = min(bill.started_at for bill in books.bills)
        one = _flavour(books.catalogue, name)
        price, cap = one.nanos_per_hour, one.cap
        fixed = [Bill(f"fixed-{i}", "fixed", one.name, price, start, cap=cap) for i in range(int(word))]
        told, assumes = f"{against} rented all the time", _of_zones(books.catalogue)
        return Alternative(told, one.name, len(fixed), _total(books, fixed), assumes)
    if word not in ("homogeneous", "peak"):
        raise GivenError(
            f'{against!r} is no alternative; write "3 FLAVOUR" (a fixed cluster), homogeneous or peak,'
            " the last two with a FLAVOUR or without"
        )
    named = _flavour(books.catalogue, name) if name else None
    with said_in(against if name else word):
        return _played(books, named, progress, is_peak=word == "peak")


def _played(books: Books, named: Flavour | None, progress: Progress | None, *, is_peak: bool) -> Alternative:
    """The same work on one flavour: on the one named, or on the one that comes cheapest."""
    recorded, terms = _recorded(books), _terms(books)
    able = _able(recorded, [named] if named is not None else _sold(books.policy), terms)
    best: tuple[int, str, int, Played] | None = None
    # A flavour whose work costs more than the best one even if it were fluid need not be played.
    bounds = sorted((at_least(recorded, flavour, terms), flavour.name, flavour) for flavour in able)
    for done, (bound, _, flavour) in enumerate(bounds):
        if best is not None and bound > best[0]:
            break
        if progress is not None:
            progress(flavour.name, done, len(bounds))
        played = single_flavour(recorded, flavour, terms)
        bills = fixed_peak(played, flavour, terms) if is_peak else played.bills
        found = _total(books, bills), flavour.name, played.most_at_once, played
        best = found if best is None or found[:3] < best[:3] else best
    assert best is not None  # one at least is able
    total, name, most, played = best
    chosen = "" if named is not None else ", the cheapest single flavour"
    told = f"The same work on {name} alone{chosen}"
    if is_peak:
        told = f"The peak of the same work, {most:,} {name} rented all the time"
    return Alternative(told, name, most, total, _assumptions(recorded, terms, played, name, is_chosen=named is None))


def _recorded(books: Books) -> RecordedWork:
    stays = books.stays()
    if len(stays) > MOST_STAYS:
        raise GivenError(f"{len(stays):,} stays are on record in this window, {MOST_STAYS:,} can be played; shorten it")
    recorded = recorded_work(stays, books.bills, books.window.since, _end(books))
    if not recorded.work:
        raise GivenError("no work on machines of htas is on record yet")
    return recorded


def _end(books: Books) -> float:
    return min(books.now, books.window.until)


def _terms(books: Books) -> Terms:
    policy = books.policy
    startup_s = max((group.startup_s for group in policy.groups), default=0.0)
    return Terms(
        policy,
        books.window.since,
        _end(books),
        books.machine_times.start_s(startup_s),
        books.machine_times.release_s(policy.timeouts.release_s),
        books.offered,
    )


def _sold(policy: Policy) -> list[Flavour]:
    return [flavour for flavour in policy.catalogue.flavours if not flavour.retired]


def _able(recorded: RecordedWork, flavours: Sequence[Flavour], terms: Terms) -> list[Flavour]:
    """The flavours of which a machine holds each pod; raises GivenError where there is none."""
    left = [(too_large_for(recorded, flavour, terms), flavour) for flavour in flavours]
    able = [flavour for too_large, flavour in left if not too_large]
    if able:
        return able
    if not left:
        raise GivenError("the price file has no flavour that is still sold")
    too_large, nearest = min(left, key=lambda each: (len(each[0]), each[1].name))
    one = f"{too_large[0].name} requests {_asked(too_large[0])}"
    if len(left) == 1:
        raise GivenError(f"a {nearest.name} does not hold every pod that ran: {one}; name a larger flavour")
    raise GivenError(
        f"no single flavour holds every pod that ran: {nearest.name} holds all but {len(too_large):,}, such as {one};"
        " name a fixed cluster"
    )


def _asked(work: Work) -> str:
    amounts = {name: n for name, n in work.requests.amounts().items() if n and name != "pods"}
    return ", ".join(
        amount_text(name, n) if name in ("cpu", "memory") else f"{n} {name}" for name, n in amounts.items()
    )


def _assumptions(
    recorded: RecordedWork, terms: Terms, played: Played, name: str, *, is_chosen: bool
) -> tuple[str, ...]:
    chosen = ""
    if is_chosen:
        chosen = f"{name} is the cheapest flavour that holds every pod that ran, chosen in hindsight. "
    known = [work.waited_s for work in recorded.work if work.waited_s is not None]
    waits = "."
    if known and played.mean_wait_s is not None:
        waited_s = sum(known) / len(known)
        waits = f"; pods are pending {played.mean_wait_s:.0f} s on average, and were {waited_s:.0f} s."
    return (
        f"{chosen}Node groups, DaemonSets and placement are the same; a machine starts in {terms.start_s:.0f} s{waits}",
        "Empty machines are deleted by their groups' rules, and nothing is moved. Run lengths are known; selectors,"
        " affinity, volumes, limits and pods that never ran are left out.",
        *_of_zones(terms.policy.catalogue),
    )


def _of_zones(catalogue: Catalogue) -> tuple[str, ...]:
    """What is assumed of zones where the price file has prices by zone: real bills have the price of their zone."""
    has_zones = any(flavour.prices for flavour in catalogue.flavours)
    return ("Each machine costs the price of its flavour's cheapest zone.",) if has_zones else ()


def _total(books: Books, bills: Iterable[Bill]) -> int:
    return accounts.total(bills, books.catalogue.billing, books.now, books.window)


def _flavour(catalogue: Catalogue, name: str) -> Flavour:
    found = catalogue.named(name)
    if found is None:
        known = ", ".join(flavour.name for flavour in catalogue.flavours)
        raise GivenError(f"there is no flavour {name!r}; the price file has {known}")
    return found
