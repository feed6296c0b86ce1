"""Moves that keep progress, from the plan to the books: told, learned from, tried again, given up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import urllib3

from htas.cli.migrate import Asker, failed, line_of
from htas.daemon.http.app import Endpoints, HttpServer
from htas.daemon.http.authorization import Gate
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.execution.requested_moves import REMEMBERED
from htas.model.disruptions import drains_of
from htas.model.migrations import MigrationRecord, MigrationSettings, MigrationState, Refusal
from htas.model.moves import MigrationMethod
from htas.model.pods import SAFE_TO_EVICT
from htas.model.policy import Cycles, Policy
from htas.model.reasons import Kept
from htas.model.record import ProfileEvent
from htas.ports import MoveRefusedError, PermanentError, TransientError
from htas.profiler.history import entries
from htas.sandbox.migration import Rates
from htas.web.seat import Seat
from tests.builders import batch_group, make_flavour, make_policy
from tests.stories.play import Story, job
from tests.stories.test_life_of_machines import PLAIN, cleaning, stragglers

BY_CHECKPOINT = make_policy([cleaning(migration=MigrationMethod.CHECKPOINT)], PLAIN)
COPY_S = 0.9 * 2**30 / 150_000_000


def moved(story: Story) -> list[MigrationRecord]:
    return [o.move for result in story.seen for o in result.outcomes if o.move is not None]


def play_until_moved(story: Story, count: int = 1) -> Story:
    for until in range(100, 2500, 2):
        story.play(until)
        if len(moved(story)) >= count:
            return story
    raise AssertionError(f"fewer than {count} moves ended; {story.messages[-5:]}")


def test_the_profiler_writes_a_move_as_one_end_and_one_rescheduling() -> None:
    """Table 3's events (HTAS paper 4.1): by no means is the pod deployed a second time."""
    story = play_until_moved(Story(BY_CHECKPOINT, *stragglers()))
    (move,) = moved(story)
    begun = story.store.profile(since=move.started_at)
    assert [(row.event, row.instance_name) for row in begun] == [
        (ProfileEvent.RESCHEDULING, move.target),
        (ProfileEvent.TERMINATION, move.source),
    ]


def test_a_move_is_told_once_with_its_times_and_stands_in_the_history() -> None:
    story = play_until_moved(Story(BY_CHECKPOINT, *stragglers()))
    story.play(2000)
    (move,) = moved(story)
    (entry,) = entries(story.store.cycles(limit=1000), "moved")
    assert entry.subject == move.pod
    assert entry.why == (
        f"from {move.source} to {move.target} in {COPY_S + 2:.1f} s (copy {COPY_S:.1f} s, end 2.0 s), 921.6 MiB, "
        f"{COPY_S:.1f} s of work repeated"
    )
    assert story.verbs["moved", "done"] == story.verbs["migrate", "done"] == 1
    told = [news for news in story.world.announcer.told() if news.reason == "Migrated"]
    assert [(news.name, news.message) for news in told] == [(move.pod, entry.why)]


def test_what_moves_take_is_learned_and_survives_a_crash() -> None:
    story = play_until_moved(Story(BY_CHECKPOINT, *stragglers()))
    story.play(2000)
    times = story.seen[-1].snapshot.move_times["checkpoint"]
    assert times.moves == 1
    story.crash()
    story.seen.clear()
    story.play(2100)
    assert story.seen[-1].snapshot.move_times == {"checkpoint": times}
    assert not moved(story), "it was told before the crash"


def break_moves(story: Story, count: int) -> None:
    for _ in range(count):
        story.world.migration.faults.arrange("transfer", TransientError("the copy was cut off"))


def test_a_move_that_fails_for_good_opens_its_node_again_which_is_left_alone_for_a_while() -> None:
    story = Story(BY_CHECKPOINT, *stragglers())
    break_moves(story, 3)
    play_until_moved(story)
    (move,) = moved(story)
    assert (move.state, move.attempt, move.reason) == (MigrationState.ROLLED_BACK, 3, "TransferFailed")
    story.play(story.world.clock.now() - story.start + 60)
    assert not drains_of(story.store.disruptions())
    (node,) = [node for node in story.world.cluster.observe().nodes if node.name == move.source]
    assert not node.is_draining
    kept = {keeping.node: keeping for keeping in story.seen[-1].plan.kept}[move.source]
    assert kept.reason is Kept.MIGRATION_FAILED
    assert kept.message.startswith(f"{move.pod} could not be moved: TransferFailed: the copy was cut off; again in ")
    undone = [message for message in story.messages if message.startswith("undo-drain")]
    assert undone == [f"undo-drain {node.name}: {move.pod} could not be moved: TransferFailed: the copy was cut off"]
    told = [news for news in story.world.announcer.told() if news.reason == "MigrationFailed"]
    assert [(news.name, news.is_warning) for news in told] == [(move.pod, True)]
    story.play(4 * 3600).assert_over(4)
    assert story.world.ledger.work_lost_s == 0
    assert [each.state for each in moved(story)] == [MigrationState.ROLLED_BACK, MigrationState.DONE]


def test_a_move_that_is_refused_opens_the_node_again_at_once() -> None:
    story = Story(BY_CHECKPOINT, *stragglers())
    refusal = MoveRefusedError(Refusal.DEVICE, "it uses a GPU")
    story.world.migration.faults.arrange("migrate", refusal)
    for until in range(100, 2500, 2):
        story.play(until)
        if story.verbs["undo-drain", "done"]:
            break
    (undone,) = [message for message in story.messages if message.startswith("undo-drain")]
    assert undone.endswith("could not be moved: Device: it uses a GPU")
    drained = next(r.snapshot.taken_at for r in story.seen for o in r.outcomes if o.action == "drain")
    assert story.world.clock.now() - drained < 60
    assert not story.world.migration.records()
    assert Kept.MIGRATION_FAILED in {keeping.reason for keeping in story.seen[-1].plan.kept}
    story.play(4 * 3600).assert_over(4)


def test_a_daemon_that_starts_anew_leaves_that_node_alone_too() -> None:
    story = Story(BY_CHECKPOINT, *stragglers())
    break_moves(story, 3)
    play_until_moved(story)
    now = story.world.clock.now() - story.start
    story.play(now + 30).crash()
    story.seen.clear()
    story.play(now + 90)
    reasons = {keeping.reason for keeping in story.seen[-1].plan.kept}
    assert Kept.MIGRATION_FAILED in reasons
    assert story.verbs["drain", "done"] == 0


def test_at_most_so_many_moves_are_under_way_at_one_time() -> None:
    one_at_a_time = Policy(**{**_fields(BY_CHECKPOINT), "migration": MigrationSettings(at_once=1)})
    arrivals = [job("short", 0, 200, 1500, 3.0), *(job(f"long-{i}", 0, 4000, 200, 0.3) for i in range(2))]
    arrivals.append(job("other", 100, 4000, 1100, 1.5))
    most = {}
    for policy in (BY_CHECKPOINT, one_at_a_time):
        story = Story(policy, *arrivals)
        seen = 0
        for until in range(200, 1500):
            story.play(until)
            seen = max(seen, len(story.world.migration.moving()))
        most[policy.migration.at_once] = seen
        assert story.world.ledger.migrations == 2
        story.play(4 * 3600).assert_over(4)
    assert most == {10: 2, 1: 1}


@pytest.mark.parametrize("seed", range(6))
def test_whatever_goes_wrong_on_the_way_all_work_ends_once_and_none_is_lost(seed: int) -> None:
    """Steps fail, targets go, and the daemon is replaced by a new one, in a busy hour of moves."""
    random = Random(seed)
    rules = cleaning(migration=MigrationMethod.CHECKPOINT, underutilized_for_s=20, queue_empty_for_s=10)
    arrivals = [
        job(f"j-{i:02d}", 40 * i, random.uniform(200, 1500), random.choice([300, 900, 1500])) for i in range(25)
    ]
    story = Story(make_policy([rules], PLAIN), *arrivals, rates=Rates(20_000_000, 100_000_000, 80_000_000), seed=seed)
    for at_s in range(60, 4000, 30):
        story.play(at_s)
        if random.random() < 0.2:
            step = random.choice(["migrate", "checkpoint", "transfer", "restore"])
            error = random.choice([TransientError("for now"), PermanentError("for good")])
            story.world.migration.faults.arrange(step, error)
        if random.random() < 0.1:
            story.crash()
    story.play(8 * 3600).assert_over(25)
    assert story.world.ledger.work_lost_s == 0
    ended = [move.state for move in story.world.migration.records()]
    assert set(ended) <= {MigrationState.DONE, MigrationState.ROLLED_BACK}
    assert ended.count(MigrationState.DONE) == story.world.ledger.migrations


def _fields(policy: Policy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in policy.__struct_fields__}


# Asked for by an operator.


class Desk:
    """A daemon with its HTTP server, and an operator who waits in virtual time."""

    def __init__(self, story: Story, folder: Path) -> None:
        self.story = story
        token_file = folder / "token"
        token_file.write_text("let-me\n")
        self.desk = MigrateEndpoint(story.daemon.requested_moves)
        self.gate = Gate(token_file)
        self.metrics = Metrics()
        story.daemon.listeners.append(self.metrics.observe)
        desks = Endpoints(Health(Cycles()), self.metrics, self.desk, OptimizeEndpoint(), Seat("live", make_policy))
        self.server = HttpServer(("127.0.0.1", 0), desks, self.gate)
        self.server.start()
        self.url = f"http://127.0.0.1:{self.server.port}"

    def asker(self, token: str = "let-me") -> Asker:
        return Asker(self.url, token, self.wait)

    def wait(self, _: float) -> None:
        self.story.play(self.story.world.clock.now() - self.story.start + 1)

    def states(self, pod: str, node: str, method: str | None = None) -> list[dict[str, Any]]:
        how = MigrationMethod(method) if method is not None else None
        return list(self.asker().move(pod, node, how, watch=True))


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Desk]:
    """Two machines with a long job each."""
    policy = make_policy([cleaning(enabled=False, migration=MigrationMethod.CHECKPOINT)], PLAIN)
    story = Story(policy, job("a", 0, 3000, 1500, 1.0), job("b", 0, 3000, 1500, 1.0), job("c", 0, 3000, 300, 1.0))
    made = Desk(story.play(300), tmp_path)
    yield made
    made.server.stop()


def other_node(story: Story, name: str) -> str:
    pods = {pod.name: pod.node for pod in story.world.cluster.observe().pods}
    return next(node for node in story.nodes if node != pods[name])


def test_an_operator_moves_a_pod_and_watches(counter: Desk) -> None:
    target = other_node(counter.story, "c-1")
    states = counter.states("c-1", target)
    assert (states[0]["state"], states[-1]["state"]) == ("Asked", "Done")
    assert not failed(states[-1])
    pods = {pod.name: pod.node for pod in counter.story.world.cluster.observe().pods}
    assert pods["c-1"] == target
    assert line_of(states[-1]).startswith(f"Done          on {target} after 9.2 s (checkpoint 0.0 s, copy 7.2 s, ")
    assert line_of(states[-1]).endswith("; 7.2 s of work done again")
    text = counter.metrics.render().decode()
    assert 'htas_moves_total{method="checkpoint",reason="",result="done"} 1.0' in text
    assert 'htas_move_duration_seconds_sum{method="checkpoint",step="total"} 9.1' in text
    assert 'htas_move_bytes_total{method="checkpoint"} 1.073741824e+09' in text


def test_an_operator_is_told_that_a_move_was_taken_back(counter: Desk) -> None:
    break_moves(counter.story, 3)
    states = counter.states("default/c-1", other_node(counter.story, "c-1"))
    assert failed(states[-1])
    assert line_of(states[-1]).startswith(
        "RolledBack    TransferFailed: the copy was cut off, at attempt 3; it runs on on"
    )
    again = [line_of(state) for state in states if state["state"] == "Checkpointed"]
    assert len(again) == 3


@pytest.mark.parametrize(
    ("pod", "node", "method", "reason", "detail"),
    [
        pytest.param("a-1", "nowhere", None, "TargetNotReady", "there is no node nowhere", id="no such node"),
        pytest.param("x", "{other}", None, "NotRunning", "there is no pod default/x that runs", id="no such pod"),
        pytest.param("a-1", "{own}", None, "NotRunning", "pod default/a-1 is on {own} already", id="there already"),
        pytest.param("a-1", "{other}", None, "NoRoomAtTarget", "Insufficient cpu", id="no room"),
        pytest.param("c-1", "{other}", "kubelet-checkpoint", "SourceRuntimeCannotCheckpoint", "its runtime does not", id="a method that the nodes lack"),
    ],
)  # fmt: skip
def test_what_cannot_be_moved_is_refused_with_the_reason(
    counter: Desk, pod: str, node: str, method: str | None, reason: str, detail: str
) -> None:
    where = {each.name: each.node or "" for each in counter.story.world.cluster.observe().pods}
    names = {"own": where.get(pod, ""), "other": other_node(counter.story, pod) if pod in where else "x"}
    states = counter.states(pod, node.format(**names), method)
    assert [state["state"] for state in states] == ["Asked", "Refused"]
    assert states[-1]["reason"] == reason
    assert detail.format(**names) in states[-1]["detail"]
    assert line_of(states[-1]).startswith(f"Refused       {reason}: ")
    assert not counter.story.world.migration.records()
    assert counter.story.verbs["migrate", "failed"] == 1


def test_an_operator_who_insists_moves_what_is_wished_to_stay(tmp_path: Path) -> None:
    policy = make_policy([cleaning(enabled=False, migration=MigrationMethod.CHECKPOINT)], PLAIN)
    kept = job("c", 0, 3000, 300, disruption={SAFE_TO_EVICT: "false"})
    made = Desk(Story(policy, job("a", 0, 3000, 1500), job("b", 0, 3000, 1500), kept).play(300), tmp_path)
    target = other_node(made.story, "c-1")
    refused = made.states("c-1", target)[-1]
    assert (refused["reason"], "NotSafeToEvictAnnotation: " in refused["detail"]) == ("Protected", True)
    states = list(made.asker().move("c-1", target, None, watch=True, force=True))
    assert states[-1]["state"] == "Done"
    made.server.stop()


def test_where_pods_are_evicted_the_operator_must_say_how_to_move(tmp_path: Path) -> None:
    policy = make_policy([cleaning(enabled=False)], PLAIN)
    made = Desk(Story(policy, job("a", 0, 3000), job("b", 0, 3000, 1900)).play(300), tmp_path)
    target = other_node(made.story, "a-1")
    refused = made.states("a-1", target)[-1]
    assert (refused["reason"], "moves pods by evict" in refused["detail"]) == ("MethodNotConfigured", True)
    assert made.states("a-1", target, "checkpoint")[-1]["reason"] == "NoRoomAtTarget"
    made.server.stop()


@pytest.mark.parametrize(
    ("token", "body", "status", "words"),
    [
        pytest.param("other", b"{}", 401, "show the token of http.tokenFile", id="another token"),
        pytest.param("", b"{}", 401, "show the token of http.tokenFile", id="no token"),
        pytest.param("let-me", b"no json", 400, "the body is not", id="no JSON"),
        pytest.param("let-me", b'{"pod": "default/a"}', 400, "node", id="no node"),
        pytest.param("let-me", b'{"pod": "a", "node": "n"}', 400, "write namespace/name", id="no namespace"),
        pytest.param("let-me", b'{"pod": "d/a", "node": "n", "urgent": true}', 400, "urgent", id="an unknown key"),
        pytest.param("let-me", b'{"pod": "d/a", "node": "n", "method": "evict"}', 400, "no progress", id="eviction"),
    ],
)
def test_who_may_ask_and_for_what(counter: Desk, token: str, body: bytes, status: int, words: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = urllib3.request("POST", f"{counter.url}/api/migrate", headers=headers, body=body, timeout=10.0)
    assert (answer.status, words in answer.data.decode()) == (status, True)
    assert not counter.story.daemon.requested_moves.are_waiting


def test_a_daemon_that_does_not_lead_sends_people_away(counter: Desk) -> None:
    counter.desk.requests = None
    with pytest.raises(PermanentError, match="this daemon does not lead"):
        counter.asker().ask("a-1", "x", None)


def test_without_a_token_nothing_can_be_asked_for(counter: Desk) -> None:
    counter.gate.token_file = None
    with pytest.raises(PermanentError, match=r"none is configured: set http\.tokenFile"):
        counter.asker().ask("a-1", "x", None)


def test_no_request_that_waits_is_dropped_for_a_newer_one(counter: Desk) -> None:
    asker = counter.asker()
    first, *_ = [asker.ask("c-1", "nowhere", None) for _ in range(REMEMBERED)]
    with pytest.raises(PermanentError, match="100 requested moves are pending; try again later"):
        asker.ask("c-1", "nowhere", None)
    assert [state["state"] for state in asker.watch(first["id"])][-1] == "Refused", "a cycle has seen to it"
    newest = asker.ask("c-1", other_node(counter.story, "c-1"), None)
    with pytest.raises(PermanentError, match="no such request"):
        next(asker.watch(first["id"]))
    assert [state["state"] for state in asker.watch(newest["id"])][-1] == "Done"


def test_a_request_nobody_remembers_is_not_found(counter: Desk) -> None:
    with pytest.raises(PermanentError, match="no such request"):
        next(counter.asker().watch("0000"))


def test_who_watches_is_told_when_the_daemon_is_gone(counter: Desk) -> None:
    waited: list[float] = []
    asker = Asker(counter.url, "let-me", waited.append)
    asked = asker.ask("c-1", other_node(counter.story, "c-1"), None)
    counter.server.stop()
    with pytest.raises(TransientError, match="no daemon answers"):
        list(asker.watch(asked["id"]))
    assert sum(waited) == pytest.approx(10.0, abs=1.0)


def test_room_kept_for_a_move_is_free_once_its_pod_has_ended() -> None:
    """A job of 8 GiB ends while it is copied (54 s): who came then was bound there, failed, and was bound again, 23 times."""
    work = [
        job("other", 0, 120, 1900, 1.0),
        job("stays", 0, 3000, 2000, 1.0, priority=1),
        job("goes", 30, 230, 2000, 8.0),
        job("next", 315, 60, 1500, 1.0),
    ]
    story = Story(make_policy([batch_group()], [make_flavour("m", "4", "16Gi", "0.19")]), *work).play(280)
    seen = story.world.cluster.observe()
    goes = next(pod for pod in seen.pods if pod.name.startswith("goes"))
    [target] = [node.name for node in seen.nodes if node.name != goes.node]
    story.world.migration.start(goes, target)
    ledger = story.play(400).world.ledger
    assert (ledger.overcommitted, ledger.restarts) == (0, 0)
