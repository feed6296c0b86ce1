"""Laws of carrying a rearrangement out: whatever it is, no node is over-committed on the way, and it comes to its end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.plan import Plan
from htas.model.pods import MAY_MIGRATE, Owner, Pod
from htas.model.policy import Limits
from htas.model.proposals import Seat
from htas.model.rearrangement import OpenRearrangement, Rearrangement, RearrangementStatus
from htas.model.reasons import OutcomeReason
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.model.stages import Stage
from htas.planning.cluster.slots import progress
from htas.planning.disrupt.rearrangement.advance import advance_on
from htas.planning.disrupt.rearrangement.validity import after_detour, open_rearrangement
from htas.planning.planner import plan
from tests.builders import NOW, make_node, make_pod, make_policy, running

CORES = 8
POLICY = make_policy(limits=Limits(max_nodes=0))


@dataclass
class Case:
    """Pods by name with (cores, node now, node then); None: it waits."""

    nodes: list[str]
    pods: dict[str, tuple[int, str | None, str | None]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Two placements of the same pods, each of which fits; what waits now and is placed then is the important work."""
    nodes = [f"n{i}" for i in range(draw(st.integers(2, 4)))]
    now, then = dict.fromkeys(nodes, CORES), dict.fromkeys(nodes, CORES)
    pods: dict[str, tuple[int, str | None, str | None]] = {}
    for i in range(draw(st.integers(2, 12))):
        cores = draw(st.integers(1, 5))
        here = draw(st.sampled_from([None, *nodes]))
        there = draw(st.sampled_from([None, *nodes]))
        if here is not None and now[here] < cores:
            here = None
        if there is not None and then[there] < cores:
            there = None
        if here is not None:
            now[here] -= cores
        if there is not None:
            then[there] -= cores
        pods[f"p{i}"] = cores, here, there
    assume(any(here is None and there is not None for _, here, there in pods.values()))
    return Case(nodes, pods)


def without_victims(case: Case) -> Case:
    """The case without pods that would be evicted for nowhere, as none is for its equals."""
    return Case(case.nodes, {name: pod for name, pod in case.pods.items() if pod[1] is None or pod[2] is not None})


@dataclass
class Play:
    """A cluster in which plans are carried out: what is evicted ends after some cycles, and comes back as another pod."""

    case: Case
    takes: list[int]
    """So many cycles each evicted pod takes to end, in turn."""
    pods: dict[str, Pod] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    disturbed: Counter[str] = field(default_factory=Counter)
    importance: int = 10
    """The priority of what waits; the others' is 0."""
    service: str = ""
    """Whose pods all of them are; without it each is one of its own."""

    def __post_init__(self) -> None:
        for name, (cores, here, _) in self.case.pods.items():
            priority = self.importance if here is None else 0
            pod = self._pod(name, name, cores, priority)
            self.pods[name] = pod if here is None else running(pod, here)

    def _pod(self, name: str, uid: str, cores: int, priority: int) -> Pod:
        owner = Owner("ReplicaSet", self.service or name.partition("-")[0], name.partition("-")[0], 1)
        return make_pod(
            name, str(cores), "1Mi", uid=uid, owner=owner, priority=priority, disruption={MAY_MIGRATE: "true"}
        )

    def found(self) -> Rearrangement:
        moves, seats = [], []
        for name, (_, here, there) in self.case.pods.items():
            key = f"default/{name}"
            if here is not None and here != there:
                moves.append(Move(key, name, here, there, MigrationMethod.EVICT, MoveReason.MAKES_ROOM))
            elif here is None and there is not None:
                seats.append(Seat(key, name, there))
        return Rearrangement(NOW, RearrangementStatus.IMPROVED, (), tuple(moves), tuple(seats))

    def snapshot(self, opened: OpenRearrangement | None) -> ClusterSnapshot:
        nodes = tuple(make_node(name, str(CORES), "64Gi") for name in self.case.nodes)
        return ClusterSnapshot(NOW, ClusterView(nodes, tuple(self.pods.values())), rearrangement=opened)

    def carry_out(self, made: Plan, opened: OpenRearrangement) -> OpenRearrangement:
        """Do what the plan says, steps as they are on a fresh look; returns the rearrangement as it is journalled then."""
        for bind in made.bind:
            name = bind.pod.partition("/")[2]
            self.pods[name] = running(self.pods[name], bind.node)
        self.assert_nothing_is_over_committed()
        opened = progress(opened, self.snapshot(None).cluster, NOW)
        steps = advance_on(self.snapshot(opened), POLICY, NOW).carrying.steps if made.carry.steps else ()
        detours = {step.uid: step.target for step in steps if step.reason is MoveReason.DETOUR}
        opened = after_detour(opened, detours, self.pods.values()) if detours else opened
        for step in steps:
            self._evict(step.uid)
        for name in [name for name, left in self.ends.items() if left <= 0]:
            del self.pods[name], self.ends[name]
        self.ends = {name: left - 1 for name, left in self.ends.items()}
        return progress(opened, self.snapshot(None).cluster, NOW)

    def _evict(self, uid: str) -> None:
        [pod] = [pod for pod in self.pods.values() if pod.uid == uid]
        assert not pod.is_terminating
        self.disturbed[pod.owner.uid if pod.owner else ""] += 1
        self.pods[pod.name] = msgspec.structs.replace(pod, deleted_at=NOW)
        self.ends[pod.name] = self.takes[sum(self.disturbed.values()) % len(self.takes)]
        again = self._pod(f"{pod.name}-x", f"{uid}-x", pod.requests.cpu_m // 1000, pod.priority)
        self.pods[again.name] = again

    def assert_nothing_is_over_committed(self) -> None:
        asked: Counter[str] = Counter()
        for pod in self.pods.values():
            if pod.node is not None:
                asked[pod.node] += pod.requests.cpu_m
        assert all(most <= 1000 * CORES for most in asked.values()), asked


@settings(max_examples=200, deadline=None, derandomize=True)
@given(cases(), st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_it_ends_with_everybody_in_place_and_never_over_commits(case: Case, takes: list[int]) -> None:
    play = Play(case, takes)
    opened = open_rearrangement(play.found().proposal, play.snapshot(None), POLICY, NOW)
    assume(isinstance(opened, OpenRearrangement))  # else it moves pods for nothing, in some part of the cluster
    assert isinstance(opened, OpenRearrangement)
    stages = frozenset({Stage.SCHEDULING})
    for _ in range(200):
        made = plan(play.snapshot(opened), POLICY, NOW, stages)
        if made.carry.cancel is not None:
            assert made.carry.cancel is OutcomeReason.NOTHING_GAINED, made.carry.message
            break
        opened = play.carry_out(made, opened)
        if opened.is_complete:
            break
    important = {pod.owner.uid for pod in play.pods.values() if pod.owner and pod.priority and pod.node is not None}
    wanted = {name for name, (_, here, there) in case.pods.items() if here is None and there is not None}
    assert wanted <= important, "all that it was made for runs"
    assert all(times == 1 for times in play.disturbed.values()), "nobody is disturbed twice"
    assert set(play.disturbed) <= {move.uid for move in play.found().moves}
    moved = {move.uid for move in play.found().moves if move.target is not None} & set(play.disturbed)
    if opened.is_complete:
        assert moved <= {
            pod.owner.uid for pod in play.pods.values() if pod.owner and pod.node and not pod.is_terminating
        }


TWO_CIRCLES = Case(
    ["n0", "n1", "n2"],
    {
        "p0": (1, "n2", "n0"),
        "p1": (4, "n0", "n1"),
        "p2": (3, "n1", "n0"),
        "p3": (2, "n1", "n1"),
        "p5": (3, "n2", "n2"),
        "p4": (1, "n2", "n1"),
        "p6": (1, "n0", "n1"),
        "p7": (4, None, "n0"),
        "p8": (5, None, "n2"),
    },
)
"""Were p0 to leave first, it would be down for good: p1 and p2 wait for each other in its way."""


@settings(max_examples=200, deadline=None, derandomize=True)
@example(TWO_CIRCLES, [2, 3, 1, 2])
@given(cases().map(without_victims), st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_for_its_equals_a_service_lacks_no_more_than_a_quarter_and_nobody_is_left_down(
    case: Case, takes: list[int]
) -> None:
    """All pods are of one service. Where too many would have to be down at once, what has not left yet stays."""
    play = Play(case, takes, importance=0, service="web")
    opened = open_rearrangement(play.found().proposal, play.snapshot(None), POLICY, NOW)
    assume(isinstance(opened, OpenRearrangement))
    assert isinstance(opened, OpenRearrangement)
    ran = {name for name, (_, here, _) in case.pods.items() if here is not None}
    most = max(1, len(case.pods) // 4)
    up = set[str]()
    for _ in range(60):
        made = plan(play.snapshot(opened), POLICY, NOW, frozenset({Stage.SCHEDULING}))
        if made.carry.cancel is not None:
            assert made.carry.cancel is OutcomeReason.NOTHING_GAINED, made.carry.message
            break
        opened = play.carry_out(made, opened)
        alive = [pod for pod in play.pods.values() if pod.node is not None and not pod.is_terminating]
        up = {pod.owner.uid for pod in alive if pod.owner is not None}
        assert len(ran - up) <= most, "a quarter, and one at least"
        if opened.is_complete:
            break
    assert ran <= up, "who left is back"
