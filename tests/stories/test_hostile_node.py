"""A node that somebody has taken over says what its kubelet may say of it: that must cost nobody else."""

from __future__ import annotations

import msgspec
import pytest

from htas.model.nodes import CLAIM_LABEL
from htas.model.policy import Limits, NodeGroup
from tests.builders import make_policy
from tests.stories.play import Story, job


@pytest.mark.parametrize("taken", [0, 1])
def test_a_node_that_takes_anothers_claim_does_not_have_that_ones_machine_given_back(taken: int) -> None:
    """An empty node with the label of a busy one's claim had the busy machine deleted, with all work on it."""
    work = [job(f"job-{i}", runs_s=9000.0 if i == 1 - taken else 300.0, cpu_m=7000) for i in range(2)]
    story = Story(make_policy([NodeGroup("any")], limits=Limits(max_nodes=2)), *work).play(200)
    cluster = story.world.cluster
    busy = next(pod.node for pod in cluster.observe().pods if pod.name.startswith(f"job-{1 - taken}"))
    for node in cluster.observe().nodes:
        if node.name != busy:
            stolen = {**node.labels, CLAIM_LABEL: str(busy)}
            cluster._set_node(msgspec.structs.replace(node, labels=stolen))
    story.play(6000)
    assert story.world.ledger.killed_by_release == 0
    assert [node.name for node in cluster.observe().nodes] == [busy], "its own machine was given back, and no other"
    story.play(12_000).assert_over(2)
