"""What is on record: across restarts, with a disk that is full, and of work that others bound."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.model.disruptions import Drain, drains_of
from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT, SCALE_DOWN_DISABLED
from htas.model.policy import CleaningRules
from htas.model.record import ProfileEvent, ProfileRow, Run
from htas.ports import TransientError
from htas.profiler.stays import running
from htas.sandbox.workload import Arrival, ControllerKind, Task
from tests.builders import amounts, batch_group, make_flavour, make_policy
from tests.stories.play import Story, job, service


def test_what_ended_while_no_daemon_looked_is_on_record_all_the_same() -> None:
    story = Story(None, job("one", runs_s=600)).play(300)
    (machine,) = story.nodes
    story.world.advance_to(story.start + 1500)  # it ends, and nobody sees it
    story.world.cloud.delete(story.world.cloud.instances()[0].id)
    story.world.advance_to(story.start + 1800)
    story.crash()
    story.play(3600)
    (run,) = story.store.runs()
    assert (run.pod, run.node, run.succeeded) == ("one-1", machine, True)
    assert [row.event for row in story.store.profile(machine)][-1] is ProfileEvent.DEPROVISIONING
    assert machine not in {row.instance_name for row in story.store.latest()}


def test_a_run_that_is_on_record_is_not_told_anew_after_a_restart() -> None:
    """The newest cycle on record may still show its pod, since a pod's end alone is no reason to record one."""
    story = Story(make_policy(), service("web", 1), job("one", runs_s=600), job("two", 1500.0, 300)).play(1400)
    (before,) = story.store.runs()
    story.crash()
    cluster = story.world.cluster
    cluster._ended.clear()  # as an API server that has deleted the pod
    cluster._touch()
    story.play(3000)
    assert [run.pod for run in story.store.runs()] == ["one-1", "two-1"]
    assert story.store.runs()[0] == before
    assert before.succeeded


def test_the_newest_cycle_on_record_names_all_that_runs() -> None:
    other = Task("other", amounts("10m", "16Mi", 1), scheduler="default-scheduler")
    story = Story(
        make_policy(flavours=[make_flavour("large", "4", "8Gi", "0.10")]),
        service("web", 2),
        Arrival(400.0, other, ControllerKind.REPLICA_SET),
    ).play(300)
    waiting = next(pod for pod in story.play(410).world.cluster.observe().pods if pod.node is None)
    story.world.cluster.bind(waiting, story.nodes[0])  # by its own scheduler: no doing of ours
    story.play(3000)
    (newest,) = story.store.cycles(limit=1)
    assert {run.pod for run in running(newest.snapshot)} == {"web-1", "web-2", "other-1"}


class FullDisk(SqliteStore):
    """A file on a disk that has no room for history."""

    is_full = False

    def add_profile(self, rows: Iterable[ProfileRow]) -> None:
        if self.is_full:
            raise TransientError("database or disk is full")
        super().add_profile(rows)

    def add_runs(self, runs: Iterable[Run]) -> None:
        if self.is_full:
            raise TransientError("database or disk is full")
        super().add_runs(runs)


def test_a_record_that_cannot_be_written_stops_no_work_and_is_written_later() -> None:
    story = Story(None, job("one", runs_s=100), job("two", at_s=300, runs_s=100))
    story.store = disk = FullDisk(":memory:")
    story.crash()
    disk.is_full = True
    story.play(1500)
    assert story.world.ledger.finished == 2
    assert list(disk.runs()) == []
    disk.is_full = False
    story.play(4000).assert_over(2)
    assert sorted(run.pod for run in disk.runs()) == ["one-1", "two-1"]


@pytest.mark.parametrize("annotation", [SCALE_DOWN_DISABLED, DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT])
def test_an_empty_node_that_may_not_go_is_kept_though_an_old_drain_says_otherwise(annotation: str) -> None:
    """Such as one that another leader undid while it was cut off from the journal that both share."""
    for_ever = CleaningRules(empty_for_s=10**9, underutilized_for_s=10**9)
    story = Story(
        make_policy([batch_group(cleaning=for_ever)]), job("one", runs_s=60), job("two", 410, 900, 4000)
    ).play(400)
    (name,) = story.nodes
    cluster = story.world.cluster
    (node,) = cluster.observe().nodes
    cluster.add_node(msgspec.structs.replace(node, annotations={annotation: "true"}))
    (claim,) = story.store.claims()
    story.store.put_disruption(Drain(name, claim.id, "Underutilized", story.world.clock.now()))
    story.play(900)
    assert name in story.nodes
    assert not drains_of(story.store.disruptions())
    assert not any(node.is_draining for node in cluster.observe().nodes)


def test_a_machine_that_is_on_its_way_out_is_not_taken_back() -> None:
    """When it turns out late that another daemon led: what was wanted is dropped, what was told to go goes."""
    story = Story(None, job("one", runs_s=60), job("two", 4000.0, 60))
    at = next(at for at in range(100, 3000) if story.play(at).store.claims() and story.store.claims()[0].leaving_since)
    (claim,) = story.store.claims()
    story.daemon.note_overtaken()
    before = len(story.seen)
    story.play(at + 1000)
    assert not [o for result in story.seen[before:] for o in result.outcomes if o.action == "undo-drain"]
    assert claim.id not in story.nodes
    story.play(8000).assert_over(2)
