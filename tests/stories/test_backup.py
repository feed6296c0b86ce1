"""Yesterday's copy of the store is restored while machines run: nothing is launched twice, no bill is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from htas.adapters.sqlite.backup import copy
from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.telemetry.status import status_of
from htas.execution.taking_over import drop_intentions
from htas.model.outcomes import Action
from htas.model.policy import NodeGroup
from htas.model.resources import Resources
from htas.ports import TransientError
from htas.profiler.accounts import total
from htas.profiler.meter import Meter
from htas.sandbox.ledger import Rental
from tests.builders import make_flavour, make_policy
from tests.stories.play import Story, job, service
from tests.stories.test_bills import assert_billed_as_invoiced, invoiced, spans

HOUR, DAY_S = 3600.0, 86_400.0
ONE_POD = make_flavour("one", "1", "2Gi", "0.05")


def a_cluster(path: Path, replicas: int = 50, cluster: str = "test", group: str = "any") -> Story:
    """A machine for each of 50 replicas, and jobs that come and go for two days."""
    work = [job(f"job-{i}", i * HOUR, runs_s=25 * 60, cpu_m=900) for i in range(48)]
    policy = make_policy([NodeGroup(group)], [ONE_POD], cluster=cluster)
    story = Story(policy, service("web", replicas, requests=WHOLE), *work)
    story.store.close()
    story.store = SqliteStore(str(path))
    story.crash()
    return story


WHOLE = make_flavour("w", "900m", "1Gi", "1").capacity


def restored(story: Story, backup: Path, path: Path) -> None:
    """The daemon ends; its store is replaced by the backup, as `htas store restore` does it; it starts again."""
    story.store.close()
    copy(backup, path)
    story.store = SqliteStore(str(path))
    drop_intentions(story.store, (), story.world.clock.now(), "restored")
    story.seen.clear()
    story.crash()


def test_yesterdays_copy_is_restored_with_fifty_machines_running(tmp_path: Path) -> None:
    story = a_cluster(tmp_path / "htas.db").play(8 * HOUR + 600)
    copy(tmp_path / "htas.db", backup := tmp_path / "backup.db")
    story.play(8 * HOUR + 600 + DAY_S)
    before = {each.id for each in story.world.cloud.instances()}
    assert len(before) >= 50
    created = story.world.cloud.faults.struck["create"]
    evictions = story.world.ledger.evictions
    restored(story, backup, tmp_path / "later.db")
    meter = Meter(story.store, lambda: story.daemon.bookkeeper.revisions)
    billing = story.policy.catalogue.billing
    meter.nano_seconds(billing, story.world.clock.now())
    story.play(8 * HOUR + 1080 + DAY_S)  # longer than a machine that is gone is given time
    assert before <= {each.id for each in story.world.cloud.instances()}, "nothing is deleted"
    assert story.world.cloud.faults.struck["create"] == created, "nothing is launched twice"
    assert story.world.ledger.evictions == evictions
    [told] = [o for result in story.seen for o in result.outcomes if o.action is Action.RECONCILE]
    assert "bills of 23 machines that HTAS did not know are added" in told.message
    assert_billed_as_invoiced(story)
    now = story.world.clock.now()
    assert meter.nano_seconds(billing, now) == total(story.store.bills(), billing, now), "what was added later counts"
    story.play(3 * DAY_S)
    assert_billed_as_invoiced(story)
    story.assert_whole()
    story.store.close()


@pytest.mark.parametrize(("cluster", "group"), [("test", "any"), ("prod-eu", "big-gpu")])
def test_machines_that_went_since_the_backup_are_billed_to_their_end(cluster: str, group: str, tmp_path: Path) -> None:
    """Those that came and went since are known by their names alone, whatever hyphens are in these."""
    story = a_cluster(tmp_path / "htas.db", 5, cluster, group).play(2 * HOUR + 300)
    copy(tmp_path / "htas.db", backup := tmp_path / "backup.db")
    story.world.cloud.vanish(story.world.cloud.instances()[0].id)
    story.world.cloud.break_down(story.world.cloud.instances()[0].id)
    story.play(DAY_S)
    restored(story, backup, tmp_path / "later.db")
    story.play(DAY_S + HOUR)
    assert_billed_as_invoiced(story)
    assert {bill.group for bill in story.store.bills()} == {group}
    story.store.close()


@pytest.mark.parametrize("other", ["cluster-2-any-0123456789", "test-any", "test-other-0123456789", "somebody's"])
def test_what_another_cluster_ran_is_not_billed(other: str, tmp_path: Path) -> None:
    """The cloud's usage is the project's: others' machines are in it, too."""
    story = a_cluster(tmp_path / "htas.db", replicas=2).play(HOUR + 300)
    now = story.world.clock.now()
    theirs = Rental("vm-theirs", other, "one", 50_000_000, now - 100, now - 50)
    story.world.ledger.rentals.append(theirs)
    story.crash()
    story.play(2 * HOUR)
    story.world.ledger.rentals.remove(theirs)
    assert spans(story) == invoiced(story)
    story.store.close()


def test_an_empty_store_beside_running_machines_is_told_loudly(tmp_path: Path) -> None:
    """A lost file, or a copy that holds nothing: machines are adopted, and people know that bills are lost."""
    story = a_cluster(tmp_path / "htas.db", replicas=3).play(6 * HOUR + 900)
    running = [each for each in story.world.cloud.instances() if each.ended_at is None]
    story.store.close()
    story.store = SqliteStore(":memory:")
    story.crash()
    story.play(7 * HOUR)
    [remark] = story.seen[-1].remarks
    assert f"machines of cluster test ran ({len(running)}): their past and earlier bills are lost" in remark
    assert "htas store restore" in remark
    assert story.verbs["reconcile", "failed"] == 1, "it is logged, counted and on record, once"
    assert remark in status_of(story.seen[-1], story.policy)["problems"]
    since = min(each.created_at for each in running)
    billing, now = story.policy.catalogue.billing, story.world.clock.now()
    owed = [each for each in story.world.ledger.rentals if (each.ended_at or now) > since]
    assert len(story.store.bills()) >= len(running)
    assert {bill.instance for bill in story.store.bills()} == {each.instance for each in owed}
    assert total(story.store.bills(), billing, now) > 0


def test_a_cloud_that_answers_late_does_not_hide_that_the_store_was_empty() -> None:
    """The first cycles bind and are recorded before the cloud is listed: the store was empty all the same."""
    story = Story(
        make_policy([NodeGroup("any")], [ONE_POD]),
        service("web", 1),
        service("late", 1, at_s=HOUR + 60, requests=Resources(10, 2**20, 0, 1)),
    ).play(HOUR)
    story.store = SqliteStore(":memory:")
    story.world.cloud.faults.refuse("instances", TransientError("not listed yet"))
    story.crash()
    story.play(HOUR + 120)
    assert list(story.store.cycles())
    story.world.cloud.faults.refuse("instances", None)
    story.play(2 * HOUR)
    assert "machines of cluster test ran (1)" in story.seen[-1].remarks[0]


def test_a_first_start_is_no_lost_store() -> None:
    story = Story(make_policy([NodeGroup("any")], [ONE_POD]), service("web", 1)).play(HOUR)
    assert story.seen[-1].remarks == ()
