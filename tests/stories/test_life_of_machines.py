"""Machines bought, used, failing and given back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.model.claims import ClaimState, Headroom, Instance, InstanceState, NodeClaim
from htas.model.disruptions import drains_of
from htas.model.moves import MigrationMethod
from htas.model.nodes import DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT, SCALE_DOWN_DISABLED
from htas.model.policy import CleaningRules, EmptyRelease, Limits, NodeGroup, Timeouts
from htas.model.reasons import Kept, Unplaced
from htas.model.resources import Resources
from htas.model.stages import ALL_STAGES
from htas.ports import CapacityError, PermanentError, TransientError
from htas.profiler.accounts import nano_seconds
from htas.sandbox.cloud import Chances
from htas.sandbox.workload import Arrival, Budget, Rescale, Workload
from htas.sandbox.world import MONDAY
from tests.builders import batch_group, labels_are, make_flavour, make_policy
from tests.stories.play import GIB, Story, job, jobs, service


def test_work_arrives_machines_come_work_ends_machines_go() -> None:
    story = Story(None, *jobs(30)).play(3600)
    story.assert_over(30)
    assert story.verbs["launch", "failed"] == 0
    assert story.world.ledger.mean_wait_s() < 90


def test_the_same_seed_gives_the_same_history() -> None:
    first, second = (Story(None, *jobs(20)).play(1800) for _ in range(2))
    assert msgspec.json.encode(first.world.ledger) == msgspec.json.encode(second.world.ledger)
    assert first.messages == second.messages


def test_bills_agree_with_the_clouds_invoice() -> None:
    story = Story(None, *jobs(25)).play(3600)
    billing, now = story.policy.catalogue.billing, story.world.clock.now()
    ours = sum(nano_seconds(bill, billing, now) for bill in story.store.bills())
    assert ours == story.world.ledger.nano_seconds(billing, now) > 0


def test_a_machine_that_vanished_is_billed_until_it_went() -> None:
    """The journal believes it after five minutes; the cloud stopped billing when the machine broke down."""
    story = Story(None, job("long", runs_s=3000)).play(300)
    story.world.cloud.vanish(story.world.cloud.instances()[0].id)
    story.play(3 * 3600)
    billing, now = story.policy.catalogue.billing, story.world.clock.now()
    ours = sum(nano_seconds(bill, billing, now) for bill in story.store.bills())
    invoice = story.world.ledger.nano_seconds(billing, now)
    first, _ = sorted(story.store.bills(), key=lambda bill: bill.started_at)
    assert invoice <= ours <= invoice + 60 * first.nanos_per_hour, "a minute more at most: when it was first missed"


class Contended(SqliteStore):
    """Writes several claims one by one; each time another writer gets between the first and the last, once."""

    met = 0

    def put_claims(self, claims: Sequence[NodeClaim]) -> list[NodeClaim]:
        last = next((claim for claim in self.claims() if claim.id == claims[-1].id), None)
        written = [self.put_claim(claim) for claim in claims[:-1]]
        if last is not None and not self.met:
            self.met += 1
            self.put_claim(last)
        return [*written, self.put_claim(claims[-1])]


def test_machines_come_on_while_another_writer_is_first_with_one_of_them() -> None:
    story = Story(None, *jobs(3, every_s=0, cpu_m=8000))
    story.store = store = Contended(":memory:")
    story.crash()
    story.play(3600).assert_over(3)
    assert store.met == 1
    assert len(story.seen[-1].snapshot.machine_times.starts) == 3


@pytest.mark.parametrize("who", ["nobody", "the daemon", "the cloud's list"])
def test_how_long_a_machine_took_to_go_is_learned_unless_somebody_was_away(who: str) -> None:
    """It was gone after seconds; who comes back two hours later would learn that it took two hours."""
    story = Story(None, job("one", runs_s=60.0))
    at = next(at for at in range(100, 3000) if story.play(at).store.claims() and story.store.claims()[0].leaving_since)
    if who == "the daemon":
        story.world.advance_to(story.start + at + 7200)
        story.crash()
    if who == "the cloud's list":
        story.world.cloud.faults.refuse("instances", TransientError("away"))
        story.play(at + 7200)
        story.world.cloud.faults.refuse("instances", None)
    story.play(at + 8000).assert_over(1)
    learned = story.seen[-1].snapshot.machine_times
    assert (len(learned.starts), [seconds < 60 for seconds in learned.releases]) == (1, [True] * (who == "nobody"))


def test_a_pod_bought_for_is_not_bought_for_again() -> None:
    story = Story(None, job("one"), startup_s=300.0).play(250)
    assert story.verbs["launch", "done"] == 1
    assert [item.node for item in story.seen[-1].plan.nominate] == [story.store.claims()[0].id]


def test_jobs_of_one_moment_share_a_launch_and_later_ones_get_their_own() -> None:
    """A machine takes a minute to come: no pod waits for others to save money."""
    jobs = [*(job(f"first-{i}", 0, 3600) for i in range(3)), job("second", 10, 3600)]
    story = Story(make_policy([batch_group()]), *jobs).play(8000)
    story.assert_over(4)
    assert sum(bool(result.plan.launch) for result in story.seen) == 2
    assert max(story.world.ledger.waits_s) < 65
    told = {item.reason for result in story.seen for item in result.plan.unplaced}
    assert told <= {Unplaced.AUTOSCALING_NOT_DUE}  # for 0.2 s, in which more may come


@pytest.mark.parametrize(
    ("chances", "word"),
    [
        pytest.param(Chances(out_of_stock=0.5), "no valid host", id="half of the requests find no host"),
        pytest.param(Chances(boot_failure=0.4), "failed to boot", id="machines that fail to boot"),
        pytest.param(Chances(never_registers=0.4), "no node registered", id="machines that never register"),
    ],
)
def test_failures_delay_work_but_lose_none(chances: Chances, word: str) -> None:
    policy = make_policy([batch_group()], timeouts=Timeouts(registration_s=200, backoff_initial_s=60))
    story = Story(policy, *jobs(12), chances=chances).play(4 * 3600)
    story.assert_over(12)
    assert any(word in line for line in story.messages)


@pytest.mark.parametrize(
    ("refused", "asked_for"),
    [
        pytest.param(1, ["t3.xsmall"] * 2, id="once: it is asked for again with the next cycle"),
        pytest.param(2, ["t3.xsmall", "t3.xsmall", "m3.xsmall"], id="twice: the next cheapest is bought meanwhile"),
    ],
)
def test_a_stockout_delays_nobody_for_long(refused: int, asked_for: list[str]) -> None:
    story = Story(None, job("one", cpu_m=500, gib=0.5))
    for _ in range(refused):
        story.world.cloud.faults.arrange("create", CapacityError("no valid host was found"))
    story.play(30 * refused)
    flavours = [item.flavour for result in story.seen for item in result.plan.launch]
    assert flavours == asked_for


def test_quota_is_respected_and_used_when_it_grows() -> None:
    one = make_policy([batch_group()], [make_flavour("one", "1", "2Gi", "0.05")])
    story = Story(one, *jobs(6, every_s=0, runs_s=3000, cpu_m=1000), quota=Headroom(instances=2)).play(600)
    assert len(story.nodes) == 2
    assert {item.reason for item in story.seen[-1].plan.unplaced} == {"QuotaReached"}
    story.world.cloud.quota = Headroom(instances=6)
    story.play(900)
    assert len(story.nodes) == 6
    story.play(3 * 3600).assert_over(6)


def test_limits_hold_while_failed_machines_cannot_be_deleted() -> None:
    """Three hours in which half of the machines fail to boot and no delete is granted: all of them are billed."""
    limited = make_policy([batch_group()], limits=Limits(max_nodes=4), timeouts=Timeouts(backoff_initial_s=30))
    arrivals = jobs(12, every_s=300, runs_s=3000, cpu_m=1500)
    story = Story(limited, *arrivals, chances=Chances(boot_failure=0.5))
    story.world.cloud.faults.refuse("delete", PermanentError("you may not"))
    most = 0
    for minute in range(180):
        story.play(60 * minute)
        most = max(most, len(story.world.cloud.instances()))
    assert most == 4
    assert story.world.cloud.faults.struck["delete"] < 4 * 60
    assert Unplaced.LIMIT_REACHED in {item.reason for result in story.seen for item in result.plan.unplaced}
    story.world.cloud.faults.refuse("delete", None)
    story.play(24 * 3600).assert_over(12)


def test_errors_of_every_call_are_survived() -> None:
    story = Story(None, *jobs(10))
    for call in ("observe", "bind", "evict", "set_draining", "delete_node"):
        for _ in range(3):
            story.world.cluster.faults.arrange(call, TransientError("the API server is away"))
    for call in ("create", "delete", "instances", "headroom"):
        for _ in range(3):
            story.world.cloud.faults.arrange(call, TransientError("the cloud is away"))
    story.play(7200).assert_over(10)


def test_foreign_machines_are_never_touched() -> None:
    story = Story(None, *jobs(5))
    for number, cluster in enumerate((None, "other")):
        story.world.cloud.add_foreign(
            Instance(f"foreign-{number}", "theirs", "m1.large", InstanceState.ERROR, MONDAY, cluster=cluster, claim="x")
        )
    story.play(3600)
    assert [i.id for i in story.world.cloud.instances()] == ["foreign-0", "foreign-1"]
    assert story.world.ledger.finished == 5


def test_a_machine_that_vanishes_is_cleaned_up_and_its_work_done_again() -> None:
    story = Story(None, job("long", runs_s=1200)).play(300)
    story.world.cloud.vanish(story.world.cloud.instances()[0].id)
    story.play(5000)
    assert story.world.ledger.finished == 1
    assert story.world.ledger.restarts == 1
    assert not story.nodes
    assert (
        sum("the machine vanished from the cloud" in line for line in story.messages if line.startswith("delete ")) == 1
    )


def test_a_machine_that_vanished_is_reported_once_while_its_node_cannot_be_deleted() -> None:
    story = Story(None, job("long", runs_s=1200)).play(300)
    for _ in range(5):
        story.world.cluster.faults.arrange("delete_node", TransientError("the API server is away"))
    story.world.cloud.vanish(story.world.cloud.instances()[0].id)
    story.play(5000).assert_over(1)
    assert story.verbs["delete-node", "failed"] == 5
    told = [line for line in story.messages if "the machine vanished from the cloud" in line]
    assert sum(line.startswith("delete ") for line in told) == 1


def cleaning(**rules: object) -> NodeGroup:
    defaults = {"underutilized_for_s": 60.0, "queue_empty_for_s": 60.0}
    return batch_group(cleaning=CleaningRules(**{**defaults, **rules}))  # type: ignore[arg-type]


PLAIN = [make_flavour("m", "2", "4Gi", "0.1")]


def stragglers() -> list[Arrival]:
    """Two machines, each filled by a short job and a long one: when the short ones end, one machine is superfluous."""
    return [
        *(job(f"short-{i}", 100 * i, 200, 1500, 3.0) for i in range(2)),
        *(job(f"long-{i}", 100 * i, 3000, 400, 0.9) for i in range(2)),
    ]


def test_an_underused_node_is_emptied_by_checkpoint_without_losing_work() -> None:
    policy = make_policy([cleaning(migration=MigrationMethod.CHECKPOINT)], PLAIN)
    story = Story(policy, *stragglers()).play(2000)
    assert story.world.ledger.migrations >= 1
    assert story.world.ledger.work_lost_s == 0
    story.play(4 * 3600).assert_over(4)


def test_by_eviction_a_node_is_emptied_only_while_little_work_would_be_repeated() -> None:
    policy = make_policy([cleaning(migration=MigrationMethod.EVICT)], PLAIN)
    story = Story(policy, *stragglers()).play(4 * 3600)
    story.assert_over(4)
    assert story.world.ledger.evictions >= 1
    assert story.world.ledger.work_lost_s < 3000


def test_budgets_hold_while_services_are_moved() -> None:
    """Four replicas on two nodes; a budget of three lets one move at a time."""
    rules = CleaningRules(underutilized_for_s=60, queue_empty_for_s=60)
    policy = make_policy([NodeGroup("any", cleaning=rules)], [make_flavour("m", "2", "4Gi", "0.1")])
    web = service("web", 6, disruption={"htas.io/migrate": "true"})
    story = Story(policy, web)
    story.world.load(
        Workload(
            "budget",
            (),
            (Rescale(600, "default", "web", 4),),
            (),
            (Budget("default", "web", labels_are(app="web"), 3),),
        )
    )
    fewest = 9
    for at_s in range(700, 3600, 5):
        story.play(at_s)
        running = [p for p in story.world.cluster.observe().pods if p.started_at is not None and not p.is_terminating]
        fewest = min(fewest, len(running))
    assert fewest >= 3
    story.assert_whole()


@pytest.mark.parametrize(
    ("disruption", "moves_services", "nodes"),
    [
        pytest.param({}, False, 2, id="a service stays"),
        pytest.param({"htas.io/migrate": "true"}, False, 1, id="unless it opts in"),
        pytest.param({}, True, 1, id="or all are moved"),
    ],
)
def test_services_are_moved_only_if_they_opt_in(disruption: dict[str, str], moves_services: bool, nodes: int) -> None:
    rules = CleaningRules(underutilized_for_s=60, queue_empty_for_s=60, moves_services=moves_services)
    policy = make_policy([NodeGroup("any", cleaning=rules)], PLAIN)
    story = Story(policy, service("large", 4), service("single", 1, 100, disruption=disruption))
    story.world.load(Workload("less", (), (Rescale(600, "default", "large", 2),)))
    story.play(3600)
    assert len(story.nodes) == nodes
    kept = {item.reason for item in story.seen[-1].plan.kept}
    assert (Kept.BLOCKED_BY_POD in kept) == (nodes == 2)
    story.assert_whole()


@pytest.mark.parametrize(
    ("sets_deletion_costs", "nodes"),
    [
        pytest.param(True, 2, id="the last machine empties"),
        pytest.param(False, 3, id="without costs each machine gives up one"),
    ],
)
def test_a_service_that_shrinks_empties_the_last_machine_and_nobody_is_evicted(
    sets_deletion_costs: bool, nodes: int
) -> None:
    """Nine replicas on three machines that came one after the other; six are left."""
    policy = make_policy([NodeGroup("any", cleaning=CleaningRules(sets_deletion_costs=sets_deletion_costs))], PLAIN)
    story = Story(policy, service("web", 3))
    growing = (Rescale(600, "default", "web", 6), Rescale(1200, "default", "web", 9))
    story.world.load(Workload("more and less", (), (*growing, Rescale(1800, "default", "web", 6))))
    story.play(1790)
    assert len(story.nodes) == 3
    story.play(3600)
    assert len(story.nodes) == nodes
    assert story.world.ledger.evictions == 0
    story.assert_whole()


@pytest.mark.parametrize(
    ("release", "at_most_s"),
    [
        pytest.param(EmptyRelease.AT_ONCE, 700, id="at once"),
        pytest.param(EmptyRelease.BEFORE_BILLING, 3600, id="before the paid hour ends"),
    ],
)
def test_empty_nodes_are_released(release: EmptyRelease, at_most_s: float) -> None:
    from htas.model.billing import Billing
    from htas.model.flavours import Catalogue

    flavour = make_flavour("m", "2", "4Gi", "0.1")
    policy = make_policy(
        [cleaning(empty_release=release)], catalogue=Catalogue((flavour,), billing=Billing(3600, 3600))
    )
    story = Story(policy, job("one", runs_s=300)).play(2 * 3600)
    rental = story.world.ledger.rentals[0]
    assert rental.ended_at is not None
    held = rental.ended_at - rental.started_at
    assert held <= at_most_s
    if release is EmptyRelease.BEFORE_BILLING:
        assert held > 3400
    last = story.seen[-1].snapshot
    assert last.machine_times.starts == pytest.approx((60.0,), abs=1.0)
    assert len(last.machine_times.releases) == 1
    begun = [claim for result in story.seen for claim in result.snapshot.claims if claim.rented_at is not None]
    assert {claim.rented_at for claim in begun} == {rental.started_at}


def test_a_drain_that_cannot_finish_gives_the_node_back() -> None:
    policy = make_policy([cleaning()], PLAIN, timeouts=Timeouts(drain_s=100))
    story = Story(policy, *stragglers())
    for _ in range(200):
        story.world.cluster.faults.arrange("evict", TransientError("429: a budget forbids it"))
    story.play(3000)
    assert any("not empty after 100 s" in line for line in story.messages)
    assert not any(node.is_unschedulable for node in story.world.cluster.observe().nodes)


def test_a_drain_that_no_budget_lets_begin_gives_the_node_back_sooner() -> None:
    policy = make_policy([cleaning()], PLAIN, timeouts=Timeouts(eviction_s=60))
    story = Story(policy, *stragglers())
    for _ in range(200):
        story.world.cluster.faults.arrange("evict", TransientError("429: a budget forbids it"))
    story.play(3000)
    assert any("none of its pods could be evicted for 60 s" in line for line in story.messages)
    assert not any("not empty after" in line for line in story.messages)
    assert not any(node.is_unschedulable for node in story.world.cluster.observe().nodes)


def test_no_machine_is_bought_for_a_pod_whose_room_is_kept() -> None:
    """Its controller starts another as soon as it is evicted, while it still takes its time to stop."""
    rules = CleaningRules(underutilized_for_s=60, queue_empty_for_s=60)
    policy = make_policy([NodeGroup("any", cleaning=rules)], PLAIN)
    moves = {"htas.io/migrate": "true"}
    story = Story(policy, service("large", 4), service("single", 1, 100, disruption=moves))
    story.world.load(Workload("less", (), (Rescale(600, "default", "large", 2),)))
    story.play(3600)
    assert story.world.ledger.evictions == 1
    assert len(story.store.bills()) == 2


def test_a_pod_that_waits_for_ever_fills_no_history() -> None:
    story = Story(None, job("huge", cpu_m=900_000)).play(3600)
    assert len([result for result in story.seen if result.plan.unplaced]) > 5
    assert len(list(story.store.cycles())) == 1


def test_a_taint_that_nobody_remembers_is_taken_away() -> None:
    story = Story(None, job("long", runs_s=3000)).play(200)
    node = story.nodes[0]
    story.world.cluster.set_draining(node, True)
    story.play(1200)
    assert not story.world.cluster.observe().nodes[0].is_unschedulable
    assert any("without a journal entry" in line for line in story.messages)


def test_a_lost_journal_loses_no_machine() -> None:
    story = Story(None, *jobs(6, runs_s=1500)).play(400)
    machines = {i.id for i in story.world.cloud.instances()}
    story.store.close()
    story.store = SqliteStore(":memory:")
    story.crash()
    story.daemon.run_cycle(ALL_STAGES)
    assert {claim.instance for claim in story.store.claims()} == machines
    story.play(4 * 3600).assert_over(6)


@pytest.mark.parametrize("seed", range(4))
def test_crashes_at_any_time_change_nothing_for_the_work(seed: int) -> None:
    """The daemon is replaced by a new one every few seconds of a busy hour, in the middle of whatever it was doing."""
    from random import Random

    random = Random(seed)
    policy = make_policy([cleaning(migration=random.choice([MigrationMethod.EVICT, MigrationMethod.CHECKPOINT]))])
    story = Story(policy, *jobs(25, every_s=30, runs_s=200), chances=Chances(0.1, 0.1, 0.1), seed=seed)
    at_s = 0.0
    while at_s < 3600:
        at_s += random.uniform(1, 120)
        story.play(at_s)
        story.crash()
    story.play(8 * 3600).assert_over(25)


def test_every_claim_ends_released() -> None:
    story = Story(None, *jobs(8)).play(3600)
    assert not [claim for claim in story.store.claims() if claim.state is not ClaimState.RELEASED]


def test_one_list_without_machines_costs_nothing() -> None:
    story = Story(None, *jobs(6, runs_s=900)).play(300)
    before = len(story.world.ledger.rentals)
    view = story.world.cluster.observe()
    story.daemon._machines.reconcile(view, ())
    story.play(2 * 3600).assert_over(6)
    assert story.world.ledger.restarts == 0
    assert len(story.world.ledger.rentals) == before


def test_a_second_machine_of_a_claim_is_deleted() -> None:
    story = Story(None, job("long", runs_s=900)).play(300)
    first = story.world.cloud.instances()[0]
    story.world.cloud.add_foreign(msgspec.structs.replace(first, id="vm-double", created_at=first.created_at + 1))
    story.play(400)
    assert [(i.id, i.state) for i in story.world.cloud.instances()] == [(first.id, InstanceState.ACTIVE)]


def test_a_machine_whose_node_goes_while_it_drains_is_released() -> None:
    story = Story(None, job("one"))
    story.daemon.listeners.append(
        lambda result: [story.world.cluster.delete_node(d.node) for d in drains_of(story.store.disruptions())] and None
    )
    story.play(3600)
    assert not story.world.cloud.instances()
    assert not story.store.claims()
    assert not drains_of(story.store.disruptions())


@pytest.mark.parametrize("annotation", [DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT, SCALE_DOWN_DISABLED])
def test_a_node_annotated_to_stay_while_it_is_being_emptied_is_given_back_to_work(annotation: str) -> None:
    story = Story(make_policy([cleaning()], PLAIN), *stragglers())
    for _ in range(3):
        story.world.cluster.faults.arrange("evict", TransientError("429: not now"))
    while not drains_of(story.store.disruptions()) and story.world.clock.now() < story.start + 3000:
        story.play(story.world.clock.now() - story.start + 5)
    (name,) = (drain.node for drain in drains_of(story.store.disruptions()))
    view = story.world.cluster.observe()
    assert any(pod.node == name for pod in view.pods)
    nodes = tuple(
        msgspec.structs.replace(node, annotations={annotation: "true"}) if node.name == name else node
        for node in view.nodes
    )
    changed = msgspec.structs.replace(view, nodes=nodes)
    (outcome,) = story.daemon._draining.advance(changed, story.world.cloud.instances())
    assert (outcome.action, outcome.message) == ("undo-drain", f"the node is annotated {annotation}")
    assert story.world.ledger.evictions == 0


def test_promises_made_after_the_plan_hold() -> None:
    """A pod that asks not to be disrupted while its node is already being emptied is not evicted any more."""
    policy = make_policy([cleaning()], PLAIN)
    story = Story(policy, *stragglers())
    for _ in range(3):
        story.world.cluster.faults.arrange("evict", TransientError("429: not now"))
    while not drains_of(story.store.disruptions()) and story.world.clock.now() < story.start + 3000:
        story.play(story.world.clock.now() - story.start + 5)
    node = drains_of(story.store.disruptions())[0].node
    pods = [pod for pod in story.world.cluster.observe().pods if pod.node == node]
    view = story.world.cluster.observe()
    protected = tuple(
        msgspec.structs.replace(pod, disruption={"htas.io/do-not-disrupt": "true"}) if pod in pods else pod
        for pod in view.pods
    )
    changed = msgspec.structs.replace(view, pods=protected)
    outcomes = story.daemon._draining.advance(changed, story.world.cloud.instances())
    assert [o.action for o in outcomes] == ["undo-drain"]
    assert story.world.ledger.evictions == 0


def test_a_partition_does_not_cost_the_fleet() -> None:
    policy = make_policy([batch_group()], PLAIN, timeouts=Timeouts(ready_s=100))
    story = Story(policy, *jobs(8, every_s=0, runs_s=4000, cpu_m=1900)).play(300)
    nodes = story.nodes
    assert len(nodes) == 8
    for node in nodes:
        story.world.cluster.set_ready(node, False)
    story.play(900)
    assert story.nodes == nodes
    for node in nodes[2:]:
        story.world.cluster.set_ready(node, True)
    story.play(1500)
    assert set(nodes[2:]) <= set(story.nodes)
    assert not set(nodes[:2]) & set(story.nodes)


class LateCopy(SqliteStore):
    """A copy of a journal that learns of its claims only after the cycle has looked at them."""

    knows = False

    def claims(self) -> Sequence[NodeClaim]:
        known, self.knows = self.knows, True
        return super().claims() if known else ()


def test_a_machine_whose_claim_the_journal_learns_of_late_is_kept() -> None:
    story = Story(None, *jobs(2, runs_s=1500)).play(400)
    machines = {i.id for i in story.world.cloud.instances()}
    late = LateCopy(":memory:")
    for claim in story.store.claims():
        late.put_claim(msgspec.structs.replace(claim, version=0))
    story.store = late
    story.crash()
    story.daemon.run_cycle(ALL_STAGES)
    assert {i.id for i in story.world.cloud.instances() if i.state is InstanceState.ACTIVE} == machines
    story.play(4 * 3600).assert_over(2)


def test_a_small_pod_is_not_overtaken_by_larger_ones_that_come_as_its_machine_is_ready() -> None:
    """Each larger one once got the machine bought for the small one, which then waited for one more."""
    policy = make_policy([NodeGroup("any")], [make_flavour("machine", "1", "2Gi", "0.1")])
    small = service("small", 1, requests=Resources(200, GIB, 0, 1))
    whole = Resources(800, 2 * GIB, 0, 1)
    larger = [service(f"larger-{i}", 1, at_s=59.0 + 60.0 * i, requests=whole) for i in range(4)]
    story = Story(policy, small, *larger, startup_s=60.0)
    story.play(600)
    (pod,) = [pod for pod in story.world.cluster.observe().pods if pod.name.startswith("small")]
    assert pod.started_at is not None
    assert pod.started_at - pod.created_at < 65
