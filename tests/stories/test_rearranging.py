"""Stories of rearrangements: pods are moved so that more important work finds room, and nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from htas.daemon.loops.optimizer import SearchResult
from htas.daemon.loops.searching import SearchState
from htas.model.disruptions import rearrangement_of
from htas.model.migrations import MigrationSettings, Refusal
from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import MAY_MIGRATE, Phase, Pod
from htas.model.policy import (
    CleaningRules,
    Fallback,
    Limits,
    NewPods,
    NodeGroup,
    Policy,
)
from htas.model.proposals import Seat
from htas.model.rearrangement import Rearrangement, RearrangementStatus
from htas.model.reasons import OutcomeReason
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot
from htas.ports import HTASError, MoveRefusedError, PermanentError
from htas.sandbox.workload import Arrival, Budget, Rescale, Workload
from tests.builders import labels_are, make_node, make_pod, make_policy
from tests.stories.play import GIB, Story, job, service

MOVABLE = {MAY_MIGRATE: "true"}
EVICT, CHECKPOINT = MigrationMethod.EVICT, MigrationMethod.CHECKPOINT


@dataclass
class Foretold:
    """An optimiser that has been told what to find: `moves` by pod (None: evicted), `seats` by pod."""

    moves: Mapping[str, str | None]
    seats: Mapping[str, str]
    method: MigrationMethod = EVICT
    asked: list[ClusterSnapshot] = field(default_factory=list)
    answers: list[SearchResult] = field(default_factory=list)
    is_slow: bool = False
    """Its search is under way until this is False."""

    @property
    def is_busy(self) -> bool:
        return bool(self.answers)

    @property
    def has_answer(self) -> bool:
        return bool(self.answers) and not self.is_slow

    def begin(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        self.asked.append(snapshot)
        pods = {pod.name: pod for pod in snapshot.cluster.pods}
        shifts = tuple(
            Move(pods[name].key, pods[name].uid, pods[name].node or "", target, self.method, MoveReason.MAKES_ROOM)
            for name, target in self.moves.items()
            if name in pods
        )
        seats = tuple(Seat(pods[name].key, pods[name].uid, node) for name, node in self.seats.items() if name in pods)
        found = Rearrangement(snapshot.taken_at, RearrangementStatus.PROVEN_OPTIMAL, (), shifts, seats)
        self.answers.append(SearchResult(found, "", 0.0))

    def answer(self) -> SearchResult | None:
        return self.answers.pop() if self.has_answer else None

    def close(self) -> None:
        self.answers.clear()


def policy(**fields: Any) -> Policy:
    """A cluster for which nothing can be bought."""
    group = NodeGroup("any", cleaning=CleaningRules(migration=MigrationMethod.CHECKPOINT))
    fallback = Fallback(
        after_s=1.0, pause_s=fields.pop("pause_s", 600.0), new_pods=fields.pop("new_pods", NewPods.PLAN_AROUND)
    )
    return make_policy([group], limits=Limits(max_nodes=0), fallback=fallback, **fields)


def nodes(*names: str, cpu: str = "4", memory: str = "8Gi") -> list[Node]:
    return [make_node(name, cpu, memory) for name in names]


class Full(Story):
    """A cluster of fixed nodes with work where another scheduler has put it; what is `late` arrives a minute later."""

    def __init__(
        self,
        there: Iterable[Node],
        placed: Mapping[str, str],
        arrivals: Iterable[Arrival],
        optimizer: Foretold | None,
        budgets: Iterable[Budget] = (),
        **fields: Any,
    ) -> None:
        self.optimizer = optimizer
        super().__init__(policy(**fields))
        self.world.add_nodes(there)
        self.world.load(Workload("full", tuple(arrivals), budgets=tuple(budgets)))
        self.world.advance_to(self.start + 0.5)
        for pod in self.world.cluster.observe().pods:
            self.world.cluster.bind(pod, placed[pod.name])
        self.world.advance_to(self.start + 10)

    def pods(self, prefix: str = "") -> dict[str, str | None]:
        """Pods that are not on their way out, by name, with their nodes."""
        found = self.world.cluster.observe().pods
        return {pod.name: pod.node for pod in found if pod.name.startswith(prefix) and not pod.is_terminating}

    def on(self, node: str) -> set[str]:
        """The owners of those on a node."""
        return {name.rpartition("-")[0] for name, where in self.pods().items() if where == node}

    def all_run(self) -> bool:
        return all(pod.phase is Phase.RUNNING for pod in self.world.cluster.observe().pods)

    def told(self, verb: str) -> list[str]:
        return [o.message for result in self.seen for o in result.outcomes if o.action == verb]


def web(name: str, cpu_m: int, at_s: float = 0.0, replicas: int = 1, priority: int = 0, **task: Any) -> Arrival:
    requests = Resources(cpu_m, GIB, 0, 1)
    fields = {"requests": requests, "priority": priority, "disruption": MOVABLE, **task}
    return service(name, replicas, at_s, **fields)


def figure_1(optimizer: Foretold | None = None, **fields: Any) -> Full:
    """Two nodes of 4, each with a pod of 2, and a third pod of 3."""
    arrivals = [web("one", 2000), web("two", 2000), web("three", 3000, at_s=60)]
    told = optimizer or Foretold({"two-1": "a"}, {"three-1": "b"})
    return Full(nodes("a", "b"), {"one-1": "a", "two-1": "b"}, arrivals, told, **fields)


def test_figure_1_of_the_document() -> None:
    story = figure_1().play(150)
    assert (story.on("a"), story.on("b"), story.all_run()) == ({"one", "two"}, {"three"}, True)
    assert story.told("rearrange") == ["1 pod is placed by moving 1 and evicting 0"]
    assert [message.partition(" in ")[0] for message in story.told("rearranged")] == ["1 placed, 1 moved, 0 evicted"]
    assert story.world.ledger.evictions == 1
    assert rearrangement_of(story.store.disruptions()) is None
    assert len(story.optimizer.asked) == 1 if isinstance(story.optimizer, Foretold) else False
    story.assert_whole()


@pytest.mark.parametrize("moment", range(8))
def test_a_daemon_that_crashes_after_any_cycle_goes_on(moment: int) -> None:
    story = figure_1()
    for second in range(60, 150):
        story.play(second)
        if second == 80 + moment:
            story.crash()
    assert (story.on("a"), story.on("b"), story.all_run()) == ({"one", "two"}, {"three"}, True)
    assert story.world.ledger.evictions == 1
    story.assert_whole()


CYCLE = {"x-1": "a", "y-1": "b", "z-1": "b"}


TALL = Resources(2000, 5 * GIB, 0, 1)


def in_a_circle(method: MigrationMethod = EVICT, *more: Node) -> Full:
    """x and y wait for each other's room: neither node has enough for the other's pod."""
    arrivals = [web("x", 3000), web("y", 2000), web("z", 1000), web("high", 2000, at_s=60, priority=10, requests=TALL)]
    told = Foretold({"x-1": "b", "y-1": "a"}, {"high-1": "a"}, method)
    return Full([*nodes("a", "b"), *more], CYCLE, arrivals, told)


def test_a_circle_is_broken_by_evicting_one() -> None:
    story = in_a_circle().play(200)
    assert (story.on("a"), story.on("b"), story.all_run()) == ({"y", "high"}, {"x", "z"}, True)
    assert story.world.ledger.evictions == 2
    assert [o.subject for r in story.seen for o in r.outcomes if o.action == "move"] == ["default/x-1", "default/y-1"]
    story.assert_whole()


def test_a_circle_is_broken_by_room_on_a_third_node() -> None:
    """No pod is down for it, and the room it is moved to is as good as the one it was to have."""
    story = in_a_circle(CHECKPOINT, make_node("c", "3", "4Gi")).play(200)
    assert (story.on("a"), story.on("b"), story.on("c")) == ({"high"}, {"y", "z"}, {"x"})
    assert (story.world.ledger.evictions, story.world.ledger.migrations) == (0, 1)
    assert story.all_run()
    story.assert_whole()


@pytest.mark.parametrize("moment", range(0, 30, 3))
def test_a_crash_while_a_circle_is_broken_is_survived(moment: int) -> None:
    story = in_a_circle(EVICT)
    story.play(80 + moment).crash()
    story.play(300)
    assert (story.on("a"), story.on("b"), story.all_run()) == ({"y", "high"}, {"x", "z"}, True)
    assert story.world.ledger.evictions == 2
    story.assert_whole()


def test_a_job_that_is_moved_keeps_its_progress() -> None:
    arrivals = [web("one", 2000), job("train", runs_s=300, cpu_m=2000), web("three", 3000, at_s=60, priority=10)]
    told = Foretold({"train-1": "a"}, {"three-1": "b"}, CHECKPOINT)
    story = Full(nodes("a", "b"), {"one-1": "a", "train-1": "b"}, arrivals, told).play(400)
    assert (story.on("b"), story.world.ledger.migrations, story.world.ledger.work_lost_s) == ({"three"}, 1, 0.0)
    assert story.world.ledger.finished_tasks == ["default/train"]
    story.assert_whole()


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        pytest.param(
            "migrate",
            MoveRefusedError(Refusal.DEVICE, "it uses a GPU"),
            ["Device: it uses a GPU", "evicted, goes to a"],
            id="refused when it was asked for",
        ),
        pytest.param(
            "checkpoint",
            PermanentError("criu: cannot dump"),
            ["to a", "evicted, goes to a"],
            id="taken back after its attempts",
        ),
    ],
)
def test_a_job_that_cannot_be_moved_is_evicted_to_its_slot(call: str, error: HTASError, told: list[str]) -> None:
    arrivals = [web("one", 2000), job("train", runs_s=300, cpu_m=2000), web("three", 3000, at_s=60, priority=10)]
    found = Foretold({"train-1": "a"}, {"three-1": "b"}, CHECKPOINT)
    story = Full(nodes("a", "b"), {"one-1": "a", "train-1": "b"}, arrivals, found)
    story.world.migration.faults.arrange(call, error)
    story.play(200)
    assert (story.on("a"), story.on("b"), story.all_run()) == ({"one", "train"}, {"three"}, True)
    assert story.told("move") == told
    assert story.world.ledger.evictions == 1
    story.assert_whole()


def test_only_who_is_still_there_and_was_to_have_a_twin_is_to_be_evicted_instead() -> None:
    arrivals = [web("one", 2000), job("train", runs_s=300, cpu_m=2000), web("three", 3000, at_s=60, priority=10)]
    found = Foretold({"train-1": "a"}, {"three-1": "b"}, CHECKPOINT)
    story = Full(nodes("a", "b"), {"one-1": "a", "train-1": "b"}, arrivals, found)
    story.world.migration.faults.arrange("checkpoint", PermanentError("criu: cannot dump"))
    story.play(200)
    current = next(r.snapshot.rearrangement for r in story.seen if r.snapshot.rearrangement is not None)
    [slot] = [each for each in current.slots if each.pod.name == "train-1"]
    taken_back = story.daemon._rearranging._taken_back

    def told(**changed: Any) -> list[str]:
        changed_slot = msgspec.structs.replace(slot, **changed)
        return list(taken_back(msgspec.structs.replace(current, slots=(changed_slot,))))

    assert told() == [slot.pod.uid]
    assert told(left_at=current.started_at + 1.0) == [], "it has left meanwhile"
    assert told(method=MigrationMethod.EVICT) == [], "it was to be evicted anyway"


def test_no_more_moves_are_begun_than_may_be_under_way_at_once() -> None:
    jobs = [job(f"train-{i}", runs_s=600, cpu_m=1000) for i in range(3)]
    arrivals = [*jobs, web("one", 1000), web("big", 4000, at_s=60, priority=10)]
    trains = [f"train-{i}-1" for i in range(3)]
    found = Foretold(dict.fromkeys(trains, "b"), {"big-1": "a"}, CHECKPOINT)
    placed = {**dict.fromkeys(trains, "a"), "one-1": "b"}
    story = Full(nodes("a", "b"), placed, arrivals, found, migration=MigrationSettings(at_once=1))
    story.play(300)
    assert (story.on("a"), story.world.ledger.migrations) == ({"big"}, 3)
    begun = [sum(outcome.action == "move" for outcome in result.outcomes) for result in story.seen]
    assert (max(begun), sum(begun)) == (1, 3)
    story.assert_whole()


def test_a_job_that_is_evicted_has_its_slot_when_it_comes_back() -> None:
    arrivals = [web("one", 2000), job("train", runs_s=300, cpu_m=2000), web("three", 3000, at_s=60, priority=10)]
    told = Foretold({"train-1": "a"}, {"three-1": "b"})
    story = Full(nodes("a", "b"), {"one-1": "a", "train-1": "b"}, arrivals, told).play(150)
    assert (story.on("a"), story.on("b"), story.all_run()) == ({"one", "train"}, {"three"}, True)


def test_one_of_less_importance_is_evicted_for_nowhere_and_waits() -> None:
    arrivals = [web("low", 3000), web("two", 2000), web("high", 3000, at_s=60, priority=10)]
    told = Foretold({"low-1": None}, {"high-1": "a"})
    story = Full(nodes("a", "b"), {"low-1": "a", "two-1": "b"}, arrivals, told).play(150)
    assert (story.on("a"), story.pods("low")) == ({"high"}, {"low-2": None})
    assert story.told("displace") == ["evicted for more important work"]
    story.assert_whole()


def test_the_last_free_room_is_kept_for_the_pod_that_is_moved() -> None:
    """Small work that arrives meanwhile would fit into the slot, and into nothing else."""
    story = figure_1(new_pods=NewPods.PLAN_AROUND)
    late = [web(f"small-{i}", 1000, at_s=0.0) for i in range(3)]
    until(story, lambda: rearrangement_of(story.store.disruptions()) is not None)
    story.world.load(Workload("late", tuple(late)))
    story.play(150)
    assert {"one", "two"} <= story.on("a")
    assert "three" in story.on("b")
    assert len([name for name, node in story.pods("small").items() if node == "b"]) == 1
    story.assert_whole()


def test_with_two_budgets_in_turn_the_evictions_wait_for_each_other() -> None:
    """Of two replicas one may be down: the second leaves when the first is back."""
    arrivals = [web("one", 1000, replicas=2), web("big", 4000, at_s=60, priority=10)]
    placed = {"one-1": "a", "one-2": "b"}
    told = Foretold({"one-1": "c", "one-2": "c"}, {"big-1": "a"})
    there = [*nodes("a", "b"), make_node("c", "2")]
    budgets = [Budget("default", "one", labels_are(app="one"), 1)]
    story = Full(there, placed, arrivals, told, budgets)
    lowest = 2
    for second in range(60, 200):
        story.play(second)
        ready = [pod for pod in story.world.cluster.observe().pods if pod.labels.get("app") == "one" and _is_up(pod)]
        lowest = min(lowest, len(ready))
    assert (lowest, story.on("c"), story.on("a"), story.all_run()) == (1, {"one"}, {"big"}, True)
    assert story.verbs["move", "failed"] >= 1
    story.assert_whole()


def _is_up(pod: Pod) -> bool:
    return pod.phase is Phase.RUNNING and not pod.is_terminating


def test_budgets_that_never_allow_it_cancel_the_rest() -> None:
    arrivals = [web("one", 2000), web("two", 2000), web("three", 3000, at_s=60)]
    told = Foretold({"two-1": "a"}, {"three-1": "b"})
    budgets = [Budget("default", "two", labels_are(app="two"), 1)]
    story = Full(nodes("a", "b"), {"one-1": "a", "two-1": "b"}, arrivals, told, budgets).play(400)
    assert [m.partition(":")[0] for m in story.told("cancel-rearrangement")] == [OutcomeReason.EVICTION_REFUSED]
    assert (story.world.ledger.evictions, story.pods("two")) == (0, {"two-1": "b"})
    (failed,) = story.daemon._retries.left_alone(story.world.clock.now())
    assert (failed.node, failed.pod, failed.of_drain) == ("b", "default/two-1", False)
    assert failed.why == "default/two-1 could not leave b for 120 s"


def stolen(story: Full, node: str, cpu: str) -> None:
    """A pod of nobody's comes to a node, past every scheduler."""
    story.world.cluster.add_pod(
        make_pod("stranger", cpu, node=node, scheduler="other", phase=Phase.RUNNING, owner=None)
    )


def test_a_stranger_in_a_slot_cancels_it_before_anybody_is_evicted() -> None:
    story = figure_1()
    until(story, lambda: bool(story.optimizer and story.optimizer.has_answer))
    stolen(story, "a", "1")
    story.play(150)
    assert [message.partition(":")[0] for message in story.told("rearrange")] == [OutcomeReason.ROOM_TAKEN]
    assert (story.verbs["rearrange", "dropped"], story.world.ledger.evictions) == (1, 0)


def test_a_stranger_in_a_slot_cancels_it_and_nothing_is_lost() -> None:
    arrivals = [web("one", 2000), web("two", 2000), web("six", 1000), web("three", 4000, at_s=60, priority=10)]
    told = Foretold({"two-1": "a", "six-1": "c"}, {"three-1": "b"})
    there = [*nodes("a", "b"), make_node("c", "1")]
    story = Full(there, {"one-1": "a", "two-1": "b", "six-1": "b"}, arrivals, told)
    until(story, lambda: story.world.ledger.evictions == 2)
    stolen(story, "a", "1")
    story.play(300)
    assert [m.partition(":")[0] for m in story.told("cancel-rearrangement")] == [OutcomeReason.ROOM_TAKEN]
    assert story.world.ledger.evictions == 2, "no further eviction"
    assert {name.partition("-")[0] for name in story.pods()} == {"one", "two", "six", "three", "stranger"}
    assert story.pods("three") == {"three-1": "b"}, "what waits is placed as ever, the most important first"
    story.assert_whole()


def until(story: Full, happened: Any) -> None:
    """Play on, a tenth of a second at a time."""
    for _ in range(3000):
        if happened():
            return
        story.play(story.world.clock.now() - story.start + 0.1)
    raise AssertionError("it never happened")


def test_a_target_that_is_closed_cancels_it() -> None:
    story = in_a_circle()
    until(story, lambda: story.world.ledger.evictions == 1)
    story.world.cluster.set_ready("a", False)
    story.play(120)
    assert [m.partition(":")[0] for m in story.told("cancel-rearrangement")] == [OutcomeReason.NODE_CLOSED]
    assert len(story.told("move")) == 1
    assert story.told("preempt") == ["for default/high-1 of priority 10 on b"], "the plan goes on without it"


def test_where_the_beneficiary_is_gone_nobody_is_evicted_any_more() -> None:
    arrivals = [web("one", 1000, replicas=2), web("big", 4000, at_s=60, priority=10)]
    told = Foretold({"one-1": "c", "one-2": "c"}, {"big-1": "a"})
    there = [*nodes("a"), make_node("c", "2")]
    budgets = [Budget("default", "one", labels_are(app="one"), 1)]
    story = Full(there, {"one-1": "a", "one-2": "a"}, arrivals, told, budgets)
    until(story, lambda: story.world.ledger.evictions == 1)
    story.world.load(Workload("over", (), (Rescale(0.0, "default", "big", 0),)))
    story.play(300)
    assert [m.partition(":")[0] for m in story.told("cancel-rearrangement")] == [OutcomeReason.NOTHING_GAINED]
    assert (story.world.ledger.evictions, story.all_run()) == (1, True)


def test_a_promise_that_is_made_meanwhile_is_kept() -> None:
    story = in_a_circle()
    until(story, lambda: story.world.ledger.evictions == 1)
    pod = story.world.cluster.pod("default/y-1")
    assert pod is not None
    kept = msgspec.structs.replace(pod, disruption={"htas.io/do-not-disrupt": "true"})
    story.world.cluster._records["default/y-1"].pod = kept
    story.world.cluster._touch()
    story.play(200)
    assert [m.partition(":")[0] for m in story.told("cancel-rearrangement")] == [OutcomeReason.PROTECTED]
    assert story.pods("y") == {"y-1": "b"}


def test_what_was_found_too_late_is_dropped() -> None:
    story = figure_1(Foretold({"two-1": "a"}, {"three-1": "b"}))
    until(story, lambda: bool(story.optimizer and story.optimizer.has_answer))
    story.world.load(Workload("over", (), (Rescale(0.0, "default", "three", 0),)))
    story.play(150)
    assert story.verbs["rearrange", "dropped"] == 1
    report = story.daemon.searching.report
    assert report is not None
    assert (report.state, story.on("a") | story.on("b")) == (SearchState.DROPPED, {"one", "two"})


class Stale(Foretold):
    """Finds each time what is not valid any more when its answer comes: the room is not there."""

    def begin(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        self.asked.append(snapshot)
        seats = tuple(Seat(pod.key, pod.uid, "b") for pod in snapshot.cluster.pods if pod.node is None)
        found = Rearrangement(snapshot.taken_at, RearrangementStatus.IMPROVED, (), (), seats)
        self.answers.append(SearchResult(found, "", 0.0))


@pytest.mark.parametrize("pause_s", [60.0, 0.0])
def test_where_what_was_found_is_dropped_its_pods_are_preempted_for(pause_s: float) -> None:
    arrivals = [web("one", 2000), web("two", 2000), web("three", 3000, at_s=60, priority=1000)]
    story = Full(nodes("a", "b"), {"one-1": "a", "two-1": "b"}, arrivals, Stale({}, {}), pause_s=pause_s).play(150)
    assert story.verbs["rearrange", "dropped"] == 1
    assert story.pods("three")["three-1"] is not None
    assert story.world.ledger.evictions == 1
    story.assert_whole()


def test_where_a_rearrangement_is_cancelled_its_pods_are_preempted_for() -> None:
    arrivals = [web("one", 2000), web("two", 2000), web("three", 3000, at_s=60, priority=10)]
    budgets = [Budget("default", "two", labels_are(app="two"), 1)]
    story = Full(
        nodes("a", "b"), {"one-1": "a", "two-1": "b"}, arrivals, Foretold({"two-1": "a"}, {"three-1": "b"}), budgets
    )
    until(story, lambda: bool(story.told("move")))
    story.play(600)
    assert [m.partition(":")[0] for m in story.told("cancel-rearrangement")] == [OutcomeReason.EVICTION_REFUSED]
    assert story.pods("three") == {"three-1": "a"}
    story.assert_whole()


def test_what_has_left_its_node_meanwhile_needs_no_shift() -> None:
    """A job on the node to be emptied ends while it is searched for; the pod beside it still has to move."""
    arrivals = [web("one", 2000), web("two", 2000), job("short", runs_s=70, cpu_m=1000)]
    arrivals.append(web("four", 4000, at_s=60, priority=10))
    told = Foretold({"two-1": "a", "short-1": "a"}, {"four-1": "b"}, is_slow=True)
    story = Full(nodes("a", "b"), {"one-1": "a", "two-1": "b", "short-1": "b"}, arrivals, told)
    until(story, lambda: "short-1" not in story.pods())
    told.is_slow = False
    story.play(200)
    assert (story.on("a"), story.on("b"), story.all_run()) == ({"one", "two"}, {"four"}, True)
    assert (len(told.asked), story.world.ledger.evictions, story.verbs["rearrange", "done"]) == (1, 1, 1)
    story.assert_whole()


def test_a_search_that_was_asked_for_is_made() -> None:
    story = Full(nodes("a"), {"one-1": "a"}, [web("one", 2000)], Foretold({}, {}))
    asked = story.daemon.searching.request()
    story.play(60)
    report = story.daemon.searching.report
    assert report is not None
    assert (report.id, asked.state) == (1, SearchState.ASKED)
    assert isinstance(story.optimizer, Foretold)
    assert len(story.optimizer.asked) == 1


def test_the_daemons_own_optimiser_finds_figure_1() -> None:
    """Nobody tells it what to find; one pod of the two moves, and it is proven that no fewer would do."""
    arrivals = [web("one", 2000), web("two", 2000), web("three", 3000, at_s=60)]
    story = Full(nodes("a", "b"), {"one-1": "a", "two-1": "b"}, arrivals, None).play(200)
    report = story.daemon.searching.report
    assert report is not None
    assert (report.status, len(report.moves)) == (RearrangementStatus.PROVEN_OPTIMAL, 1)
    assert (story.world.ledger.evictions, story.all_run()) == (1, True)
    story.assert_whole()


@pytest.mark.parametrize("choice", NewPods)
def test_new_pods_wait_for_the_search_or_are_placed_at_once(choice: NewPods) -> None:
    told = Foretold({"two-1": "a"}, {"three-1": "b"}, is_slow=True)
    story = figure_1(told, new_pods=choice)
    until(story, lambda: told.is_busy)
    story.world.load(Workload("late", (web("small", 500),)))
    story.play(130)
    is_placed = story.pods("small")["small-1"] is not None
    assert is_placed is (choice is NewPods.PLAN_AROUND)
    told.is_slow = False
    story.play(260)
    if choice is NewPods.WAIT:
        assert story.all_run()
    else:
        assert story.verbs["rearrange", "dropped"] == 1, "it has taken room that was needed"
    story.assert_whole()


def test_a_daemon_that_takes_over_goes_on_with_nobody_elses_plan() -> None:
    story = in_a_circle()
    until(story, lambda: story.world.ledger.evictions == 1)
    [outcome] = [each for each in story.daemon.take_over() if each.action == "rearrange"]
    assert (outcome.status.value, outcome.message.partition(":")[0]) == ("dropped", OutcomeReason.OVERTAKEN)
    assert rearrangement_of(story.store.disruptions()) is None
    story.play(85)
    report = story.daemon.searching.report
    assert report is not None
    assert report.state is SearchState.DROPPED
    assert story.daemon.searching.request().id == 2, "and another search may be asked for"


def test_people_are_told_who_makes_room_for_whom() -> None:
    story = figure_1().play(200)
    told = {(news.name, news.reason) for news in story.world.announcer.news}
    assert ("default/three-1", "Nominated") in told
    assert ("default/two-1", "Descheduled") in told
    assert not {reason for name, reason in told if name == "default/one-1"} - {"Scheduled"}


def test_people_are_told_that_no_room_is_made_any_more() -> None:
    story = in_a_circle()
    until(story, lambda: story.world.ledger.evictions == 1)
    stolen(story, "b", "1")
    story.world.cluster.set_ready("b", False)
    story.play(150)
    told = {(news.name, news.reason, news.is_warning) for news in story.world.announcer.news}
    assert ("default/high-1", "RearrangementCancelled", True) in told


def test_of_a_pod_behind_a_gate_a_search_says_nothing() -> None:
    """It was none of those that were placed; once let through, it was preempted for at once, as if found hopeless."""
    story = Full(nodes("a"), {"one-1": "a"}, [web("one", 4000)], None)
    snapshot = story.daemon.observe()
    waiting, gated = make_pod("waits", cpu="1"), make_pod("gated", cpu="1", gates=("held",))
    view = msgspec.structs.replace(snapshot.cluster, pods=(*snapshot.cluster.pods, waiting, gated))
    snapshot = msgspec.structs.replace(snapshot, cluster=view)
    story.daemon.searching.ask(Plan(snapshot.taken_at, optimize=(waiting.key,)), snapshot)
    settled, _ = story.daemon.searching.settle(snapshot)
    assert set(settled.search.left) == {waiting.uid}
