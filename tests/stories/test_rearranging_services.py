"""Stories of services that make room for other work: they are missed for what is more important alone."""

from __future__ import annotations

import pytest

from htas.model.migrations import Refusal
from htas.model.moves import MigrationMethod
from htas.model.reasons import OutcomeReason
from htas.ports import MoveRefusedError, PermanentError
from tests.builders import make_node
from tests.stories.test_rearranging import Foretold, Full, web


def crowded(replicas: int, priority: int, optimizer: Foretold | None = None) -> Full:
    """`api` runs on a, as many cores as it has pods; `big` comes, for which all but one of them have to go to b."""
    there = [make_node("a", str(2 * replicas), "64Gi"), make_node("b", str(replicas), "64Gi")]
    work = [web("api", 1000, replicas=replicas), web("big", 1000 * (2 * replicas - 1), at_s=60, priority=priority)]
    placed = {f"api-{i + 1}": "a" for i in range(replicas)}
    return Full(there, placed, work, optimizer)


def fewest_ready(story: Full, of: str, until_s: int, from_s: int = 40) -> int:
    """The fewest pods of a service that are Ready at any second of a time."""
    fewest = 1000
    for second in range(from_s, until_s):
        story.play(second)
        pods = [pod for pod in story.world.cluster.observe().pods if pod.name.startswith(f"{of}-")]
        fewest = min(fewest, sum(pod.ready_since is not None and not pod.is_terminating for pod in pods))
    return fewest


@pytest.mark.parametrize(("replicas", "ready"), [(5, 4), (8, 6)])
def test_a_service_that_makes_room_for_its_equals_is_moved_a_quarter_at_a_time(replicas: int, ready: int) -> None:
    story = crowded(replicas, priority=0)
    assert fewest_ready(story, "api", 240) == ready
    assert (story.on("a"), story.all_run(), story.world.ledger.evictions) == ({"api", "big"}, True, replicas - 1)
    assert len(story.told("rearranged")) == 1
    story.assert_whole()


def test_more_important_work_waits_for_nobody() -> None:
    story = crowded(5, priority=10)
    assert fewest_ready(story, "api", 240) == 1
    assert (story.on("a"), story.all_run(), story.world.ledger.evictions) == ({"api", "big"}, True, 4)


def test_a_service_that_is_starting_is_left_where_it_is_and_the_rearrangement_ends_in_time() -> None:
    """The pods that come to b hang there: one is missed, and after `timeouts.drain` nobody is asked for any more."""
    story = crowded(5, priority=0)
    story.world.cluster.faults.starts_nothing.add("b")
    assert fewest_ready(story, "api", 900) == 4
    cancelled = [message.partition(":")[0] for message in story.told("cancel-rearrangement")]
    assert (cancelled[0], story.world.ledger.evictions) == (OutcomeReason.TIMED_OUT.value, 1)
    story.assert_whole()


@pytest.mark.parametrize("call", ["migrate", "checkpoint"])
def test_pods_that_cannot_be_moved_are_evicted_to_their_slots_a_quarter_at_a_time(call: str) -> None:
    """Checkpoints would have moved all of them at once; none of them can be made."""
    found = Foretold({f"api-{i}": "b" for i in range(1, 5)}, {"big-1": "a"}, MigrationMethod.CHECKPOINT)
    story = crowded(5, 0, optimizer=found)
    error = MoveRefusedError(Refusal.DEVICE, "claims a device") if call == "migrate" else PermanentError("criu: no")
    for _ in range(4):
        story.world.migration.faults.arrange(call, error)
    assert fewest_ready(story, "api", 300) == 4
    assert (story.on("a"), story.all_run(), story.world.ledger.evictions) == ({"api", "big"}, True, 4)
    assert len(story.told("rearranged")) == 1
    story.assert_whole()


@pytest.mark.parametrize("moment", range(102, 110))
def test_a_crash_while_they_are_evicted_one_by_one_makes_no_more_of_them_leave(moment: int) -> None:
    """What a crash makes the daemon forget, that their moves were refused, is in its journal."""
    found = Foretold({f"api-{i}": "b" for i in range(1, 5)}, {"big-1": "a"}, MigrationMethod.CHECKPOINT)
    story = crowded(5, 0, optimizer=found)
    for _ in range(4):
        story.world.migration.faults.arrange("checkpoint", PermanentError("criu: no"))
    before = fewest_ready(story, "api", moment)
    story.crash()
    assert min(before, fewest_ready(story, "api", 300, moment)) == 4
    assert (story.on("a"), story.all_run()) == ({"api", "big"}, True)
    assert (story.world.ledger.evictions, story.world.ledger.migrations) == (4, 0)
