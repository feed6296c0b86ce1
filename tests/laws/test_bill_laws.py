"""Laws of bills: whatever goes wrong with machines, Σ bills = Σ the sandbox cloud's own usage, to the last digit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from htas.model.billing import Billing
from htas.model.flavours import Catalogue
from htas.model.policy import NodeGroup
from htas.ports import HTASError, TransientError
from htas.profiler.accounts import total
from htas.sandbox.cloud import Boot, Chances
from htas.sandbox.world import World
from tests.builders import make_flavour, make_policy
from tests.stories.play import Story, job
from tests.stories.test_bills import by_another_clock

FLAVOURS = (make_flavour("small", "2", "4Gi", "0.11"), make_flavour("large", "8", "32Gi", "0.88"))
HOUR = 3600.0


def with_one(act: Callable[[World, str, Random], None]) -> Callable[[Story, Random], None]:
    """Something befalls a machine that the cloud charges for, if there is one."""

    def befall(story: Story, random: Random) -> None:
        cloud = story.world.cloud
        with suppress(HTASError):  # an operator loses answers, too
            there = sorted(i.id for i in cloud.instances() if i.ended_at is None and i.launched_at is not None)
            if there:
                act(story.world, random.choice(there), random)

    return befall


def crash_for_a_while(story: Story, random: Random) -> None:
    story.world.advance_to(story.world.clock.now() + random.choice((1.0, 300.0, 2 * HOUR)))
    story.crash()


FAULTS: tuple[Callable[[Story, Random], None], ...] = (
    with_one(lambda world, machine, _: world.cloud.break_down(machine)),
    with_one(lambda world, machine, _: world.cloud.vanish(machine)),
    with_one(lambda world, machine, _: world.cloud.delete(machine)),
    with_one(lambda world, machine, random: world.cloud.resize(machine, random.choice(FLAVOURS))),
    with_one(lambda world, machine, _: world.cloud.rebuild(machine)),
    lambda story, random: story.world.cloud.arrange_boot(random.choice(list(Boot))),
    lambda story, random: story.world.cloud.arrange_flavour(random.choice(FLAVOURS)),
    lambda story, random: story.world.cloud.leave_unanswered(random.choice(("create", "delete"))),
    lambda story, _: story.world.cloud.forget_deletes(1),
    lambda story, _: story.world.cloud.faults.arrange("usage", TransientError("503")),
    lambda story, _: story.world.cloud.faults.arrange("instances", TransientError("503")),
    lambda story, random: story.world.cloud.faults.arrange(random.choice(("create", "delete")), TransientError("503")),
    crash_for_a_while,
)


@settings(max_examples=25, deadline=None, derandomize=True, phases=(Phase.generate,))
@given(st.integers(0, 10**6))
def test_bills_add_up_to_what_the_cloud_charged(seed: int) -> None:
    story, billing = a_day(seed)
    now = story.world.clock.now()
    assert billed(story) == charged(story)
    assert total(story.store.bills(), billing, now) == story.world.ledger.nano_seconds(billing, now)
    assert (story.daemon.bookkeeper.unconfirmed, story.store.claims()) == (0, [])


@settings(max_examples=12, deadline=None, derandomize=True, phases=(Phase.generate,))
@given(st.integers(0, 10**6), st.sampled_from([-12 * HOUR, -600.0, 600.0]))
def test_bills_are_what_a_cloud_of_another_clock_charged(seed: int, ahead_s: float) -> None:
    """Start and end are by its clock, to the millisecond: an instant of ours in either would be off by all of it."""
    story, _ = a_day(seed, ahead_s)
    moved = [
        (machine, flavour, round(start + ahead_s, 3), end and round(end + ahead_s, 3))
        for machine, flavour, start, end in charged(story)
    ]
    assert [(*each[:2], *(at and round(at, 3) for at in each[2:])) for each in billed(story)] == moved
    assert (story.daemon.bookkeeper.unconfirmed, story.store.claims()) == (0, [])


def a_day(seed: int, ahead_s: float = 0.0) -> tuple[Story, Billing]:
    """Twelve jobs in an hour or so, up to twelve faults meanwhile, and time for all of it to end.

    The cloud's clock is so much ahead of ours.
    """
    random = Random(seed)
    billing = random.choice((Billing(), Billing(granularity_s=60), Billing(granularity_s=3600)))
    policy = make_policy([NodeGroup("any")], catalogue=Catalogue(FLAVOURS, "USD", billing))
    work = [job(f"job-{i}", i * 400.0, runs_s=random.uniform(60, 2000), cpu_m=1500) for i in range(12)]
    story = Story(policy, *work, chances=Chances(out_of_stock=random.choice((0.0, 0.2))), seed=seed)
    story.world.cloud.charges_from_launch = random.random() < 0.5
    if ahead_s:
        by_another_clock(story, ahead_s)
    for _ in range(random.randint(1, 12)):
        story.driver.run_until(story.world.clock.now() + random.uniform(5.0, 900.0))
        random.choice(FAULTS)(story, random)
    story.driver.run_until(story.world.clock.now() + 8 * HOUR)
    return story, billing


def charged(story: Story) -> list[tuple[str, str, float, float | None]]:
    rentals = story.world.ledger.rentals
    return sorted((each.instance, each.flavour, each.started_at, each.ended_at) for each in rentals)


def billed(story: Story) -> list[tuple[str, str, float, float | None]]:
    return sorted((each.instance, each.flavour, each.started_at, each.ended_at) for each in story.store.bills())
