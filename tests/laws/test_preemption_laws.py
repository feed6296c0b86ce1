"""Laws of preemption, on random clusters at their limit. Judged by plain arithmetic, and by the filters asked anew."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.constraints import UNCONSTRAINED, PodAffinityTerm
from htas.model.nodes import DO_NOT_DISRUPT, HOSTNAME_LABEL
from htas.model.plan import Plan
from htas.model.pods import MAY_MIGRATE, Pod, WorkKind
from htas.model.policy import Fallback, FallbackMode, Limits, Policy, Promises
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulated import open_simulation
from htas.planning.planner import plan
from tests.builders import (
    NOW,
    budget,
    constrained,
    labels_are,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    running,
)
from tests.laws.strategies import CONSTRAINTS, ZONE

Law = settings(max_examples=120, deadline=None, derandomize=True)
PRIORITIES = (-5, 0, 10, 1000, 2_000_000_000)


@st.composite
def pods(draw: Any, name: str, most: int = 4) -> Pod:
    """A pod of whole cores, of one of two applications; few are repelled, spread or promised to stay."""
    fields: dict[str, Any] = {
        "cpu": str(draw(st.integers(1, most))),
        "labels": {"app": draw(st.sampled_from("ab"))},
        "priority": draw(st.sampled_from(PRIORITIES)),
        "created_at": NOW - draw(st.integers(0, 300)),
        "constraints": draw(st.sampled_from([UNCONSTRAINED] * 4 + CONSTRAINTS)),
        "disruption": draw(st.sampled_from([{}] * 6 + [{DO_NOT_DISRUPT: "true"}, {MAY_MIGRATE: "false"}])),
    }
    return make_job(name, 300.0, **fields) if draw(st.booleans()) else make_pod(name, **fields)


@st.composite
def full_clusters(draw: Any) -> ClusterSnapshot:
    """Small nodes, mostly full; pods on their way out; pods that wait, some of them nominated."""
    nodes = [make_node(f"n{i}", "4", labels={ZONE: "xy"[i % 2]}) for i in range(draw(st.integers(1, 4)))]
    there: list[Pod] = []
    for node in nodes:
        left = 4
        for i in range(draw(st.integers(1, 4))):
            pod = msgspec.structs.replace(draw(pods(f"{node.name}-{i}", 2)), constraints=UNCONSTRAINED)
            if pod.requests.cpu_m <= left * 1000:
                left -= pod.requests.cpu_m // 1000
                ends = {"deleted_at": NOW - 1} if draw(st.integers(0, 9)) == 0 else {}
                there.append(msgspec.structs.replace(running(pod, node.name, draw(st.integers(0, 90))), **ends))
    has_nominations = draw(st.integers(0, 2)) == 0
    for i in range(draw(st.integers(1, 5))):
        pod = draw(pods(f"w{i}"))
        if has_nominations and draw(st.booleans()):
            pod = msgspec.structs.replace(pod, nominated_node=draw(st.sampled_from(nodes)).name)
        there.append(pod)
    return make_snapshot(nodes, there, budgets=(budget(draw(st.integers(0, 3)), {"app": "a"}),))


@st.composite
def preempting(draw: Any) -> Policy:
    below = draw(st.sampled_from([-(2**31), 0, 0, 2**31 - 1]))
    promises = draw(st.sampled_from(list(Promises)))
    fallback = Fallback(mode=FallbackMode.PREEMPT, promises=promises, preempt_below=below)
    return make_policy(limits=Limits(max_nodes=draw(st.sampled_from([0, 0, 0, 1]))), fallback=fallback)


def by_key(snapshot: ClusterSnapshot) -> dict[str, Pod]:
    return {pod.key: pod for pod in snapshot.cluster.pods}


def only_work_of_lower_priority_leaves_and_for_one_pod_each(
    snapshot: ClusterSnapshot, policy: Policy, made: Plan
) -> None:
    pods = by_key(snapshot)
    for item in made.preempt:
        victim, pod = pods[item.pod], pods[item.beneficiary]
        assert victim.priority < pod.priority
        assert victim.node == item.source
        assert pod.node is None
        assert not victim.is_terminating
        if policy.fallback.promises is Promises.KEEP:
            assert DO_NOT_DISRUPT not in victim.disruption
            assert victim.disruption.get(MAY_MIGRATE) != "false"
    assert max(Counter(item.pod for item in made.preempt).values(), default=0) <= 1
    moved = {item.pod for item in made.migrate}
    assert not moved & {item.pod for item in made.preempt}


def budgets_are_never_overspent_where_promises_are_kept(snapshot: ClusterSnapshot, policy: Policy, made: Plan) -> None:
    if policy.fallback.promises is not Promises.KEEP:
        return
    pods = by_key(snapshot)
    leaving = [pods[item.pod] for item in (*made.preempt, *made.migrate)]
    for each in snapshot.cluster.budgets:
        assert sum(each.covers(pod) for pod in leaving) <= max(0, each.disruptions_allowed)


def every_waiting_pod_is_placed_once_or_told_why_not(snapshot: ClusterSnapshot, policy: Policy, made: Plan) -> None:
    told = Counter(bind.pod for bind in made.bind)
    told.update(item.pod for item in made.nominate)
    told.update(item.pod for item in made.unplaced)
    told.update(key for item in made.launch for key in item.pods)
    assert told == Counter(pod.key for pod in snapshot.cluster.pods if pod.node is None)


@st.composite
def companions(draw: Any) -> ClusterSnapshot:
    """Work of three priorities that finds room by its company alone, which may come in a later turn."""
    node = make_node("n", "4")
    there = [running(make_pod("keeper", "1", "1Mi", priority=2000, labels={"app": "k"}), "n")]
    there.append(make_pod("top", "4", "1Mi", priority=1000))
    guest = constrained(affinity=(PodAffinityTerm(HOSTNAME_LABEL, labels_are(app="a")),))
    waits: dict[str, Any] = {"kind": WorkKind.BATCH, "created_at": NOW - 1000}
    there.append(make_pod("guest", "1", "1Mi", priority=draw(st.sampled_from((10, 20))), constraints=guest, **waits))
    there.append(make_pod("company", "1", "1Mi", labels={"app": "a"}))
    for i in range(draw(st.integers(0, 3))):
        near = (PodAffinityTerm(HOSTNAME_LABEL, labels_are(app=draw(st.sampled_from("ab")))),)
        fields: dict[str, Any] = {
            "priority": draw(st.sampled_from((0, 10, 20))),
            "labels": {"app": draw(st.sampled_from("ab"))},
            "constraints": draw(st.sampled_from((UNCONSTRAINED, constrained(affinity=near)))),
            "created_at": NOW - draw(st.sampled_from((5, 1000))),
            "kind": draw(st.sampled_from((WorkKind.BATCH, WorkKind.BATCH, WorkKind.SERVICE))),
        }
        there.append(make_pod(f"w{i}", str(draw(st.sampled_from((1, 1, 1, 2, 4)))), "1Mi", **fields))
    return make_snapshot([node], there)


@Law
@given(companions(), st.sampled_from((Limits(max_nodes=0), Limits(max_nodes=1), Limits(max_cpu_m=4000))))
def test_who_is_told_that_nothing_is_done_has_neither_a_node_nor_a_machine(
    snapshot: ClusterSnapshot, limits: Limits
) -> None:
    made = plan(snapshot, make_policy(limits=limits, fallback=Fallback(mode=FallbackMode.PREEMPT)), NOW)
    unplaced = {item.pod for item in made.unplaced}
    served = {item.pod for item in made.bind} | {item.pod for item in made.nominate}
    served |= {key for item in made.launch for key in item.pods}
    assert not unplaced & served
    assert not served & {item.beneficiary for item in made.preempt}
    assert unplaced | served == {pod.key for pod in snapshot.cluster.pods if pod.node is None}


def after(snapshot: ClusterSnapshot, made: Plan) -> ClusterSnapshot:
    """The cluster once the plan is done, but for machines and moves: victims and what ended are gone."""
    where = {item.pod: item.node for item in made.bind}
    gone = {item.pod for item in made.preempt}
    pods = [
        msgspec.structs.replace(pod, node=where.get(pod.key, pod.node), nominated_node=None)
        for pod in snapshot.cluster.pods
        if pod.key not in gone and not pod.is_terminating
    ]
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=tuple(pods)))


def the_first_whom_room_is_made_for_fits_once_the_victims_are_gone(
    snapshot: ClusterSnapshot, policy: Policy, made: Plan
) -> None:
    pods = by_key(snapshot)
    promised = {item.pod for item in made.unplaced if item.reason is Unplaced.NOMINATED}
    promised |= {pod.key for pod in pods.values() if pod.nominated_node}
    if not made.preempt or promised - {item.beneficiary for item in made.preempt}:
        return  # who was nominated before, or for whom enough ends anyway, holds room of his own
    first = made.preempt[0]
    own = [item for item in made.preempt if item.beneficiary == first.beneficiary]
    own_only = next(each for each in made.proposals if own[0] in each.moves)
    left = after(snapshot, msgspec.structs.replace(made, proposals=(own_only,), launch=()))
    opening = open_simulation(left, policy, NOW)
    row = opening.sim.table.row_of[first.source]
    cls = opening.book.class_of(pods[first.beneficiary])
    assert opening.sim.feasible(cls)[row]
    if policy.fallback.promises is Promises.KEEP or not snapshot.cluster.budgets:
        for spared in own:  # reprieve leaves nobody out in vain
            opening.sim.place(opening.book.class_of(pods[spared.pod]), row)
            assert not opening.sim.feasible(cls)[row]
            opening.sim.unplace(opening.book.class_of(pods[spared.pod]), row)


def whoever_is_bound_may_be_there_by_every_rule(snapshot: ClusterSnapshot, policy: Policy, made: Plan) -> None:
    """Among those who run and those who are bound with him; who has only been promised room is no company.

    Not those who are spread: others may come to their domain after them, whom no constraint keeps away.
    """
    pods = by_key(snapshot)
    where = {item.pod: item.node for item in made.bind}
    for key, node in where.items():
        if pods[key].constraints.spread:
            continue
        there = tuple(
            msgspec.structs.replace(
                pod, node=None if pod.key == key else where.get(pod.key, pod.node), nominated_node=None
            )
            for pod in pods.values()
        )
        opening = open_simulation(
            msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=there)),
            policy,
            NOW,
        )
        row = opening.sim.table.row_of[node]
        assert opening.sim.fits(opening.book.class_of(pods[key]), row)


LAWS = (
    only_work_of_lower_priority_leaves_and_for_one_pod_each,
    budgets_are_never_overspent_where_promises_are_kept,
    every_waiting_pod_is_placed_once_or_told_why_not,
    the_first_whom_room_is_made_for_fits_once_the_victims_are_gone,
    whoever_is_bound_may_be_there_by_every_rule,
)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(full_clusters(), preempting())
def test_every_plan_keeps_the_laws(snapshot: ClusterSnapshot, policy: Policy) -> None:
    """One plan is judged by all of them: to draw a cluster and to plan for it takes longer than any law."""
    made = plan(snapshot, policy, NOW)
    for law in LAWS:
        law(snapshot, policy, made)


@st.composite
def plain_clusters(draw: Any) -> ClusterSnapshot:
    """Nodes of four cores, hardly one of them free; large work that waits, and lesser work that would fill the gaps."""
    lesser = st.sampled_from((0, 10))
    there: list[Pod] = []
    nodes = [make_node(f"n{i}", "4") for i in range(draw(st.integers(1, 2)))]
    for node in nodes:
        for i, size in enumerate(draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (1, 1, 1)]))):
            there.append(running(make_pod(f"{node.name}-{i}", str(size), "1Mi", priority=draw(lesser)), node.name))
    large, small = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    there += [make_pod(f"large{i}", str(draw(st.integers(2, 4))), "1Mi", priority=20) for i in range(large)]
    there += [make_pod(f"small{i}", str(draw(st.integers(1, 2))), "1Mi", priority=draw(lesser)) for i in range(small)]
    return make_snapshot(nodes, there)


@Law
@given(plain_clusters())
def test_nobody_leaves_where_lesser_work_that_is_not_even_bound_could_give_way(snapshot: ClusterSnapshot) -> None:
    policy = make_policy(limits=Limits(max_nodes=0), fallback=Fallback(mode=FallbackMode.PREEMPT))
    made, pods = plan(snapshot, policy, NOW), by_key(snapshot)
    cores = {key: pod.requests.cpu_m for key, pod in pods.items()}
    for node in {item.source for item in made.preempt}:
        victims = [item.pod for item in made.preempt if item.source == node]
        room_for = {item.beneficiary for item in made.preempt if item.source == node}
        least = min(pods[key].priority for key in room_for)
        stay = [key for key, pod in pods.items() if pod.node == node and key not in victims]
        come = [item.pod for item in made.bind if item.node == node]
        assert sum(cores[key] for key in (*stay, *come, *room_for)) <= 4000
        come = [key for key in come if pods[key].priority >= least]
        left = 4000 - sum(cores[key] for key in (*stay, *come, *room_for))
        if len(room_for) == 1:
            assert all(cores[victim] > left for victim in victims), "each of them was in the way"


@Law
@given(full_clusters(), preempting(), st.randoms(use_true_random=False))
def test_the_order_of_the_snapshot_does_not_matter(
    snapshot: ClusterSnapshot, policy: Policy, chance: random.Random
) -> None:
    pods = list(snapshot.cluster.pods)
    chance.shuffle(pods)
    shuffled = msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=tuple(pods)))
    assert plan(shuffled, policy, NOW).preempt == plan(snapshot, policy, NOW).preempt


def _lapsed(snapshot: ClusterSnapshot, made: Plan) -> bool:
    """Whether a nomination came to nothing: it may hold again once others have left that node."""
    held = {(item.pod, item.message) for item in made.unplaced} | {(item.pod, "") for item in made.bind}
    nominated = [pod for pod in snapshot.cluster.pods if pod.nominated_node]
    return any(not held & {(pod.key, f"nominated to {pod.nominated_node}"), (pod.key, "")} for pod in nominated)


@Law
@given(full_clusters(), preempting())
def test_nobody_is_preempted_for_again_while_the_victims_end(snapshot: ClusterSnapshot, policy: Policy) -> None:
    """What a plan has begun, the next one awaits: victims end, the pod is nominated, nothing else has changed.

    Its room may still go to a more important pod, which gave way in the first plan or waited there without a nomination.
    """
    made = plan(snapshot, policy, NOW)
    victims = {item.pod for item in made.preempt}
    nominated = {item.beneficiary: item.source for item in made.preempt}
    bound = {item.pod: item.node for item in made.bind}
    pods = tuple(
        msgspec.structs.replace(
            pod,
            node=bound.get(pod.key, pod.node),
            deleted_at=NOW if pod.key in victims else pod.deleted_at,
            nominated_node=nominated.get(pod.key, pod.nominated_node),
        )
        for pod in snapshot.cluster.pods
    )
    if made.launch or made.migrate or made.remove or _lapsed(snapshot, made):
        return
    budgets = tuple(msgspec.structs.replace(each, disruptions_allowed=9) for each in snapshot.cluster.budgets)
    cluster = msgspec.structs.replace(snapshot.cluster, pods=pods, budgets=budgets)
    again = plan(msgspec.structs.replace(snapshot, cluster=cluster), policy, NOW)
    assert not {item.beneficiary for item in again.preempt} & set(nominated)
    waiting = {item.pod: item.reason for item in again.unplaced}
    kept = {Unplaced.NOMINATED, Unplaced.GIVES_WAY}
    assert all(waiting.get(key, Unplaced.NOMINATED) in kept for key in nominated)
