"""`/decisions`: a timeline of what was bought, emptied, moved and preempted, with the saving expected and that seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from htas.model.money import bill_amount, price_text
from htas.model.outcomes import OutcomeStatus
from htas.ports import HTASError
from htas.web.chronicle import Decision
from htas.web.seat import RECOMMEND, Picture, Seat

REMEMBERED = 200
"""So many of the newest cycles on record are read when the first page asks: a second, or two for 50,000 pods each."""


class DecisionItem(msgspec.Struct, frozen=True):
    """A decision of a page. Of what was bought `price_per_hour` is the price; of a node emptied it is the saving that
    was expected. `saved` is what that has come to since its machine went: until its group bought again a machine of at
    least its price, else until now (`is_saving`).
    """

    number: int
    cycle: int | None
    at: float
    kind: str
    subject: str
    status: str
    why: str
    group: str
    flavour: str
    pods: int
    price_per_hour: str = ""
    saved: str = ""
    is_saving: bool = False


class DecisionPage(msgspec.Struct, frozen=True):
    """Newest first. `before` is what to ask for next; None: there is nothing older in memory. `counts` are of all of
    that time.

    `is_advice`: nothing of it was carried out, it is the course with HTAS. Then `saved` and `saving_per_hour` are
    beside what really ran, as `/recommendation` has them; else of nodes that were emptied.
    """

    version: int
    currency: str
    begins: float | None
    counts: Mapping[str, int]
    is_advice: bool
    saved: str
    saving_per_hour: str
    items: Sequence[DecisionItem]
    before: int | None


def remember(seat: Seat) -> None:
    """Have the chronicle begin with what is on record; where that cannot be read it begins with this process."""
    if seat.reading is None or seat.chronicle.has_looked_back:
        return
    seat.chronicle.has_looked_back = True
    try:
        with seat.reading() as store:
            seat.chronicle.remember(store.cycles(limit=REMEMBERED))
    except HTASError:
        return


def decision_page(
    seat: Seat,
    picture: Picture,
    *,
    kind: str = "",
    text: str = "",
    since: float = 0.0,
    until: float | None = None,
    limit: int = 100,
    before: int | None = None,
) -> DecisionPage:
    """Decisions of a time and a kind, with a text in their subject or reason, older than the one numbered `before`."""
    remember(seat)
    decisions = seat.chronicle.decisions()
    now = seat.present()
    saved = _saved(decisions, now if now is not None else picture.at)
    whole, hourly = _in_all(picture, decisions, saved)
    counts: dict[str, int] = defaultdict(int)
    within = [(i, each) for i, each in enumerate(decisions) if since <= each.at and (until is None or each.at < until)]
    for _, each in within:
        counts[each.kind] += 1
    numbered = [
        (i, each)
        for i, each in within
        if (not kind or each.kind == kind) and (not text or text in each.subject or text in each.why)
    ]
    older = [pair for pair in numbered if before is None or pair[0] < before]
    shown = older[-limit:][::-1]
    return DecisionPage(
        picture.version,
        picture.plan.cost.currency,
        seat.chronicle.begins,
        dict(counts),
        seat.mode == RECOMMEND,
        str(bill_amount(whole)),
        price_text(hourly),
        [_item(i, each, saved.get(i)) for i, each in shown],
        shown[-1][0] if len(older) > limit else None,
    )


def _in_all(picture: Picture, decisions: Sequence[Decision], saved: Mapping[int, tuple[int, bool]]) -> tuple[int, int]:
    """What was saved, and is saved an hour now: beside what really ran where HTAS looks on, else by emptying nodes."""
    told = picture.savings
    if told is not None:
        return told.saved_nano_seconds, told.real.nanos_per_hour - told.with_htas.nanos_per_hour
    hourly = sum(decisions[i].nanos_per_hour or 0 for i, (_, is_saving) in saved.items() if is_saving)
    return sum(amount for amount, _ in saved.values()), hourly


def _item(number: int, each: Decision, saved: tuple[int, bool] | None) -> DecisionItem:
    return DecisionItem(
        number,
        each.cycle,
        each.at,
        each.kind,
        each.subject,
        each.status,
        each.why,
        each.group,
        each.flavour,
        each.pods,
        price_text(each.nanos_per_hour) if each.nanos_per_hour is not None else "",
        str(bill_amount(saved[0])) if saved is not None else "",
        saved is not None and saved[1],
    )


def _saved(decisions: Sequence[Decision], now: float) -> dict[int, tuple[int, bool]]:
    """By the place of a node's emptying: price × seconds saved since its machine went, and whether that goes on."""
    released = {
        each.claim: each.at for each in decisions if each.kind == "delete" and OutcomeStatus(each.status).is_well
    }
    bought: dict[str, list[tuple[float, int]]] = defaultdict(list)
    groups: dict[str, str] = {}
    for each in decisions:
        if each.kind == "launch" and each.nanos_per_hour is not None:
            bought[each.group].append((each.at, each.nanos_per_hour))
            groups[each.claim] = each.group
    saved = {}
    for i, each in enumerate(decisions):
        if each.kind != "drain" or each.nanos_per_hour is None or each.claim not in released:
            continue
        since = released[each.claim]
        group = groups.get(each.claim, "")
        again = next((at for at, nanos in bought[group] if at > since and nanos >= each.nanos_per_hour), None)
        until = again if again is not None else now
        saved[i] = (round(each.nanos_per_hour * max(0.0, until - since)), again is None)
    return saved
