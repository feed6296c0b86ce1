"""Run lengths learned by a daemon, and known to the one after it."""

from __future__ import annotations

from htas.model.pods import RunLength, RunLengthSource
from htas.model.policy import RunLengths
from htas.sandbox.workload import Arrival
from tests.builders import batch_group, make_policy
from tests.stories.play import Story, job

MINUTES_4 = 240.0


def nights(count: int) -> list[Arrival]:
    """Runs of one template, none of which says how long it takes."""
    return [
        job(f"train-{i}", 900.0 * i, MINUTES_4, stated_s=None, template="CronJob/train", image="example.com/train:1")
        for i in range(count)
    ]


def lengths_seen(story: Story) -> list[RunLength | None]:
    return [pod.run_length for result in story.seen for pod in result.snapshot.cluster.pods]


def test_what_ran_before_is_expected_to_take_as_long_again() -> None:
    story = Story(make_policy([batch_group()]), *nights(6)).play(900 * 7)
    story.assert_over(6)
    seen = lengths_seen(story)
    assert seen[0] is None
    last = seen[-1]
    assert last is not None
    assert (last.source, last.basis) == (RunLengthSource.LEARNED, "template")
    assert abs(last.seconds - MINUTES_4) < 25  # a cycle sees the end up to 20 s late where nobody tells when
    assert last.confidence == 1.0
    runs = story.store.runs()
    assert [run.owner for run in runs] == ["CronJob/train"] * 6
    assert all(run.succeeded for run in runs)


def test_another_daemon_knows_it_from_the_store() -> None:
    story = Story(make_policy([batch_group()]), *nights(7)).play(900 * 5 - 60)
    story.crash()
    before = len(story.seen)
    story.play(900 * 6)
    found = [pod.run_length for result in story.seen[before:] for pod in result.snapshot.cluster.pods]
    assert found
    assert all(length is not None and length.basis == "template" for length in found)


def test_learning_can_be_turned_off() -> None:
    policy = make_policy([batch_group()], run_lengths=RunLengths(learn=False))
    story = Story(policy, *nights(6)).play(900 * 7)
    assert set(lengths_seen(story)) == {None}
