"""Machines billed by the hour: a node that is hardly used is emptied just before its paid hour ends, and is gone by then."""

from __future__ import annotations

import pytest

from htas.model.billing import Billing
from htas.model.flavours import Catalogue
from htas.model.policy import CleaningRules, Consolidation, NodeGroup, Policy
from htas.model.reasons import Kept
from htas.sandbox.workload import Arrival
from tests.builders import make_flavour, make_policy
from tests.stories.play import Story, job, service

MOVES = {"htas.io/migrate": "true"}
PLAIN = make_flavour("m", "2", "4Gi", "0.1")


def policy(period_s: int) -> Policy:
    rules = CleaningRules(underutilized_for_s=60, queue_empty_for_s=60)
    catalogue = Catalogue((PLAIN,), billing=Billing(period_s, period_s))
    return make_policy([NodeGroup("any", cleaning=rules)], catalogue=catalogue)


def two_machines() -> list[Arrival]:
    """Each is filled by a job of ten minutes and a service; then one machine is superfluous."""
    return [
        *(job(f"short-{i}", 10 * i, 600, 1500, 3.0) for i in range(2)),
        *(service(f"web-{i}", 1, 10 * i, disruption=MOVES) for i in range(2)),
    ]


@pytest.mark.parametrize(
    ("period_s", "earliest_s", "latest_s"),
    [
        pytest.param(3600, 3200, 3600, id="by the hour: in the last minutes of the hour, and gone before the next"),
        pytest.param(60, 60, 1500, id="by the minute: as soon as it is known to be little used"),
    ],
)
def test_a_hardly_used_machine_goes_when_that_saves_something(
    period_s: int, earliest_s: float, latest_s: float
) -> None:
    story = Story(policy(period_s), *two_machines()).play(3 * 3600)
    ended = [each for each in story.world.ledger.rentals if each.ended_at is not None]
    held = [each.ended_at - each.started_at for each in ended if each.ended_at is not None]
    assert held
    assert all(earliest_s < seconds <= latest_s for seconds in held)
    told = {kept.message for result in story.seen for kept in result.plan.kept if kept.reason is WAITS}
    assert bool(told) is (period_s == 3600)
    assert all("but paid for until " in message for message in told)
    assert len(story.nodes) == 1
    story.assert_whole()


WAITS = Kept.DRAINS_BEFORE_PERIOD_ENDS


def test_machines_are_replaced_when_their_hour_is_nearly_full() -> None:
    """Two machines become cheaper ones, for which they are rented no hour longer."""
    large, dear = make_flavour("large", "8", "16Gi", "0.40"), make_flavour("small", "2", "4Gi", "0.20")
    rules = CleaningRules(
        underutilized_for_s=60,
        queue_empty_for_s=60,
        utilization_threshold=0.3,
        consolidation=Consolidation(enabled=True, after_s=600.0, cool_down_s=600.0),
    )
    before = Catalogue((large, dear), billing=Billing(3600, 3600))
    story = Story(
        make_policy([NodeGroup("any", cleaning=rules)], catalogue=before), service("web", 32, disruption=MOVES)
    )
    story.play(600)
    cheap = make_flavour("small", "2", "4Gi", "0.04")
    story.policy = make_policy(
        [NodeGroup("any", cleaning=rules)], catalogue=Catalogue((large, cheap), billing=Billing(3600, 3600))
    )
    story.daemon.adopt(story.policy)
    story.play(3 * 3600)
    held = [each.ended_at - each.started_at for each in story.world.ledger.rentals if each.ended_at is not None]
    assert len(held) == 2
    assert all(3000 < seconds <= 3600 for seconds in held)
    story.assert_whole()


@pytest.mark.parametrize("boot_s", [60, 300])
@pytest.mark.parametrize("threshold", [pytest.param(0.1, id="well used"), 0.3, 0.5])
def test_what_replaces_a_machine_is_bought_before_its_hour_ends(threshold: float, boot_s: int) -> None:
    """A small service has eight cores to itself when a cheap flavour comes; one hour of the large machine is paid."""
    large, small = make_flavour("large", "8", "16Gi", "0.40"), make_flavour("small", "2", "4Gi", "0.04")
    rules = CleaningRules(
        underutilized_for_s=60,
        queue_empty_for_s=60,
        utilization_threshold=threshold,
        consolidation=Consolidation(enabled=True, after_s=600.0, cool_down_s=600.0),
    )
    groups, hourly = [NodeGroup("any", cleaning=rules, startup_s=boot_s)], Billing(3600, 3600)
    policy = make_policy(groups, catalogue=Catalogue((large,), billing=hourly))
    story = Story(policy, service("web", 1, disruption=MOVES), startup_s=boot_s).play(600)
    story.policy = make_policy(groups, catalogue=Catalogue((large, small), billing=hourly))
    story.daemon.adopt(story.policy)
    story.play(3600)
    ended = [each.ended_at - each.started_at for each in story.world.ledger.rentals if each.ended_at is not None]
    assert len(ended) == 1
    assert 3000 < ended[0] <= 3600
    assert len(story.nodes) == 1
    story.assert_whole()
