"""Whatever becomes of a machine, its bill is the cloud's: open exactly as long as the cloud charges for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.model.claims import ClaimState, Instance, InstanceState, Usage
from htas.model.flavours import Flavour
from htas.model.outcomes import Action
from htas.model.policy import NodeGroup, Policy
from htas.model.record import Bill
from htas.ports import RefusedError, TransientError
from htas.profiler.accounts import nano_seconds
from htas.sandbox.cloud import Boot, Chances
from htas.sandbox.ledger import Rental
from tests.builders import make_flavour, make_policy
from tests.stories.play import Story, job, service

MINUTE, HOUR = 60.0, 3600.0
SMALL = make_flavour("small", "2", "4Gi", "0.11")
LARGE = make_flavour("large", "8", "32Gi", "0.88")
UNPRICED = make_flavour("special", "4", "8Gi", "0.50")
Fault = Callable[[Story], None]


def policy(*flavours: Flavour) -> Policy:
    return make_policy([NodeGroup("any")], list(flavours) or [SMALL])


Span = tuple[str, float, float | None, int]


def spans(story: Story) -> list[Span]:
    """What HTAS billed: flavour, from when to when since the story began, price."""
    return _since(story.start, ((b.flavour, b.started_at, b.ended_at, b.nanos_per_hour) for b in story.store.bills()))


def invoiced(story: Story) -> list[Span]:
    """The same as the sandbox's cloud has it."""
    rentals = story.world.ledger.rentals
    return _since(story.start, ((r.flavour, r.started_at, r.ended_at, r.nanos_per_hour) for r in rentals))


def _since(start: float, found: Iterable[Span]) -> list[Span]:
    moved = ((name, at - start, None if end is None else end - start, price) for name, at, end, price in found)
    return sorted(moved, key=lambda each: (each[0], each[1], str(each[2])))


def assert_billed_as_invoiced(story: Story) -> None:
    assert spans(story) == invoiced(story)
    billing, now = story.policy.catalogue.billing, story.world.clock.now()
    ours = sum(nano_seconds(bill, billing, now) for bill in story.store.bills())
    assert ours == story.world.ledger.nano_seconds(billing, now) > 0
    assert not story.daemon.bookkeeper.unconfirmed


def machine(story: Story) -> str:
    [found] = [each for each in story.world.cloud.instances() if each.ended_at is None]
    return found.id


def boots(boot: Boot) -> Fault:
    return lambda story: story.world.cloud.arrange_boot(boot)


def delete_by_hand(story: Story) -> None:
    story.world.cloud.delete(machine(story))


def vanish_while_away(story: Story) -> None:
    """The daemon is down when the machine goes, and comes back two hours later."""
    story.world.cloud.vanish(machine(story))
    story.world.advance_to(story.world.clock.now() + 2 * HOUR)
    story.crash()


def change_daemons_and_break(story: Story) -> None:
    lose_the_journal(story)
    story.world.cloud.break_down(machine(story))


def lose_the_journal(story: Story) -> None:
    """Another daemon takes over with a journal of its own; what was billed before begins anew with the machine."""
    story.store = SqliteStore(":memory:")
    story.crash()


BEFORE: dict[str, Fault] = {
    "it fails to boot": boots(Boot.FAILS),
    "it never registers": boots(Boot.NEVER_REGISTERS),
    "the answer to its order is lost": lambda story: story.world.cloud.leave_unanswered("create"),
}
DURING: dict[str, Fault] = {
    "it falls into ERROR": lambda story: story.world.cloud.break_down(machine(story)),
    "it vanishes": lambda story: story.world.cloud.vanish(machine(story)),
    "it is deleted by hand": delete_by_hand,
    "it vanishes while the daemon is down": vanish_while_away,
    "the answer to its delete is lost": lambda story: story.world.cloud.leave_unanswered("delete", 3),
    "its delete is forgotten": lambda story: story.world.cloud.forget_deletes(1),
    "another daemon takes over": lose_the_journal,
    "another daemon takes over, and the machine breaks": change_daemons_and_break,
}


@pytest.mark.parametrize(
    "charges_from_launch", [False, True], ids=["charged from its order", "charged from its launch"]
)
@pytest.mark.parametrize("fault", BEFORE.values(), ids=list(BEFORE))
def test_a_machine_that_fails_before_it_is_ready_is_billed_as_the_cloud_charges_it(
    fault: Fault, charges_from_launch: bool
) -> None:
    story = Story(policy(), job("only", runs_s=20 * MINUTE))
    story.world.cloud.charges_from_launch = charges_from_launch
    fault(story)
    story.play(6 * HOUR)
    assert_billed_as_invoiced(story)
    assert (story.store.claims(), story.world.ledger.finished) == ([], 1)


@pytest.mark.parametrize(
    "charges_from_launch", [False, True], ids=["charged from its order", "charged from its launch"]
)
@pytest.mark.parametrize("fault", DURING.values(), ids=list(DURING))
def test_a_machine_that_is_lost_is_billed_until_the_cloud_stops_charging(
    fault: Fault, charges_from_launch: bool
) -> None:
    story = Story(policy(), job("only", runs_s=20 * MINUTE))
    story.world.cloud.charges_from_launch = charges_from_launch
    story.play(7 * MINUTE)
    fault(story)
    story.play(8 * HOUR)
    assert_billed_as_invoiced(story)
    assert not story.store.claims()


def test_a_machine_that_was_never_launched_bills_nothing() -> None:
    """Nova charges from launch: three that failed to boot cost nothing, and the fourth its own time."""
    story = Story(policy(), job("only", runs_s=20 * MINUTE))
    story.world.cloud.charges_from_launch = True
    for _ in range(3):
        story.world.cloud.arrange_boot(Boot.FAILS)
    story.play(6 * HOUR)
    assert (len(spans(story)), story.world.ledger.finished) == (1, 1)
    assert_billed_as_invoiced(story)


def test_a_refused_order_bills_nothing() -> None:
    story = Story(policy(), job("only", runs_s=MINUTE), chances=Chances(out_of_stock=1.0)).play(3 * HOUR)
    assert (story.verbs["launch", "failed"] > 0, story.store.bills()) == (True, [])


def test_without_the_clouds_usage_a_bill_ends_when_the_machine_was_first_missing() -> None:
    """KWOK's cloud, or a role that may not read usage: the minute of the next cycle is the end."""
    story = Story(policy(), job("only", runs_s=20 * MINUTE))
    story.world.cloud.tells_usage = False
    story.play(7 * MINUTE)
    story.world.cloud.vanish(machine(story))
    went = story.world.clock.now() - story.start
    story.play(8 * HOUR)
    first, _ = sorted(spans(story), key=lambda each: each[1])
    assert first[2] is not None
    assert went <= first[2] <= went + MINUTE
    assert not story.daemon.bookkeeper.unconfirmed, "nobody will confirm it"


def test_while_the_cloud_does_not_tell_its_usage_people_know_and_afterwards_the_bill_is_right() -> None:
    story = Story(policy(), service("web", 1))
    story.play(7 * MINUTE)
    story.world.cloud.faults.refuse("usage", RefusedError("os-simple-tenant-usage: 403"))
    story.world.cloud.vanish(machine(story))
    story.play(2 * HOUR)
    assert story.seen[-1].remarks == ("the ends of 1 bills are not confirmed: os-simple-tenant-usage: 403",)
    assert story.seen[-1].unconfirmed_bills == 1
    asked = story.world.cloud.faults.struck["usage"]
    assert asked < 25, "pauses grow to ten minutes"
    story.world.cloud.faults.refuse("usage", None)
    story.play(3 * HOUR)
    assert_billed_as_invoiced(story)
    assert story.seen[-1].remarks == ()


def test_an_end_that_was_not_confirmed_is_confirmed_after_a_restart() -> None:
    story = Story(policy(), job("only", runs_s=20 * MINUTE))
    story.play(7 * MINUTE)
    story.world.cloud.faults.refuse("usage", TransientError("503"))
    story.world.cloud.vanish(machine(story))
    story.play(1 * HOUR)
    story.crash()
    story.play(6 * HOUR)
    story.world.cloud.faults.refuse("usage", None)
    story.crash()
    story.play(7 * HOUR)
    assert_billed_as_invoiced(story)


def test_a_bill_that_an_older_htas_never_closed_is_closed() -> None:
    """It knew no machine's id, and left the bill of a machine in ERROR open for ever."""
    story = Story(policy(), job("only", runs_s=20 * MINUTE)).play(7 * MINUTE)
    story.world.cloud.break_down(machine(story))
    story.play(5 * HOUR)
    gone = min(story.world.ledger.rentals, key=lambda each: each.started_at)
    story.store.put_bill(Bill(gone.claim, "any", gone.flavour, gone.nanos_per_hour, gone.started_at))
    story.crash()
    story.play(6 * HOUR)
    assert_billed_as_invoiced(story)


# A cloud whose clock is not ours.


def by_another_clock(story: Story, ahead_s: float, *, is_list_too: bool = True) -> None:
    """From now on the cloud tells its instants, and reads those it is asked for, by a clock that is ahead of ours."""
    cloud = story.world.cloud
    usage, instances, create = cloud.usage, cloud.instances, cloud.create

    def moved(at: float | None) -> float | None:
        return None if at is None else at + ahead_s

    def shifted(each: Instance) -> Instance:
        launched, ended = moved(each.launched_at), moved(each.ended_at)
        return msgspec.structs.replace(each, created_at=each.created_at + ahead_s, launched_at=launched, ended_at=ended)

    def told(since: float, until: float) -> list[Usage]:
        found = usage(since - ahead_s, until - ahead_s) or ()
        return [
            msgspec.structs.replace(each, started_at=each.started_at + ahead_s, ended_at=moved(each.ended_at))
            for each in found
        ]

    cloud.usage = told  # type: ignore[method-assign] # the cloud as it may be, not our code
    if is_list_too:
        cloud.instances = lambda: tuple(shifted(each) for each in instances())  # type: ignore[method-assign]
        cloud.create = lambda *asked: shifted(create(*asked))  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("ahead_s", "is_list_too"),
    [
        pytest.param(-10 * MINUTE, True, id="ten minutes behind"),
        pytest.param(-10 * MINUTE, False, id="its usage alone is ten minutes behind"),
        pytest.param(10 * MINUTE, True, id="ten minutes ahead"),
        pytest.param(-12 * HOUR, True, id="local time, behind"),
        pytest.param(14 * HOUR, True, id="local time, ahead"),
    ],
)
@pytest.mark.parametrize("fault", DURING.values(), ids=list(DURING))
def test_a_bill_is_as_long_as_by_the_clouds_clock_whatever_ours_says(
    fault: Fault, ahead_s: float, is_list_too: bool
) -> None:
    story = Story(policy(), job("only", runs_s=20 * MINUTE), job("later", at_s=2 * HOUR, runs_s=20 * MINUTE))
    by_another_clock(story, ahead_s, is_list_too=is_list_too)
    story.play(7 * MINUTE)
    fault(story)
    story.play(30 * HOUR)
    lengths = [[(ended or at) - at for _, at, ended, _ in found] for found in (spans(story), invoiced(story))]
    assert lengths[0] == lengths[1]
    if is_list_too:
        assert [span[1] for span in spans(story)] == [span[1] + ahead_s for span in invoiced(story)]
    assert not story.store.claims()
    assert not story.daemon.bookkeeper.unconfirmed


# Another flavour than was ordered.


def test_a_machine_of_another_flavour_is_billed_and_seen_as_what_it_is() -> None:
    """Small was ordered at 0.11, large came at 0.88: the bill is 0.88, and it is told once."""
    story = Story(policy(SMALL, LARGE), job("only", runs_s=HOUR, cpu_m=1500))
    story.world.cloud.arrange_flavour(LARGE)
    story.play(30 * MINUTE)
    [claim] = story.store.claims()
    assert (claim.flavour, claim.ordered, claim.nanos_per_hour) == ("large", "small", 880_000_000)
    [node] = story.world.cluster.observe().nodes
    assert node.flavour == "large", "its label named what was ordered"
    assert story.seen[-1].plan.cost.before_nanos == 880_000_000
    [told] = [message for message in story.messages if message.startswith("other-flavour")]
    assert "HTAS launched small, and the cloud started large: billed at 0.88 USD/h (small: 0.11)" in told
    story.play(6 * HOUR)
    assert_billed_as_invoiced(story)
    assert {each[0] for each in spans(story)} >= {"large"}
    assert story.world.ledger.finished == 1


def test_a_flavour_without_a_price_is_billed_as_ordered_and_marked() -> None:
    story = Story(policy(SMALL), job("only", runs_s=HOUR, cpu_m=1500))
    story.world.cloud.arrange_flavour(UNPRICED)
    story.play(6 * HOUR)
    [bill] = story.store.bills()
    assert (bill.flavour, bill.nanos_per_hour, bill.is_price_unknown) == ("special", 110_000_000, True)
    [told] = [message for message in story.messages if message.startswith("other-flavour")]
    assert (
        "special, which is not in the price file: billed at the price of small, 0.11 USD/h; add special to it" in told
    )
    assert [span[1:3] for span in spans(story)] == [span[1:3] for span in invoiced(story)]
    assert (story.world.ledger.finished, story.world.ledger.lost) == (1, 0)


def test_a_resized_machine_has_a_bill_in_two_parts() -> None:
    story = Story(policy(SMALL, LARGE), service("web", 3)).play(20 * MINUTE)
    story.world.cloud.resize(machine(story), LARGE)
    story.play(40 * MINUTE)
    assert_billed_as_invoiced(story)
    parts = sorted(spans(story), key=lambda each: each[1])
    assert [part[0] for part in parts] == ["small", "large"]
    assert parts[0][2] == parts[1][1] == 20 * MINUTE
    claim = next(each for each in story.store.claims() if each.state is ClaimState.READY)
    assert claim.flavour == "large"
    assert any("its machine was resized from small to large" in message for message in story.messages)


def test_a_rebuilt_machine_has_one_bill_from_its_first_launch() -> None:
    """Nova sets `launched_at` again: 100 hours of a bill had been lost by that."""
    story = Story(policy(SMALL), service("web", 3)).play(20 * MINUTE)
    [known] = story.world.cloud.instances()
    story.world.cloud.rebuild(known.id)
    story.play(40 * MINUTE)
    assert_billed_as_invoiced(story)
    [bill] = story.store.bills()
    assert bill.started_at == known.launched_at
    [claim] = story.store.claims()
    assert claim.rented_at == known.launched_at, "its paid hours are counted as before"


def test_a_cloud_that_never_starts_what_is_ordered_is_asked_less_and_less() -> None:
    """Every order of small brings large: what was ordered backs off as if it had failed."""
    story = Story(
        policy(SMALL, LARGE), *(job(f"job-{i}", i * 5 * MINUTE, runs_s=4 * MINUTE, cpu_m=1500) for i in range(48))
    )
    for _ in range(100):
        story.world.cloud.arrange_flavour(LARGE)
    story.play(12 * HOUR)
    assert story.world.ledger.finished == 48
    assert_billed_as_invoiced(story)
    told = [message for message in story.messages if message.startswith("other-flavour")]
    assert len(told) <= 12


@pytest.mark.parametrize("is_backwards", [False, True], ids=["told twice", "told twice, with ends before their starts"])
def test_usage_that_repeats_itself_changes_no_bill(is_backwards: bool) -> None:
    story = Story(make_policy(), service("web", 3))
    cloud = story.world.cloud
    true = cloud.usage

    def repeating(since: float, until: float) -> list[Usage]:
        found = list(true(since, until) or ())
        ended = [each for each in found if each.ended_at is not None]
        odd = [msgspec.structs.replace(each, ended_at=each.started_at - 100.0) for each in ended]
        return [*found, *found, *(odd if is_backwards else [])]

    cloud.usage = repeating  # type: ignore[method-assign] # the cloud as it may be, not our code
    story.play(300)
    cloud.vanish(cloud.instances()[0].id)
    story.play(3600)
    bills = story.store.bills()
    assert len(bills) == len(story.world.ledger.rentals)
    assert all(bill.ended_at is None or bill.ended_at >= bill.started_at for bill in bills)


@pytest.mark.parametrize(
    ("cluster", "group", "other", "before_s", "billed", "is_reported"),
    [
        pytest.param("prod", "gpu", None, 60.0, 1, False, id="the store was restored"),
        pytest.param("prod", "eu-gpu", None, 60.0, 1, False, id="a group with a hyphen"),
        pytest.param("prod-eu", "gpu", None, 60.0, 1, False, id="a cluster with a hyphen"),
        pytest.param("prod-eu", "big-gpu", "prod-us", 60.0, 1, False, id="another cluster that it does not fit"),
        pytest.param("prod", "eu-gpu", "prod-eu", 60.0, 0, True, id="it may be of cluster prod-eu"),
        pytest.param("prod-eu", "gpu", "prod", 60.0, 0, True, id="it may be of cluster prod"),
        pytest.param(
            "prod", "gpu", None, -100.0, 0, False, id="launched since HTAS began, and no order was journalled"
        ),
    ],
)
def test_a_deleted_machine_that_nobody_knew_is_billed_where_it_can_be_no_other_clusters(
    cluster: str, group: str, other: str | None, before_s: float, billed: int, is_reported: bool
) -> None:
    work = [job("first", runs_s=60.0), job("second", at_s=12 * MINUTE, runs_s=60.0)]
    story = Story(make_policy([NodeGroup(group)], [SMALL], cluster=cluster), *work).play(10 * MINUTE)
    now = story.world.clock.now()
    story.crash()
    if other is not None:
        story.world.cloud.add_foreign(
            Instance("theirs", f"{other}-x-9876543210", "small", InstanceState.ACTIVE, now, None, other, "x", "x")
        )
    story.world.ledger.rentals.append(
        Rental("lost", f"{cluster}-{group}-0123456789", "small", 1, now - before_s, now - before_s + 10)
    )
    story.play(30 * MINUTE)
    found = [bill.group for bill in story.store.bills() if bill.instance == "lost"]
    assert found == [group] * billed
    failed = [o for r in story.seen for o in r.outcomes if (o.action, o.status) == (Action.RECONCILE, "failed")]
    assert len(failed) == is_reported, "it is reported once"
    assert bool(story.daemon.bookkeeper.remarks) is is_reported
