"""The life of a bill: it is open exactly as long as the cloud charges for its machine. Pure.

Which end counts: the one that the cloud tells, in its list or its usage; else when it accepted the delete; else when
HTAS first found the machine missing. The last two are by HTAS's clock, and so are provisional. The cloud's instants are
compared with each other alone: its clock may be behind or ahead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from htas.model.billing import Price
from htas.model.claims import ClaimState, Instance, NodeClaim, Usage
from htas.model.flavours import Catalogue
from htas.model.record import Bill
from htas.planning.provision.offers import claim_prefix

ROUNDED_S = 1.0
"""Clouds tell a launch in whole seconds in one place and with fractions in another."""
_WITHOUT_NODE = frozenset({ClaimState.WANTED, ClaimState.REQUESTED, ClaimState.ACTIVE})


def price_of(flavour: str, claim: NodeClaim | None, catalogue: Catalogue, zone: str | None) -> tuple[Price, bool]:
    """What a machine costs in its zone, and whether it is a guess: the price file has no price for it there.

    What was ordered costs what it was ordered at. The guess is the price of the order, else that of the cheapest zone,
    or 0 where neither is known.
    """
    known = catalogue.named(flavour)
    ordered = claim if claim is not None and claim.flavour == flavour and claim.nanos_per_hour else None
    if known is None:
        price = claim.price if claim is not None else Price(0)
        return price, ordered is None or bool(ordered.ordered)
    if ordered is not None:
        zone = zone or ordered.zone
        if not known.prices or (zone is not None and zone == ordered.zone):
            return ordered.price, False
    there = known.price_in(zone)
    if there is not None:
        return there, False
    guess = ordered.price if ordered is not None else Price(known.nanos_per_hour, known.cap)
    return guess, zone is not None or any(Price(each.nanos_per_hour, each.cap) != guess for each in known.prices)


def opened(machine: Instance, claim: NodeClaim | None, catalogue: Catalogue, since: float, part: int) -> Bill:
    """The bill of a machine from an instant on."""
    price, is_unknown = price_of(machine.flavour, claim, catalogue, machine.zone)
    return Bill(
        claim=machine.claim or "",
        group=claim.group if claim is not None else machine.group or "",
        flavour=machine.flavour,
        nanos_per_hour=price.nanos_per_hour,
        cap=price.cap,
        started_at=since,
        ended_at=machine.ended_at,
        instance=machine.id,
        part=part,
        is_price_unknown=is_unknown,
    )


def of_machine(
    bill: Bill | None,
    closed: Bill | None,
    machine: Instance,
    claim: NodeClaim | None,
    catalogue: Catalogue,
    now: float,
    part: int,
) -> list[Bill]:
    """What a machine that is listed makes of its bills: the open one, and the one that was closed last.

    `part` is the number of the next bill of its claim. A machine is believed to have changed its flavour once it has a
    node; before that the cloud had not told its flavour yet.

    Nova sets `launched_at` again when it resizes, rebuilds or unshelves: a start that a machine was known by stays.
    """
    if machine.launched_at is None:
        return []
    if bill is None:
        return _anew(closed, machine, claim, catalogue, part)
    known = bill
    if not bill.instance and bill.started_at < machine.launched_at - ROUNDED_S:
        bill = msgspec.structs.replace(bill, started_at=machine.launched_at)
    bill = msgspec.structs.replace(bill, instance=machine.id)
    if machine.flavour and machine.flavour != bill.flavour:
        if claim is not None and claim.state not in _WITHOUT_NODE:
            resized_at = machine.launched_at if bill.started_at + ROUNDED_S < machine.launched_at else now
            over = msgspec.structs.replace(bill, ended_at=resized_at, is_provisional=True)
            return [over, opened(machine, claim, catalogue, resized_at, part)]
        bill = opened(machine, claim, catalogue, bill.started_at, bill.part)
    elif claim is not None and claim.instance == machine.id and bill.flavour == claim.flavour:
        # Nova may say only later in which zone it is.
        is_guess = bill.is_price_unknown and catalogue.price(bill.flavour, machine.zone) != claim.price
        bill = msgspec.structs.replace(
            bill, nanos_per_hour=claim.nanos_per_hour, cap=claim.cap, is_price_unknown=is_guess
        )
    bill = msgspec.structs.replace(bill, ended_at=machine.ended_at)
    return [bill] if bill != known else []


def _anew(
    closed: Bill | None, machine: Instance, claim: NodeClaim | None, catalogue: Catalogue, part: int
) -> list[Bill]:
    assert machine.launched_at is not None, "nothing is charged before"
    if closed is None:
        return [opened(machine, claim, catalogue, machine.launched_at, part)]
    if closed.ended_at == machine.ended_at:
        return []
    if (
        machine.ended_at is not None or closed.is_provisional
    ):  # the cloud knows better when it ended, or that it did not
        return [msgspec.structs.replace(closed, ended_at=machine.ended_at, is_provisional=False)]
    return [opened(machine, claim, catalogue, closed.ended_at or machine.launched_at, part)]


def of_missing(bill: Bill, before: NodeClaim | None, after: NodeClaim | None, now: float) -> Bill | None:
    """The bill of a machine that is not listed, with its end; None: lists lag behind, and the machine is given time.

    `before` and `after` are the claim as this look at the cloud found it and as it left it; None: released.
    """
    known = after if after is not None else before
    is_its = known is not None and (known.instance is None or bill.instance in ("", known.instance))
    if after is not None and is_its and after.state is not ClaimState.FAILED:
        return None
    seen = (known.leaving_since or known.missing_since) if known is not None and is_its else None
    end = max(bill.started_at, min(now, seen if seen is not None else now))
    return msgspec.structs.replace(bill, ended_at=end, is_provisional=True)


def confirmed(parts: Sequence[Bill], told: Sequence[Usage], catalogue: Catalogue, first_part: int) -> list[Bill]:
    """The bills of one machine as the cloud's usage has them; those that change.

    Where the usage has fewer parts than HTAS saw (Nova names the last flavour for all of the time), the first start and
    the last end alone are taken over. A later first start is Nova's last resize or rebuild: the bill keeps its own. An
    open bill stays open: its end is seen in the list first.
    """
    told = sorted(told, key=lambda each: each.started_at)
    if parts[0].instance and told[0].started_at > parts[0].started_at:
        told[0] = msgspec.structs.replace(told[0], started_at=parts[0].started_at)
    if len(told) < len(parts):
        first = min(told[0].started_at, parts[0].ended_at or told[0].started_at)
        final = [msgspec.structs.replace(parts[0], started_at=first), *parts[1:]]
    else:
        more = [msgspec.structs.replace(parts[-1], part=first_part + i) for i in range(len(told) - len(parts))]
        prices = {part.flavour: (part.price, part.is_price_unknown) for part in parts}
        final = [_as_told(part, use, prices, catalogue) for part, use in zip([*parts, *more], told, strict=True)]
    over = [msgspec.structs.replace(each, is_provisional=False) for each in final[:-1]]
    last, ends = final[-1], told[-1].ended_at
    if parts[-1].ended_at is None:
        last = msgspec.structs.replace(last, ended_at=None)
    elif ends is None:
        last = msgspec.structs.replace(last, ended_at=parts[-1].ended_at, is_provisional=True)
    else:
        last = msgspec.structs.replace(last, ended_at=max(ends, last.started_at), is_provisional=False)
    known = {part.id: part for part in parts}
    return [each for each in (*over, last) if known.get(each.id) != each]


def _as_told(part: Bill, use: Usage, prices: Mapping[str, tuple[Price, bool]], catalogue: Catalogue) -> Bill:
    """A bill for the time and the flavour that the cloud tells; what is open has the flavour that the list shows."""
    part = msgspec.structs.replace(part, started_at=use.started_at, ended_at=use.ended_at)
    if part.ended_at is None or use.flavour == part.flavour:
        return part
    price, is_unknown = prices.get(use.flavour) or price_of(use.flavour, None, catalogue, None)
    return msgspec.structs.replace(
        part,
        flavour=use.flavour,
        nanos_per_hour=price.nanos_per_hour,
        cap=price.cap,
        is_price_unknown=is_unknown,
    )


def found_later(told: Iterable[Usage], group: str, catalogue: Catalogue, part: int) -> list[Bill]:
    """The bills of a machine of ours that came and went unseen."""
    bills = []
    for index, use in enumerate(sorted(told, key=lambda each: each.started_at)):
        price, is_unknown = price_of(use.flavour, None, catalogue, None)
        bills.append(
            Bill(
                claim=use.name,
                group=group,
                flavour=use.flavour,
                nanos_per_hour=price.nanos_per_hour,
                cap=price.cap,
                started_at=use.started_at,
                ended_at=use.ended_at,
                instance=use.instance,
                part=part + index,
                is_price_unknown=is_unknown,
            )
        )
    return bills


_DIGEST = re.compile(r"-[0-9a-f]{10}$")


def group_of(name: str, cluster: str, groups: Iterable[str]) -> str | None:
    """The group of a machine that bears the name of a claim of this cluster; None: it is no such name."""
    for group in groups:
        prefix = claim_prefix(cluster, group)
        if name.startswith(prefix) and _DIGEST.fullmatch(name[len(prefix) :]):
            return group
    return None


def may_be_of(name: str, clusters: Iterable[str]) -> bool:
    """Whether a claim's name fits one of some clusters, whatever their groups are called.

    `prod-eu-gpu` is cluster prod with group eu-gpu, or cluster prod-eu with group gpu. Such a name cannot be split at a
    hyphen: it is compared with the clusters that there are.
    """
    return any(name.startswith(f"{cluster}-") for cluster in clusters)


def by_machine(told: Iterable[Usage]) -> Mapping[str, list[Usage]]:
    """Usage by the machine's id."""
    found: dict[str, list[Usage]] = {}
    for each in told:
        found.setdefault(each.instance, []).append(each)
    return found
