"""Laws of the edge in a real day: whatever services come, grow and shrink, nothing is over-committed or left over."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htas.model.disruptions import rearrangement_of
from htas.model.edge import EdgePolicy, Tier
from htas.model.nodes import DO_NOT_DISRUPT
from htas.model.pods import MAY_MIGRATE, Owner, Phase
from htas.model.policy import CleaningRules, Fallback, FallbackMode, Limits, NodeGroup
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.planner import plan
from htas.sandbox.workload import Arrival, Rescale, Workload
from tests.builders import (
    NOW,
    budget,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    ready_claim,
    running,
)
from tests.stories.play import GIB, Story, job, service

LAWS = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
POLICY = make_policy(
    [NodeGroup("any", limits=Limits(max_nodes=20))],
    edge=EdgePolicy(cloud_to_edge_moves=2, reorder_moves=1, settle_s=45.0),
)
GROWS_S = 400.0
"""Services change their sizes until then; ten minutes later everything has come to rest."""


@dataclass
class Day:
    cores: list[int]
    """Of the edge nodes."""
    arrivals: list[Arrival]
    rescales: list[Rescale]


@st.composite
def days(draw: st.DrawFn) -> Day:
    arrivals, rescales = [], []
    for i in range(draw(st.integers(2, 4))):
        wish = draw(st.sampled_from(["true", "true", "true", "false"]))
        promise = {DO_NOT_DISRUPT: "true"} if draw(st.integers(0, 5)) == 0 else {}
        task = {
            "requests": Resources(500 * draw(st.integers(1, 3)), GIB, 0, 1),
            "qos": draw(st.sampled_from([0.0, 0.5, 1.0, 1.0])),
            "disruption": {MAY_MIGRATE: wish, **promise},
            "priority": draw(st.sampled_from([0, 0, 10])),
        }
        at_s = float(draw(st.integers(0, 60)))
        arrivals.append(service(f"s{i}", draw(st.integers(1, 5)), at_s, **task))
        instants = draw(st.lists(st.integers(70, int(GROWS_S)), min_size=1, max_size=4, unique=True))
        rescales += [Rescale(float(at), "default", f"s{i}", draw(st.integers(0, 5))) for at in instants]
    if draw(st.booleans()):
        arrivals.append(job("batch", float(draw(st.integers(0, 200))), runs_s=90.0, cpu_m=1000))
    return Day(draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)), arrivals, rescales)


@LAWS
@given(days())
def test_whatever_a_day_brings_it_is_carried_out_within_its_limits_and_comes_to_rest(day: Day) -> None:
    story = Story(POLICY, startup_s=20.0)
    story.world.add_nodes(
        [make_node(f"e{i}", str(cores), labels={"htas.io/tier": "edge"}) for i, cores in enumerate(day.cores)]
    )
    story.world.load(Workload("day", tuple(day.arrivals), tuple(day.rescales)))
    story.play(GROWS_S + 600.0)
    story.assert_whole()
    pods = story.world.cluster.observe().pods
    assert all(pod.phase is Phase.RUNNING for pod in pods)
    wanted = {arrival.task.name: arrival.replicas for arrival in day.arrivals if arrival.task.runs_s is None}
    wanted |= {each.name: each.replicas for each in sorted(day.rescales, key=lambda each: each.at_s)}
    assert Counter(pod.name.partition("-")[0] for pod in pods) == Counter(wanted)
    assert rearrangement_of(story.store.disruptions()) is None
    tiers = {node.name: POLICY.tier_of(node) for node in story.world.cluster.observe().nodes}
    for result in story.seen:
        known = tiers | {node.name: POLICY.tier_of(node) for node in result.snapshot.cluster.nodes}
        by_uid = {pod.uid: pod for pod in result.snapshot.cluster.pods}
        shifts = result.plan.suggest
        lifts = [shift for shift in shifts if known[shift.source] is Tier.CLOUD]
        within = [shift for shift in shifts if known[shift.source] is known[shift.target or ""] is Tier.EDGE]
        of_service = Counter(pod.service for pod in by_uid.values() if not pod.is_terminating)
        moved = Counter(by_uid[shift.uid].service for shift in shifts)
        missed = {pod.service for pod in by_uid.values() if pod.node is not None and pod.ready_since is None}
        assert all(count <= max(1, of_service[service] // 4) for service, count in moved.items())
        assert missed.isdisjoint(moved), "a service with a pod that is not Ready is left alone"
        assert all(_has_settled(by_uid[shift.uid].ready_since, result.snapshot.taken_at) for shift in shifts)
        assert len(lifts) <= 2
        assert len(within) <= 1
        assert all(by_uid[shift.uid].disruption[MAY_MIGRATE] == "true" for shift in shifts)
        assert not any(DO_NOT_DISRUPT in by_uid[shift.uid].disruption for shift in shifts)


def _has_settled(ready_since: float | None, now: float) -> bool:
    return ready_since is not None and now - ready_since >= POLICY.edge.settle_s


RULES = CleaningRules(underutilized_for_s=60.0, queue_empty_for_s=0.0)
LONG_AGO = NOW - 3600.0


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    """An edge with room, and owned nodes that are little used: both suggestion and cleaner would have pods leave."""
    machines = [owned_node(f"m{i}", flavour="m1.large") for i in range(draw(st.integers(1, 4)))]
    edge = [make_node("e", str(draw(st.integers(1, 4))), labels={"htas.io/tier": "edge"})]
    apps = "abc"[: draw(st.integers(1, 3))]
    pods = []
    for i in range(draw(st.integers(1, 8))):
        app = draw(st.sampled_from(apps))
        pod = make_pod(
            f"{app}-{i}",
            "1",
            "512Mi",
            owner=Owner("ReplicaSet", app, f"{app}-uid", 8),
            labels={"app": app},
            disruption={MAY_MIGRATE: "true"},
        )
        # Two of a core on a node of four: it is little used, and there is room for them elsewhere.
        pods.append(running(pod, f"m{draw(st.integers(0, len(machines) - 1))}", 3600.0))
    if draw(st.booleans()):
        pods.append(make_pod("high", "4", "1Gi", owner=None, priority=10))
    budgets = [budget(draw(st.integers(0, 2)), {"app": app}, app) for app in apps if draw(st.integers(0, 3))]
    return make_snapshot(
        [*edge, *machines],
        pods,
        budgets=budgets,
        claims=tuple(ready_claim(node) for node in machines),
        memory=Memory({node.name: LONG_AGO for node in machines}, {}, LONG_AGO),
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(clusters(), st.sampled_from(FallbackMode))
def test_no_plan_disturbs_more_pods_than_budgets_allow(snapshot: ClusterSnapshot, mode: FallbackMode) -> None:
    limits = Limits(max_nodes=len(snapshot.claims))
    policy = make_policy([NodeGroup("any", cleaning=RULES)], limits=limits, fallback=Fallback(mode=mode))
    made = plan(snapshot, policy, NOW)
    leaving = Counter([shift.pod for shift in made.suggest])
    leaving.update([item.pod for item in made.migrate])
    leaving.update([item.pod for item in made.preempt])
    assert all(times == 1 for times in leaving.values()), "nobody is to leave twice"
    for each in snapshot.cluster.budgets:
        assert sum(each.covers(pod) for pod in snapshot.cluster.pods if pod.key in leaving) <= each.disruptions_allowed
