"""A service's small pod that waits for its machine while larger ones come, and the daemon that is started again."""

from __future__ import annotations

import pytest

from htas.model.policy import NodeGroup, Workload
from htas.model.resources import Resources
from tests.builders import make_flavour, make_policy
from tests.stories.play import GIB, Story, service

MACHINE = make_flavour("machine", "1", "2Gi", "0.1")
ARRIVALS = [60.0 + 110 * i for i in range(6)]


@pytest.mark.parametrize(
    "crashes",
    [
        pytest.param([], id="the daemon runs on"),
        pytest.param([at_s + 5 for at_s in ARRIVALS], id="it is started again after each arrival"),
    ],
)
def test_larger_pods_do_not_take_the_machine_that_a_small_one_waits_for(crashes: list[float]) -> None:
    """It waited 401 s, more than three starts, while a daemon that was started again forgot whom machines were for."""
    large = [service(f"large-{i}", 1, at_s, requests=Resources(1000, 2 * GIB, 0, 1)) for i, at_s in enumerate(ARRIVALS)]
    policy = make_policy([NodeGroup("b", Workload.ANY)], [MACHINE])
    story = Story(policy, service("small", 1), *large, startup_s=120.0)
    for at_s in crashes:
        story.play(at_s)
        story.crash()
    story.play(1200)
    story.assert_whole()
    assert len(story.nodes) == 7
    assert dict(story.world.ledger.first_starts)["default/small"] - story.start < 125
