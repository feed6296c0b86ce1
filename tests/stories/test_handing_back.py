"""An operator gives every machine back, or lets go of them; what that finds in the way is told, and stays."""

from __future__ import annotations

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.execution.backoff import Backoffs
from htas.execution.calls import DirectCalls
from htas.execution.cloud_calls import CloudCalls
from htas.execution.handing_back import HandingBack, forget
from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.model.claims import ClaimState
from htas.model.disruptions import drains_of
from htas.model.nodes import HOLDING, OWN_LABELS
from htas.model.outcomes import Outcome
from htas.model.pods import DO_NOT_DISRUPT, MAY_MIGRATE, SAFE_TO_EVICT
from htas.model.policy import CleaningRules, NodeGroup, Workload
from htas.ports import StorePort, TransientError
from htas.sandbox.workload import Arrival, Budget, ControllerKind
from tests.builders import labels_are, make_node, make_policy
from tests.stories.play import Story, job, service


class Handover:
    """A story whose daemon has ended; another process hands back, with a journal of its own unless it is given one."""

    def __init__(self, story: Story, store: StorePort | None = None, own_pod: str = "") -> None:
        self.story, world = story, story.world
        self.store = store or SqliteStore(":memory:")
        self.ports = Ports(world.clock, world.cluster, world.cloud, world.migration, self.store, world.announcer)
        calls = CloudCalls(DirectCalls(), world.clock)
        machines = Machines(self.ports, calls, story.policy, Backoffs(story.policy.timeouts))
        self.handing = HandingBack(self.ports, DirectCalls(), story.policy, machines, own_pod)
        self.outcomes: list[Outcome] = self.handing.begin()

    def run(self, within_s: float) -> Handover:
        world = self.story.world
        until = world.clock.now() + within_s
        while True:
            self.outcomes += self.handing.step()
            if self.handing.is_over or world.clock.now() >= until:
                return self
            world.advance_to(world.clock.now() + 1.0)

    @property
    def told(self) -> list[str]:
        return [f"{each.action} {each.subject}" for each in self.outcomes]

    @property
    def why(self) -> str:
        (left,) = self.handing.left
        return left.why


def running(*arrivals: Arrival, until_s: float = 300.0, **world: object) -> Story:
    """A story in which the work runs on machines of ours."""
    policy = make_policy([NodeGroup("any", Workload.ANY, cleaning=CleaningRules(enabled=False))])
    return Story(policy, *arrivals, **world).play(until_s)


def test_all_of_it_goes_and_nobody_elses() -> None:
    story = running(job("long", runs_s=90_000.0), service("web", 3))
    story.world.add_nodes([make_node("theirs")])
    assert len(story.nodes) > 1
    handover = Handover(story).run(600)
    assert handover.handing.left == ()
    assert story.nodes == ["theirs"]
    assert not story.world.cloud.instances()
    assert not handover.store.claims()
    assert all(bill.ended_at is not None for bill in handover.store.bills())
    assert story.world.ledger.killed_by_release == 0, "they were evicted, and had their time to end"


def test_with_the_daemons_own_journal_bills_and_claims_are_closed_in_it() -> None:
    story = running(job("long", runs_s=90_000.0), job("later", at_s=290.0, cpu_m=3000, runs_s=90_000.0))
    assert {claim.state for claim in story.store.claims()} > {ClaimState.READY}, "one is on its way"
    assert Handover(story, story.store).run(600).handing.left == ()
    assert not story.store.claims()
    assert not drains_of(story.store.disruptions())
    assert all(bill.ended_at is not None for bill in story.store.bills())
    assert not story.world.cloud.instances()


def test_all_are_closed_before_anybody_is_evicted() -> None:
    story = running(*(job(f"j{i}", runs_s=90_000.0, cpu_m=3500) for i in range(3)))
    nodes = story.nodes
    assert len(nodes) > 1
    told = Handover(story).run(600).told
    first = next(i for i, each in enumerate(told) if each.startswith("evict"))
    closed = [i for i, each in enumerate(told) if each.startswith("close")]
    assert len(closed) == len(nodes)
    assert max(closed) < first


HELD = [
    pytest.param({DO_NOT_DISRUPT: "true"}, ControllerKind.REPLICA_SET, "DoNotDisrupt", id="do-not-disrupt"),
    pytest.param({MAY_MIGRATE: "false"}, ControllerKind.REPLICA_SET, "DoNotDisrupt", id="opted out"),
    pytest.param({SAFE_TO_EVICT: "false"}, ControllerKind.REPLICA_SET, "NotSafeToEvict", id="not safe to evict"),
    pytest.param({}, ControllerKind.BARE, "NotReplicated", id="nobody would start it again"),
]


@pytest.mark.parametrize(("disruption", "controller", "reason"), HELD)
def test_a_promise_holds_its_machine_as_it_was(
    disruption: dict[str, str], controller: ControllerKind, reason: str
) -> None:
    web = service("web", 1, disruption=disruption).task
    story = running(Arrival(0.0, web, controller))
    handover = Handover(story).run(600)
    assert reason in handover.why
    assert story.world.clock.now() == story.start + 300.0, "nothing would change by waiting"
    assert not any(each.startswith(("close", "evict")) for each in handover.told)
    (node,) = story.world.cluster.observe().nodes
    assert not node.is_draining
    assert not node.is_unschedulable


@pytest.mark.parametrize(
    "disruption",
    [pytest.param({}, id="a service that did not opt in"), pytest.param({SAFE_TO_EVICT: "true"}, id="safe to evict")],
)
def test_what_only_thrift_would_spare_goes(disruption: dict[str, str]) -> None:
    story = running(service("web", 2, disruption=disruption))
    assert Handover(story).run(600).handing.left == ()
    assert not story.nodes


@pytest.mark.parametrize("mark", HOLDING)
def test_a_node_that_its_owner_protects_stays(mark: str) -> None:
    story = running(service("web", 1))
    (node,) = story.world.cluster.observe().nodes
    story.world.cluster.delete_node(node.name)
    story.world.add_nodes([msgspec.structs.replace(node, annotations={mark: "true"})])
    assert mark in Handover(story).run(60).why


def test_a_machine_with_a_pod_that_is_not_understood_stays() -> None:
    story = running(service("web", 1))
    (pod,) = story.world.cluster.observe().pods
    story.world.cluster.faults.unreadable.add(pod.key)
    assert f"{pod.key} on it cannot be understood" in Handover(story).run(60).why
    assert len(story.nodes) == 1


def test_the_machine_that_it_runs_on_stays() -> None:
    story = running(service("web", 1))
    (pod,) = story.world.cluster.observe().pods
    assert "hands back" in Handover(story, own_pod=pod.key).run(60).why


def test_a_budget_is_waited_for_and_the_machine_opened_again_when_time_is_over() -> None:
    story = running(service("web", 2))
    story.world.cluster.add_budget(Budget("default", "web", labels_are(app="web"), 2))
    handover = Handover(story).run(120)
    assert "budget" in handover.why
    assert all(node.is_draining for node in story.world.cluster.observe().nodes)
    assert [each.action for each in handover.handing.give_up()] == ["open"]
    (node,) = story.world.cluster.observe().nodes
    assert not node.is_draining
    assert not node.is_unschedulable
    assert {claim.state for claim in handover.store.claims()} == {ClaimState.READY}
    assert len([pod for pod in story.world.cluster.observe().pods if pod.node == node.name]) == 2


def test_a_pod_that_may_go_on_completion_is_waited_for() -> None:
    story = running(job("long", runs_s=700.0, disruption={SAFE_TO_EVICT: "on-completion"}))
    handover = Handover(story).run(900)
    assert handover.handing.left == ()
    assert story.world.ledger.finished == 1
    assert not any(each.startswith("evict") for each in handover.told)


def test_a_machine_without_a_node_is_not_waited_for() -> None:
    story = running(job("one", runs_s=90_000.0), until_s=30.0, startup_s=3600.0)
    assert story.world.cloud.instances()
    assert not story.nodes
    assert Handover(story).run(300).handing.left == ()
    assert not story.world.cloud.instances()


def test_what_was_given_up_half_way_is_taken_up_by_a_daemon() -> None:
    """The command is killed between closing and releasing: the next leader opens what nobody is emptying."""
    story = running(service("web", 2))
    story.world.cluster.add_budget(Budget("default", "web", labels_are(app="web"), 2))
    Handover(story).run(30)
    story.crash()
    story.play(600)
    assert not any(node.is_draining for node in story.world.cluster.observe().nodes)


def test_a_cluster_that_does_not_answer_is_asked_again() -> None:
    story = running(service("web", 1))
    handover = Handover(story)
    story.world.cluster.faults.arrange("observe", TransientError("away"))
    with pytest.raises(TransientError):
        handover.handing.step()
    assert handover.run(600).handing.left == ()


def test_machines_that_are_let_go_of_run_on_as_nobodys() -> None:
    story = running(service("web", 2))
    story.world.add_nodes([make_node("theirs", labels={"htas.io/cluster": "another"})])
    mine = next(node.name for node in story.world.cluster.observe().nodes if node.name != "theirs")
    story.world.cluster.set_draining(mine, True)
    handover = Handover(story)
    assert [each.subject for each in forget(handover.ports, story.policy)] == [mine]
    nodes = {node.name: node for node in story.world.cluster.observe().nodes}
    assert not set(OWN_LABELS) & set(nodes[mine].labels)
    assert not nodes[mine].is_draining
    assert nodes["theirs"].labels["htas.io/cluster"] == "another"
    assert len(story.world.cloud.instances()) == 1
    assert len([pod for pod in story.world.cluster.observe().pods if pod.node == mine]) == 2


def test_another_clusters_machine_that_bears_one_of_our_claims_is_nobodys_business() -> None:
    """Of two clusters in a project: taken for ours, it would have ours given back with its pods still running."""
    story = running(job("long", runs_s=90_000.0))
    [ours] = story.world.cloud.instances()
    theirs = msgspec.structs.replace(ours, id="theirs", name="theirs", cluster="other", created_at=story.start)
    story.world.cloud.add_foreign(theirs)
    handover = Handover(story).run(600)
    assert (handover.handing.left, story.nodes) == ((), [])
    assert story.world.cloud.instances() == (theirs,)
    assert story.world.ledger.killed_by_release == 0
