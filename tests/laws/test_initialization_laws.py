"""Laws of initialization: whatever nodes show and whenever they show it, few machines are launched and no pod is killed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.policy import NodeGroup
from htas.sandbox.cloud import Boot, Shows
from htas.sandbox.workload import Arrival
from tests.builders import make_flavour, make_policy, no_schedule
from tests.stories.play import Story, job
from tests.stories.test_initialization import GPU, train

HOUR = 3600.0
AGENT = no_schedule("agent")
FLAVOURS = (
    make_flavour("small", "2", "8Gi", "0.1"),
    make_flavour("large", "8", "32Gi", "0.5"),
    make_flavour("gpu", "8", "32Gi", "2", extended={GPU: 1}),
    make_flavour("gpus", "16", "64Gi", "5", extended={GPU: 4}),
)
DELAYS = st.sampled_from((0.0, 5.0, 30.0, 90.0, 300.0, 600.0, 890.0, None))
SHARES = st.sampled_from((1.0, 0.97, 0.75, 0.5, 0.3, 0.1, 0.01, 250.0))
SHOWN = st.lists(st.builds(Shows, SHARES, DELAYS), min_size=1, max_size=6)
BOOTS = st.lists(st.sampled_from((Boot.WELL, Boot.REGISTERS_BARE, Boot.REGISTERS_LATE)), max_size=3)
WORK = st.sampled_from((job("a", cpu_m=1500), job("a", cpu_m=7000), train("a"), train("a", gpus=3)))


@settings(max_examples=15, deadline=None)
@given(work=WORK, shown=SHOWN, boots=BOOTS, taint_s=DELAYS, crashes_at=st.sets(st.sampled_from((300, 600, 900, 1200))))
def test_machines_launched_for_one_pod_are_few_and_it_runs_once_a_node_can_hold_it(
    work: Arrival, shown: list[Shows], boots: list[Boot], taint_s: float | None, crashes_at: set[int]
) -> None:
    """Each machine of the list misbehaves in its own way; those after it are as they should be."""
    story = Story(make_policy([NodeGroup("any")], FLAVOURS), work)
    cloud = story.world.cloud
    cloud.arranged.extend(shown)
    for boot in boots:
        cloud.arrange_boot(boot)
    cloud.taints, cloud.taints_for_s = (AGENT,), taint_s
    for at_s in range(0, int(12 * HOUR), 300):
        if at_s == HOUR:
            cloud.taints = ()
        story.play(at_s)
        if at_s in crashes_at:
            story.crash()
        if story.world.ledger.finished and not story.store.claims():
            break
    story.assert_over(1)
    assert len(story.world.ledger.rentals) <= len(shown) + 6, "those that misbehave, and 4 an hour behind the taint"
    assert story.world.ledger.evictions == 0
