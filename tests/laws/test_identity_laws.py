"""Whatever somebody does to labels, names and Node objects, no pod is killed by a delete, and all ends as it should."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL
from htas.model.policy import NodeGroup, Workload
from tests.builders import make_policy
from tests.stories.play import Story, job, service

HOUR_S = 3600.0
TEXTS = st.sampled_from(["x", "none", "test", "", None, "of another"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("label"), st.sampled_from([CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL]), TEXTS),
        st.tuples(st.just("label all"), st.sampled_from([CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL]), TEXTS),
        st.tuples(st.just("rename"), st.just(""), st.none()),
        st.tuples(st.just("double"), st.just(""), st.none()),
        st.tuples(st.just("providerID"), st.sampled_from(["", "k3s://elsewhere", "sandbox:///vm-00001"]), st.none()),
        st.tuples(st.just("error"), st.just(""), st.none()),
        st.tuples(st.just("restart"), st.just(""), st.none()),
        st.tuples(st.just("wait"), st.just(""), st.none()),
    ),
    min_size=1,
    max_size=8,
)


class Meddled:
    """A story with jobs and a service, and somebody with rights on nodes."""

    def __init__(self) -> None:
        work = [job(f"job-{i}", i * 1500.0, runs_s=5000.0, cpu_m=3000) for i in range(4)]
        self.story = Story(make_policy([NodeGroup("any", Workload.ANY)]), *work, service("web", 2)).play(400)
        self.renamed = 0

    def take(self, step: tuple[str, str, str | None], pick: int) -> None:
        world, (what, key, text) = self.story.world, step
        nodes = world.cluster.observe().nodes
        node = nodes[pick % len(nodes)] if nodes else None
        if what == "restart":
            self.story.crash()
        elif node is not None:
            match what:
                case "label":
                    world.cluster.relabel(node.name, {key: node.labels.get(key) if text == "of another" else text})
                case "label all":
                    said = nodes[0].labels.get(key) if text == "of another" else text
                    for each in nodes:
                        world.cluster.relabel(each.name, {key: said})
                case "rename":
                    self.renamed += 1
                    world.cluster.rename(node.name, f"renamed-{self.renamed}")
                case "double":
                    self.renamed += 1
                    forged = msgspec.structs.replace(node, name=f"forged-{self.renamed}", uid=f"forged-{self.renamed}")
                    world.cluster.add_node(forged)
                case "providerID":
                    world.cluster.lose_provider_id(node.name, key)
                case "error":
                    for instance in world.cloud.instances():
                        if instance.id == node.machine:
                            world.cloud.fail(instance.id)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, picks=st.lists(st.integers(0, 5), min_size=8, max_size=8))
def test_no_pod_is_killed_by_a_delete_and_machines_are_bounded(
    steps: list[tuple[str, str, str | None]], picks: list[int]
) -> None:
    meddled = Meddled()
    story, at_s = meddled.story, 400.0
    for step, pick in zip(steps, picks, strict=False):
        meddled.take(step, pick)
        at_s += 1200.0
        story.play(at_s)
    story.play(at_s + 6 * HOUR_S)
    ledger = story.world.ledger
    assert ledger.killed_by_release == 0
    assert ledger.finished == 4, "all jobs end"
    assert len(ledger.rentals) <= 10, "nothing is launched without end"
    running = [pod for pod in story.world.cluster.observe().pods if pod.node is not None]
    assert len(running) == 2, "the service runs"
