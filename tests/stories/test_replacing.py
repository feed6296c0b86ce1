"""Stories of services whose pods are replaced: the copy runs before the pod ends, so that none is ever missing."""

from __future__ import annotations

import pytest

from htas.model.edge import EdgePolicy, Tier
from htas.model.moves import MigrationMethod
from htas.model.nodes import GROUP_LABEL
from htas.model.pods import MAY_MIGRATE, Phase
from htas.model.policy import CleaningRules, NodeGroup
from htas.model.resources import Resources
from htas.ports import TransientError
from htas.sandbox.workload import Rescale, Workload
from tests.builders import make_flavour, make_node, make_policy
from tests.stories.play import GIB, Story, job, service

EVICT, REPLACE = MigrationMethod.EVICT, MigrationMethod.REPLACE
MOVABLE = {MAY_MIGRATE: "true"}
MACHINE = make_flavour("m", "2", "4Gi", "0.1")


def rules(method: MigrationMethod) -> CleaningRules:
    return CleaningRules(underutilized_for_s=60, queue_empty_for_s=60, migration=method, sets_deletion_costs=False)


def up(story: Story, name: str) -> int:
    """Pods of a service that run and stay."""
    pods = story.world.cluster.observe().pods
    return sum(pod.name.startswith(name) and pod.phase is Phase.RUNNING and not pod.is_terminating for pod in pods)


def fewest_up(story: Story, name: str, from_s: int, to_s: int) -> int:
    return min(up(story.play(at_s), name) for at_s in range(from_s, to_s))


def shrunk(method: MigrationMethod) -> Story:
    """Six replicas on two machines, of which two go after ten minutes: one machine would do then."""
    policy = make_policy([NodeGroup("any", cleaning=rules(method))], [MACHINE])
    story = Story(policy, service("web", 6, disruption=MOVABLE))
    story.world.load(Workload("less", (), (Rescale(600, "default", "web", 4),)))
    return story


@pytest.mark.parametrize("method", [EVICT, REPLACE])
def test_the_cleaner_empties_a_node_and_no_replica_is_missing(method: MigrationMethod) -> None:
    story = shrunk(method)
    fewest = fewest_up(story, "web", 620, 1500)
    assert len(story.nodes) == 1
    assert (fewest == 4) is (method is REPLACE)
    assert story.world.ledger.migrations == (2 if method is REPLACE else 0)
    story.assert_whole()


def test_a_copy_that_fails_is_tried_again_and_nobody_misses_it() -> None:
    story = shrunk(REPLACE)
    story.world.migration.faults.arrange("restore", TransientError("no image"))
    assert fewest_up(story, "web", 620, 1500) == 4
    assert len(story.nodes) == 1
    assert any("after 2 attempts" in message for message in story.messages)


def test_beside_them_batch_work_is_evicted_and_begins_again() -> None:
    """Two machines: one is full of services, on the other a job runs on beside a service once its neighbours end."""
    policy = make_policy([NodeGroup("any", cleaning=rules(REPLACE))], [MACHINE])
    work = [service("web", 5, disruption=MOVABLE), job("long", 0.0, 3000)]
    story = Story(policy, *work)
    story.world.load(Workload("less", (), (Rescale(400, "default", "web", 3),)))
    assert fewest_up(story, "web", 420, 1500) == 3
    assert (story.world.ledger.migrations, story.world.ledger.evictions) == (1, 1)
    story.assert_whole()


def near_and_far(method: MigrationMethod) -> Story:
    """An edge node of 2 cores and a cloud node of 4; what runs in the cloud is moved by the method."""
    groups = [
        NodeGroup("near", tier=Tier.EDGE, is_elastic=False),
        NodeGroup("far", is_elastic=False, cleaning=CleaningRules(enabled=False, migration=method)),
    ]
    story = Story(make_policy(groups, edge=EdgePolicy()))
    story.world.add_nodes(make_node(name, cores, labels={GROUP_LABEL: name}) for name, cores in SIZES.items())
    asks = {"requests": Resources(1000, GIB, 0, 1), "disruption": MOVABLE}
    story.world.load(Workload("shop", (service("web", 2, **asks), service("api", 2, 1.0, **asks))))
    story.world.load(Workload("less", (), (Rescale(300, "default", "web", 0),)))
    return story


SIZES = {"near": "2", "far": "4"}


@pytest.mark.parametrize("method", [EVICT, REPLACE])
def test_what_comes_near_again_serves_all_the_while(method: MigrationMethod) -> None:
    story = near_and_far(method)
    least = fewest_up(story, "api", 60, 900)
    where = {pod.node for pod in story.world.cluster.observe().pods if pod.name.startswith("api")}
    assert where == {"near"}, story.messages
    assert (least == 2) is (method is REPLACE)
    story.assert_whole()
