"""Machines that the configuration has no place for any more are found, reported, and have a way out."""

from __future__ import annotations

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.execution.adopting import adopt, chosen
from htas.execution.backoff import Backoffs
from htas.execution.calls import DirectCalls
from htas.execution.cloud_calls import CloudCalls
from htas.execution.handing_back import HandingBack
from htas.execution.machines import Machines
from htas.model.claims import ClaimState, Instance, InstanceState
from htas.model.disruptions import Drain
from htas.model.nodes import CLUSTER_LABEL, GROUP_LABEL
from htas.model.orphans import OrphanReason
from htas.model.outcomes import OutcomeStatus
from htas.model.policy import NodeGroup, Policy
from htas.model.policy import Workload as Kinds
from htas.model.reasons import Kept
from htas.ports import GivenError
from htas.sandbox.workload import Workload
from tests.builders import make_policy
from tests.stories.play import Story, job, service

OLD, NEW = NodeGroup("old", Kinds.ANY), NodeGroup("new", Kinds.ANY)


def busy(*groups: NodeGroup, jobs: int = 3) -> Story:
    """Machines of the first group, each with a job of hours."""
    work = [job(f"job-{i}", runs_s=9000.0, cpu_m=7000) for i in range(jobs)]
    story = Story(make_policy(groups or [OLD]), *work).play(200)
    assert len(story.nodes) == jobs
    return story


def restarted(story: Story, policy: Policy, *, keeps_journal: bool = True) -> Story:
    """The same world, served by a daemon with another configuration."""
    story.policy = policy
    if not keeps_journal:
        story.store = SqliteStore(":memory:")
    story.crash()
    return story


def found(story: Story) -> list[tuple[str, OrphanReason]]:
    return [(each.machine, each.reason) for each in story.seen[-1].snapshot.orphans]


def machines_of(story: Story) -> set[str]:
    return {each.id for each in story.world.cloud.instances()}


def test_machines_of_a_group_that_is_removed_are_reported_and_go_once_they_are_empty() -> None:
    story = busy()
    story.daemon.adopt(make_policy([NEW]))
    story.play(5000)
    assert found(story) == [(f"vm-0000{i}", OrphanReason.UNKNOWN_GROUP) for i in (1, 2, 3)]
    assert {item.reason for item in story.seen[-1].plan.kept} == {Kept.NOT_AUTOSCALED}
    story.play(20_000).assert_over(3)
    assert found(story) == []
    assert story.world.ledger.restarts == 0


def test_a_group_label_that_names_no_group_is_set_back_and_makes_no_orphan() -> None:
    story = busy()
    for name in story.nodes:
        story.world.cluster.relabel(name, {GROUP_LABEL: "unknown"})
    story.play(900)
    assert found(story) == []
    assert {node.group for node in story.world.cluster.observe().nodes} == {"old"}


def test_machines_of_a_flavour_that_left_the_price_file_are_reported_and_work_on() -> None:
    story = busy()
    flavours = {each.flavour for each in story.world.cloud.instances()}
    policy = make_policy([OLD])
    left = tuple(each for each in policy.catalogue.flavours if each.name not in flavours)
    story.daemon.adopt(make_policy([OLD], left))
    story.play(5000)
    assert {reason for _, reason in found(story)} == {OrphanReason.UNKNOWN_FLAVOUR}
    story.play(20_000).assert_over(3)


@pytest.mark.parametrize("keeps_journal", [True, False], ids=["with its journal", "with a new journal"])
def test_machines_of_the_clusters_old_name_are_reported_and_nothing_happens_to_them(keeps_journal: bool) -> None:
    story = busy()
    bills = len(story.store.bills())
    before = machines_of(story)
    restarted(story, make_policy([OLD], cluster="renamed"), keeps_journal=keeps_journal).play(8000)
    assert found(story) == [(machine, OrphanReason.OTHER_CLUSTER) for machine in sorted(before)]
    assert machines_of(story) == before
    assert story.world.ledger.restarts == 0
    if keeps_journal:
        assert [bill.ended_at for bill in story.store.bills()] == [None] * bills, "they are paid for still"
        assert len(story.store.claims()) == 3


@pytest.mark.parametrize("keeps_journal", [True, False], ids=["with its journal", "with a new journal"])
def test_they_are_adopted_into_a_group_and_from_then_on_are_like_any_other(keeps_journal: bool) -> None:
    story = busy()
    policy = make_policy([NEW], cluster="renamed")
    restarted(story, policy, keeps_journal=keeps_journal).play(900)
    orphans = story.seen[-1].snapshot.orphans
    assert chosen(orphans, story.world.cloud.instances(), None, ()) == [], "the old name has to be named"
    them = chosen(orphans, story.world.cloud.instances(), "test", ())
    outcomes = adopt(story.ports, policy, them, story.world.cluster.observe().nodes, "new")
    assert {each.status for each in outcomes} == {OutcomeStatus.DONE}
    story.play(2000)
    assert found(story) == []
    assert {claim.group for claim in story.store.claims()} == {"new"}
    labels = {(node.labels[CLUSTER_LABEL], node.labels[GROUP_LABEL]) for node in story.world.cluster.observe().nodes}
    assert labels == {("renamed", "new")}
    story.play(20_000).assert_over(3)
    assert story.world.ledger.restarts == 0


def test_machines_of_a_removed_group_are_adopted_into_another() -> None:
    story = busy()
    story.daemon.adopt(policy := make_policy([NEW]))
    story.play(900)
    them = chosen(story.seen[-1].snapshot.orphans, story.world.cloud.instances(), None, [story.nodes[0]])
    adopt(story.ports, policy, them, story.world.cluster.observe().nodes, "new")
    story.play(1800)
    assert len(found(story)) == 2, "one was named"
    assert sorted(claim.group for claim in story.store.claims()) == ["new", "old", "old"]


def test_machines_of_another_cluster_of_htas_in_the_project_are_none_of_ours() -> None:
    story = busy()
    theirs = Instance(
        "vm-x", "x", "m1.small", InstanceState.ACTIVE, story.start, cluster="theirs", claim="x", group="old"
    )
    story.world.cloud.add_foreign(theirs)
    story.play(900)
    assert found(story) == []
    instances = story.world.cloud.instances()
    assert chosen((), instances, "theirs", ()) == [], "nothing here knows it"
    assert [each.machine for each in chosen((), instances, "theirs", ["x"])] == ["vm-x"], "unless it is named itself"
    with pytest.raises(GivenError, match="vm-x: no orphan"):
        chosen((), instances, None, ["vm-x"])


def test_orphans_are_drained_and_deleted_where_an_operator_asks_for_it() -> None:
    work = [job("job", runs_s=90_000.0, cpu_m=7000), service("web", 2)]
    story = Story(make_policy([OLD]), *work).play(200)
    policy = make_policy([NEW], cluster="renamed")
    restarted(story, policy).play(900)
    them = chosen(story.seen[-1].snapshot.orphans, story.world.cloud.instances(), "test", ())
    adopt(story.ports, policy, them, story.world.cluster.observe().nodes, None)
    machines = Machines(story.ports, CloudCalls(DirectCalls(), story.world.clock), policy, Backoffs(policy.timeouts))
    handing = HandingBack(story.ports, DirectCalls(), policy, machines, only=frozenset(each.claim for each in them))
    handing.begin()
    for _ in range(600):
        handing.step()
        story.world.advance_to(story.world.clock.now() + 1.0)
        if handing.is_over:
            break
    assert handing.left == ()
    assert not machines_of(story) & {each.machine for each in them}
    story.play(4000)
    ledger = story.world.ledger
    assert (ledger.killed_by_release, ledger.evictions) == (0, 3)
    assert {pod.node is not None for pod in story.world.cluster.observe().pods} == {True}, "they run on new machines"


def test_only_the_orphans_are_handed_back() -> None:
    story = busy(OLD, NEW)
    story.daemon.adopt(policy := make_policy([NEW]))
    story.world.load(Workload("more", (job("later", runs_s=9000.0, cpu_m=7000),)))
    story.play(1800)
    orphans = {each.claim for each in story.seen[-1].snapshot.orphans}
    machines = Machines(story.ports, CloudCalls(DirectCalls(), story.world.clock), policy, Backoffs(policy.timeouts))
    handing = HandingBack(story.ports, DirectCalls(), policy, machines, only=frozenset(orphans))
    handing.begin()
    handing.step()
    closed = {node.claim for node in story.world.cluster.observe().nodes if node.is_draining}
    assert closed == orphans
    assert {node.group for node in story.world.cluster.observe().nodes if not node.is_draining} == {"new"}
    handing.give_up()
    assert not [node for node in story.world.cluster.observe().nodes if node.is_draining]


def test_a_drain_that_was_under_way_when_the_cluster_was_renamed_rests() -> None:
    story = busy(jobs=1)
    (claim,), (name,) = story.store.claims(), story.nodes
    story.store.put_disruption(Drain(name, claim.id, "Empty", story.world.clock.now()))
    story.store.put_claim(msgspec.structs.replace(claim, state=ClaimState.DRAINING))
    story.world.cluster.set_draining(name, True)
    restarted(story, make_policy([OLD], cluster="renamed")).play(20_000)
    assert machines_of(story) == {"vm-00001"}, "its job has ended, and it is nobody's to delete yet"
    assert [each.state for each in story.store.claims()] == [ClaimState.DRAINING]


def test_handing_back_all_leaves_what_bears_another_clusters_name() -> None:
    story = busy()
    policy = make_policy([OLD], cluster="renamed")
    restarted(story, policy).play(900)
    before = story.store.claims()
    machines = Machines(story.ports, CloudCalls(DirectCalls(), story.world.clock), policy, Backoffs(policy.timeouts))
    handing = HandingBack(story.ports, DirectCalls(), policy, machines)
    handing.begin()
    handing.step()
    assert handing.left == ()
    assert (story.store.claims(), len(machines_of(story))) == (before, 3)
