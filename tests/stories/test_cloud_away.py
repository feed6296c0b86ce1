"""A cloud that does not answer, refuses everybody, or forgets: what can go on goes on, and nothing is bought twice."""

from __future__ import annotations

import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.model.claims import ClaimState, Headroom, InstanceState, NodeClaim
from htas.model.constraints import Constraints, Effect, Taint, Toleration
from htas.model.policy import CleaningRules, Timeouts
from htas.model.reasons import Kept, Unplaced
from htas.model.stages import ALL_STAGES
from htas.ports import RefusedError, TransientError
from htas.sandbox.cloud import Boot
from htas.sandbox.faults import Faults
from tests.builders import batch_group, make_flavour, make_policy
from tests.stories.play import Story, job, jobs

LONG_S = 3000.0


class Away(Faults):
    """Every call fails, until it is over."""

    def strike(self, call: str) -> None:
        raise TransientError("connection refused")


def test_while_the_cloud_is_away_work_is_placed_and_nothing_bought_or_given_back() -> None:
    story = Story(None, job("first", runs_s=100.0), job("second", runs_s=LONG_S, at_s=200.0, cpu_m=500, gib=0.25))
    story.play(150)
    nodes = story.nodes
    assert nodes
    story.world.cloud.faults = Away()
    story.play(600)
    placed = {pod.name.split("-")[0]: pod.node for pod in story.world.cluster.observe().pods}
    assert placed["second"] in nodes
    assert story.nodes == nodes
    assert story.seen[-1].snapshot.cloud_problem == "connection refused"


def test_work_that_needs_a_machine_waits_for_the_cloud_and_says_so() -> None:
    story = Story(None, *jobs(3, every_s=0, cpu_m=1000, runs_s=LONG_S))
    story.world.cloud.faults = Away()
    story.play(300)
    assert {item.reason for item in story.seen[-1].plan.unplaced} == {Unplaced.CLOUD_UNREACHABLE}
    assert "connection refused" in story.seen[-1].plan.unplaced[0].message
    assert story.verbs["launch", "failed"] == 0
    story.world.cloud.faults = Faults()
    story.play(4 * LONG_S).assert_over(3)


def test_an_idle_node_is_kept_while_its_machine_could_not_be_given_back() -> None:
    kept_a_while = make_policy([batch_group(cleaning=CleaningRules(empty_for_s=60.0))])
    story = Story(kept_a_while, job("one", runs_s=60.0)).play(130)
    story.world.cloud.faults = Away()
    result = story.daemon.run_cycle(ALL_STAGES)
    assert {item.reason for item in result.plan.kept} == {Kept.CLOUD_UNREACHABLE}
    story.world.cloud.faults = Faults()
    story.play(3600).assert_over(1)


def test_what_ails_every_flavour_stops_all_of_them_until_it_is_mended() -> None:
    policy = make_policy([batch_group()], timeouts=Timeouts(backoff_initial_s=120))
    story = Story(policy, *jobs(2, every_s=0, runs_s=300))
    story.world.cloud.faults.arrange("create", RefusedError("image 'ubuntu' is not there"))
    story.play(60)
    assert story.verbs["launch", "failed"] == 1  # not one for each flavour in turn
    (backoff,) = story.seen[-1].snapshot.backoffs
    assert (backoff.flavour, backoff.reason) == (None, "image 'ubuntu' is not there")
    assert "every flavour failed: image 'ubuntu' is not there" in story.seen[-1].plan.unplaced[0].message
    story.play(3600).assert_over(2)


def test_a_machine_wanted_but_not_granted_yet_counts_against_the_quota() -> None:
    """What was asked for and not answered is in nobody's usage: the next plan must not ask for it once more."""
    story = Story(
        make_policy([batch_group()], [make_flavour("one", "1", "2Gi", "0.05")]),
        *jobs(4, every_s=0, runs_s=LONG_S, cpu_m=1000),
        quota=Headroom(instances=2),
    )
    for _ in range(2):
        story.world.cloud.faults.arrange("create", TransientError("timed out"))
    story.play(10)
    wanted = [claim for claim in story.store.claims() if claim.state is ClaimState.WANTED]
    story.play(200)
    assert len({claim.id for claim in story.store.claims()}) == 2
    assert all(claim.id in {each.id for each in story.store.claims()} for claim in wanted)


def test_a_flavour_that_the_cloud_does_not_have_is_never_asked_for() -> None:
    story = Story(None, *jobs(2))
    story.world.cloud.sold = ("m1.large",)
    story.play(3600).assert_over(2)
    assert {item.flavour for result in story.seen for item in result.plan.launch} == {"m1.large"}


def test_a_node_that_registers_bare_is_known_by_its_machine_and_set_up() -> None:
    """A kubelet that was given no labels: the providerID tells whose machine it is."""
    taint = Taint("only", Effect.NO_SCHEDULE, "batch")
    story = Story(
        make_policy([batch_group(labels={"team": "a"}, taints=(taint,))]),
        job("one", runs_s=200.0, constraints=Constraints(tolerations=(Toleration("only", "Exists"),))),
    )
    story.world.cloud.arrange_boot(Boot.REGISTERS_BARE)
    story.play(150)
    (node,) = story.world.cluster.observe().nodes
    (claim,) = story.store.claims()
    assert (node.claim, node.group, node.cluster, node.flavour) == (claim.id, "batch", "test", claim.flavour)
    assert (node.labels["team"], node.taints) == ("a", (taint,))
    assert story.verbs["set-up", "done"] == 1
    story.play(3600).assert_over(1)


def test_a_machine_whose_end_is_forgotten_is_asked_for_its_end_again() -> None:
    policy = make_policy([batch_group()], timeouts=Timeouts(release_s=120))
    story = Story(policy, job("one", runs_s=60.0))
    story.world.cloud.forget_deletes(1)
    story.play(260)
    (machine,) = story.world.cloud.instances()
    assert machine.state is InstanceState.DELETING
    assert [claim.leaving_since is not None for claim in story.store.claims()] == [True]
    story.play(1200).assert_over(1)
    assert any("deleted again" in item for item in story.messages)


def test_a_call_that_is_refused_at_once_is_not_made_again_at_once() -> None:
    """Its answer brings a cycle forward: without a pause, cycle and call would chase each other."""
    story = Story(None, job("one"))
    for _ in range(20):
        story.world.cloud.faults.arrange("create", TransientError("connection refused"))
    story.world.advance_to(story.start + 1)
    results = [story.daemon.run_cycle(ALL_STAGES) for _ in range(10)]
    assert sum(outcome.action == "launch" for result in results for outcome in result.outcomes) == 1
    story.play(3600).assert_over(1)


@pytest.mark.parametrize("has_journal", [True, False], ids=["with its journal", "with a new one"])
def test_a_list_that_lacks_machines_costs_no_node_that_is_ready(has_journal: bool) -> None:
    """The credential was changed to another project's, say: the list is sound, and none of ours is in it."""
    story = Story(None, *jobs(4, every_s=0, cpu_m=1000, runs_s=LONG_S)).play(150)
    nodes, pods = story.nodes, story.world.ledger.evictions
    assert len(nodes) > 1
    for instance in story.world.cloud.instances():
        story.world.cloud.unlist(instance.id)
    if not has_journal:
        story.store = SqliteStore(":memory:")
        story.crash()
    story.play(900)
    assert story.nodes == nodes
    assert story.world.ledger.evictions == pods
    story.assert_whole()


def test_a_machine_that_another_daemon_put_to_use_outlives_our_old_intention() -> None:
    """We journalled a claim and had no answer; another leader found its machine and used it; now we lead again."""
    story = Story(None, *jobs(1, runs_s=LONG_S)).play(150)
    (claim,) = story.store.claims()
    (machine,) = story.world.cloud.instances()
    ours = SqliteStore(":memory:")
    ours.put_claim(
        NodeClaim(claim.id, claim.group, claim.flavour, ClaimState.WANTED, claim.created_at, claim.created_at)
    )
    story.store = ours
    story.crash()
    story.daemon.take_over()
    story.play(300)
    assert [each.id for each in story.world.cloud.instances()] == [machine.id]
    assert [each.state for each in story.store.claims()] == [ClaimState.READY]
    story.play(4 * LONG_S).assert_over(1)


def test_what_another_daemon_never_got_is_not_asked_for_again() -> None:
    story = Story(None)
    story.store.put_claim(NodeClaim("test-batch-1", "batch", "m1.large", ClaimState.WANTED, story.start, story.start))
    story.daemon.take_over()
    story.play(60)
    assert not story.store.claims()
    assert story.world.ledger.rentals == []
    assert story.seen[-1].snapshot.backoffs == ()
