"""What a look at the cloud, and the cloud's own usage, make of bills: tables in the cloud's words."""

from __future__ import annotations

import msgspec
import pytest

from htas.execution.bill_life import confirmed, group_of, may_be_of, of_machine, of_missing, price_of
from htas.model.billing import Billing
from htas.model.claims import ClaimState, Instance, InstanceState, NodeClaim, Usage
from htas.model.flavours import Catalogue, ZonePrice
from htas.model.record import Bill
from tests.builders import NOW, make_flavour

CATALOGUE = Catalogue(
    (make_flavour("small", "2", "4Gi", "0.11"), make_flavour("large", "8", "32Gi", "0.88")), "USD", Billing()
)
CHEAP, DEAR = 110_000_000, 880_000_000
CLAIM = NodeClaim("c", "any", "small", ClaimState.READY, NOW, NOW, instance="vm", nanos_per_hour=CHEAP)
OPEN = Bill("c", "any", "small", CHEAP, NOW, instance="vm")


def over(bill: Bill, ended_s: float, *, is_provisional: bool = True) -> Bill:
    return msgspec.structs.replace(bill, ended_at=NOW + ended_s, is_provisional=is_provisional)


def listed(launched_s: float | None = 0.0, ended_s: float | None = None, flavour: str = "small") -> Instance:
    launched, ended = (None if at is None else NOW + at for at in (launched_s, ended_s))
    state = InstanceState.ACTIVE if ended is None else InstanceState.DELETING
    return Instance("vm", "c", flavour, state, NOW - 30, None, "test", "c", "any", launched_at=launched, ended_at=ended)


@pytest.mark.parametrize(
    ("bill", "closed", "machine", "want"),
    [
        pytest.param(None, None, listed(None), [], id="never launched: nothing"),
        pytest.param(None, None, listed(), [OPEN], id="launched: billed from then"),
        pytest.param(OPEN, None, listed(), [], id="it runs on"),
        pytest.param(
            OPEN, None, listed(0, 60), [over(OPEN, 60, is_provisional=False)], id="the list says when it ended"
        ),
        pytest.param(None, over(OPEN, 60, is_provisional=False), listed(0, 60), [], id="that is known already"),
        pytest.param(None, over(OPEN, 60), listed(), [OPEN], id="it was believed to be gone, and is listed again"),
        pytest.param(
            msgspec.structs.replace(OPEN, instance=""), None, listed(), [OPEN], id="an older htas did not know its id"
        ),
        pytest.param(
            msgspec.structs.replace(OPEN, started_at=NOW - 30, instance=""),
            None,
            listed(),
            [OPEN],
            id="an older htas billed its boot",
        ),
        pytest.param(OPEN, None, listed(90), [], id="rebuilt or unshelved: the time before is charged, too"),
        pytest.param(
            OPEN,
            None,
            listed(90, flavour="large"),
            [over(OPEN, 90), Bill("c", "any", "large", DEAR, NOW + 90, instance="vm", part=1)],
            id="resized: the next part begins when the cloud says",
        ),
        pytest.param(
            OPEN,
            None,
            listed(0, flavour="large"),
            [over(OPEN, 100), Bill("c", "any", "large", DEAR, NOW + 100, instance="vm", part=1)],
            id="resized, and the cloud does not say when: now",
        ),
        pytest.param(
            OPEN,
            None,
            listed(700, flavour="large"),
            [over(OPEN, 700), Bill("c", "any", "large", DEAR, NOW + 700, instance="vm", part=1)],
            id="resized, by a clock that is ten minutes ahead: when the cloud says",
        ),
    ],
)
def test_what_a_listed_machine_makes_of_its_bill(
    bill: Bill | None, closed: Bill | None, machine: Instance, want: list[Bill]
) -> None:
    assert of_machine(bill, closed, machine, CLAIM, CATALOGUE, NOW + 100, 1 if bill is OPEN else 0) == want


def claim(state: ClaimState = ClaimState.READY, **fields: float) -> NodeClaim:
    return msgspec.structs.replace(CLAIM, state=state, **{key: NOW + at for key, at in fields.items()})


@pytest.mark.parametrize(
    ("before", "after", "ended_s"),
    [
        pytest.param(claim(), claim(missing_since=50), None, id="a list lacks it: it is given time"),
        pytest.param(
            claim(missing_since=50), claim(ClaimState.FAILED, missing_since=50), 50, id="it went: when first missed"
        ),
        pytest.param(claim(leaving_since=40, missing_since=50), None, 40, id="its delete was accepted then"),
        pytest.param(claim(), None, 100, id="released in this look, and nothing else is known"),
        pytest.param(None, None, 100, id="no claim knows it: found missing now"),
        pytest.param(claim(leaving_since=400), None, 100, id="a clock that was ahead: not later than now"),
        pytest.param(claim(leaving_since=-400), None, 0, id="nor before it began"),
    ],
)
def test_when_a_machine_that_is_not_listed_ended(
    before: NodeClaim | None, after: NodeClaim | None, ended_s: float | None
) -> None:
    found = of_missing(OPEN, before, after, NOW + 100)
    assert found == (None if ended_s is None else over(OPEN, ended_s))


def used(started_s: float, ended_s: float | None, flavour: str = "small") -> Usage:
    return Usage("vm", "c", flavour, NOW + started_s, None if ended_s is None else NOW + ended_s)


RESIZED = [
    msgspec.structs.replace(OPEN, ended_at=NOW + 50, is_provisional=True),
    Bill("c", "any", "large", DEAR, NOW + 50, NOW + 100, "vm", 1, is_provisional=True),
]
FINAL = [msgspec.structs.replace(each, is_provisional=False) for each in RESIZED]


@pytest.mark.parametrize(
    ("parts", "told", "want"),
    [
        pytest.param([over(OPEN, 60)], [used(0, 55)], [over(OPEN, 55, is_provisional=False)], id="it ended earlier"),
        pytest.param([over(OPEN, 60)], [used(0, 60)], [over(OPEN, 60, is_provisional=False)], id="as HTAS saw it"),
        pytest.param([over(OPEN, 60)], [used(0, None)], [], id="charged on, as soft-deleted servers are: asked again"),
        pytest.param(
            [over(OPEN, 60)],
            [used(50, 60)],
            [over(OPEN, 60, is_provisional=False)],
            id="rebuilt: Nova's usage has no longer the time before",
        ),
        pytest.param(RESIZED, [used(50, 100, "large")], FINAL, id="resized: nor the part before"),
        pytest.param([OPEN], [used(0, 60)], [], id="the list has not shown its end yet"),
        pytest.param([OPEN], [used(0, None, "large")], [], id="nor that it was resized"),
        pytest.param(
            RESIZED,
            [used(0, 90, "large")],
            [FINAL[0], msgspec.structs.replace(FINAL[1], ended_at=NOW + 90)],
            id="Nova names the last flavour for all of the time: the parts that were seen stay",
        ),
        pytest.param(
            [over(OPEN, 60)],
            [used(0, 40), used(40, 60, "large")],
            [over(OPEN, 40, is_provisional=False), Bill("c", "any", "large", DEAR, NOW + 40, NOW + 60, "vm", 1)],
            id="resized between two looks: the cloud knows both parts",
        ),
        pytest.param(
            [over(OPEN, 60)],
            [used(0, 60, "special")],
            [Bill("c", "any", "special", 0, NOW, NOW + 60, "vm", is_price_unknown=True)],
            id="of a flavour that has no price",
        ),
    ],
)
def test_what_the_clouds_usage_makes_of_a_machines_bills(
    parts: list[Bill], told: list[Usage], want: list[Bill]
) -> None:
    assert confirmed(parts, told, CATALOGUE, len(parts)) == want


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("prod-batch-0123456789", "batch"),
        ("prod-eu-batch-0123456789", None),
        ("prod-batch-012345678", None),
        ("prod-batch-0123456789-x", None),
        ("prod-eu-gpu-0123456789", "eu-gpu"),
        ("prod-gpu-0123456789", None),
        ("batch-0123456789", None),
        ("", None),
    ],
)
def test_whose_name_it_is(name: str, group: str | None) -> None:
    assert group_of(name, "prod", ["batch", "services", "eu-gpu"]) == group


@pytest.mark.parametrize(
    ("name", "others", "may_be"),
    [
        pytest.param("prod-eu-gpu-0123456789", (), False, id="no other cluster is known"),
        pytest.param("prod-eu-gpu-0123456789", ("prod-eu",), True, id="cluster prod-eu, group gpu"),
        pytest.param("prod-eu-gpu-0123456789", ("prod",), True, id="cluster prod, group eu-gpu"),
        pytest.param("prod-eu-gpu-0123456789", ("prod-us", "pro", "eu"), False, id="none of which it fits"),
    ],
)
def test_a_name_is_compared_with_the_clusters_that_there_are(name: str, others: tuple[str, ...], may_be: bool) -> None:
    assert may_be_of(name, others) is may_be


ZONED = msgspec.structs.replace(
    make_flavour("zoned", "8", "32Gi", "0.11"), zones=("a", "b"), prices=(ZonePrice("a", CHEAP), ZonePrice("b", DEAR))
)
ORDERED = msgspec.structs.replace(CLAIM, flavour="zoned", zone="b", nanos_per_hour=DEAR)


@pytest.mark.parametrize(
    ("prices", "ordered", "zone", "nanos", "is_guess"),
    [
        pytest.param(ZONED.prices, None, "b", DEAR, False, id="its zone is in the price file"),
        pytest.param(ZONED.prices, None, None, CHEAP, True, id="nobody knows its zone"),
        pytest.param(ZONED.prices, None, "c", CHEAP, True, id="its zone is not in the price file"),
        pytest.param((), None, None, CHEAP, False, id="it costs the same everywhere"),
        pytest.param(ZONED.prices[:1], None, None, CHEAP, False, id="no zone of it costs anything else"),
        pytest.param(ZONED.prices, ORDERED, None, DEAR, False, id="ordered in a zone"),
        pytest.param(ZONED.prices, ORDERED, "a", CHEAP, False, id="it is in another zone than was ordered"),
        pytest.param(ZONED.prices, ORDERED, "c", DEAR, True, id="it is where no price is known"),
        pytest.param(
            ZONED.prices, msgspec.structs.replace(ORDERED, zone=None), None, DEAR, True, id="ordered in no zone"
        ),
    ],
)
def test_a_price_is_a_guess_where_zones_differ_and_the_zone_is_not_known(
    prices: tuple[ZonePrice, ...], ordered: NodeClaim | None, zone: str | None, nanos: int, is_guess: bool
) -> None:
    catalogue = Catalogue((msgspec.structs.replace(ZONED, prices=prices),), "USD")
    price, guessed = price_of("zoned", ordered, catalogue, zone)
    assert (price.nanos_per_hour, guessed) == (nanos, is_guess)


def test_the_guess_ends_when_the_cloud_tells_the_zone() -> None:
    catalogue = Catalogue((ZONED,), "USD")
    bill = msgspec.structs.replace(OPEN, flavour="zoned", is_price_unknown=True)
    machine = msgspec.structs.replace(listed(flavour="zoned"), zone="b")
    [told] = of_machine(bill, None, machine, ORDERED, catalogue, NOW + 100, 1)
    assert (told.nanos_per_hour, told.is_price_unknown) == (DEAR, False)
