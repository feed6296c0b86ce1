"""Preemption on a fresh view: only those leave whom the plan meant."""

from __future__ import annotations

import msgspec
import pytest

from htas.planning.planner import plan
from tests.builders import make_node, make_snapshot
from tests.stories.play import Story
from tests.unit.planning.preemption.world import incoming, on, policy


@pytest.mark.parametrize(
    ("uid", "evictions"),
    [pytest.param("a", 1, id="the very pod"), pytest.param("a-again", 0, id="another that bears its name by now")],
)
def test_a_victim_is_the_pod_that_the_plan_saw(uid: str, evictions: int) -> None:
    victim, important = on("n", "a"), incoming()
    snapshot = make_snapshot([make_node("n")], [victim, important])
    made = plan(snapshot, policy(), snapshot.taken_at)
    assert [(each.pod, each.source, each.beneficiary) for each in made.preempt] == [("default/a", "n", "default/p")]
    story = Story(policy())
    cluster = story.world.cluster
    cluster.add_node(make_node("n"))
    for pod in (msgspec.structs.replace(victim, uid=uid), important):
        cluster.add_pod(pod)
    story.daemon._disruptions.begin(made, snapshot)
    assert story.world.ledger.evictions + story.world.ledger.preempted == evictions
