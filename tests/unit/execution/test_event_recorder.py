"""What is told of which object, in whose words, and how often."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from htas.execution.event_recorder import ASKED_SOON_S, EventRecorder
from htas.model.disruptions import Drain
from htas.model.news import News
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.plan import Plan, UnplacedPod
from htas.model.pods import Pod
from htas.model.proposals import Launch
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot, ClusterView
from tests.builders import NOW, make_node, make_pod, make_policy

POLICY = make_policy()
OURS, THEIRS = make_pod("ours"), make_pod("theirs", scheduler="other", is_unschedulable=True)


class Listening:
    """AnnouncerPort that keeps what it is told."""

    def __init__(self) -> None:
        self.news: list[News] = []
        self.marks: list[tuple[str, str]] = []

    def tell(self, news: Iterable[News]) -> None:
        self.news += news

    def mark_waiting(self, pod: Pod, message: str) -> None:
        self.marks.append((pod.name, message))

    def publish(self, status: str) -> None:
        pass

    def reasons(self, name: str) -> list[str]:
        return [news.reason for news in self.news if news.name.rpartition("/")[2] == name]


@pytest.fixture
def listening() -> Listening:
    return Listening()


@pytest.fixture
def announcing(listening: Listening) -> EventRecorder:
    return EventRecorder(listening, POLICY)


def snapshot(at: float = NOW) -> ClusterSnapshot:
    return ClusterSnapshot(at, ClusterView((make_node("n"),), (OURS, THEIRS)))


def unplaced(pod: Pod, reason: Unplaced = Unplaced.NO_FLAVOUR_FITS, message: str = "too big") -> Plan:
    return Plan(NOW, unplaced=(UnplacedPod(pod.key, reason, message),))


def done(
    action: Action, subject: str, message: str = "", status: OutcomeStatus = OutcomeStatus.DONE, target: str = ""
) -> list[Outcome]:
    return [Outcome(action, subject, status, message, target=target)]


def test_a_waiting_pod_of_ours_is_told_and_marked_in_the_peers_words(
    announcing: EventRecorder, listening: Listening
) -> None:
    announcing.announce(snapshot(), unplaced(OURS), [])
    assert listening.reasons("ours") == ["FailedScheduling", "NotTriggerScaleUp"]
    assert listening.marks == [("ours", "too big")]


def test_another_schedulers_pod_is_not_ours_to_mark(announcing: EventRecorder, listening: Listening) -> None:
    announcing.announce(snapshot(), unplaced(THEIRS), [])
    assert (listening.reasons("theirs"), listening.marks) == (["NotTriggerScaleUp"], [])


@pytest.mark.parametrize("reason", [Unplaced.SCHEDULING_GATED, Unplaced.NOMINATED])
def test_of_some_pods_nothing_is_said_yet(reason: Unplaced, announcing: EventRecorder, listening: Listening) -> None:
    announcing.announce(snapshot(), unplaced(OURS, reason), [])
    assert (listening.news, listening.marks) == ([], [])


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(Outcome(Action.NOMINATE, OURS.key, OutcomeStatus.DONE), id="nominated to nothing"),
        pytest.param(Outcome(Action.NOMINATE, "gone", OutcomeStatus.DONE, target="n"), id="a pod that is gone"),
        pytest.param(Outcome(Action.MOVE, "gone", OutcomeStatus.DONE), id="a pod that was moved, and is gone"),
        pytest.param(Outcome(Action.PREEMPT, "gone", OutcomeStatus.DONE), id="a victim that is gone"),
    ],
)
def test_of_what_is_not_there_nothing_is_said(
    outcome: Outcome, announcing: EventRecorder, listening: Listening
) -> None:
    announcing.announce(snapshot(), Plan(NOW), [outcome])
    assert listening.news == []


def test_the_same_is_said_once_in_five_minutes(announcing: EventRecorder, listening: Listening) -> None:
    for at in (0.0, 10.0, 299.0):
        announcing.announce(snapshot(NOW + at), unplaced(OURS), [])
    assert len(listening.reasons("ours")) == 2
    announcing.announce(snapshot(NOW + 300.0), unplaced(OURS), [])
    assert len(listening.reasons("ours")) == 4
    assert listening.marks == [("ours", "too big")], "a mark stays until the reason changes"


def test_a_cycle_that_did_not_ask_for_machines_does_not_change_the_mark(
    announcing: EventRecorder, listening: Listening
) -> None:
    announcing.announce(snapshot(), unplaced(OURS), [])
    announcing.announce(snapshot(), unplaced(OURS, Unplaced.AUTOSCALING_NOT_DUE, "waits"), [])
    announcing.announce(snapshot(), unplaced(OURS), [])
    assert listening.marks == [("ours", "too big")]
    announcing.announce(snapshot(), unplaced(OURS, Unplaced.LIMIT_REACHED, "limit"), [])
    assert listening.marks[1:] == [("ours", "limit")]


def test_a_purchase_is_told_to_the_pods_it_is_for(announcing: EventRecorder, listening: Listening) -> None:
    launch = Launch("c1", "any", "medium", None, 1, (OURS.key, THEIRS.key))
    announcing.announce(snapshot(), Plan(NOW, launch=(launch,)), done(Action.LAUNCH, "c1"))
    assert listening.reasons("ours") == listening.reasons("theirs") == ["TriggeredScaleUp"]


def test_an_answer_that_comes_cycles_later_still_finds_its_pods(
    announcing: EventRecorder, listening: Listening
) -> None:
    launch = Launch("c1", "any", "medium", None, 1, (OURS.key,))
    announcing.announce(snapshot(), Plan(NOW, launch=(launch,)), [])
    announcing.announce(snapshot(), Plan(NOW), [])
    announcing.announce(snapshot(), Plan(NOW), done(Action.LAUNCH, "c1", "quota", OutcomeStatus.FAILED))
    assert listening.reasons("ours") == ["TriggeredScaleUp", "FailedToScaleUp"]


def test_a_purchase_that_failed_is_told_too(announcing: EventRecorder, listening: Listening) -> None:
    launch = Launch("c1", "any", "medium", None, 1, (OURS.key,))
    announcing.announce(
        snapshot(), Plan(NOW, launch=(launch,)), done(Action.LAUNCH, "c1", "quota", OutcomeStatus.FAILED)
    )
    assert "FailedToScaleUp" in listening.reasons("ours")


@pytest.mark.parametrize(
    ("outcome", "name", "reason"),
    [
        pytest.param(done(Action.BIND, OURS.key, "n", target="n"), "ours", "Scheduled", id="bound"),
        pytest.param(
            done(Action.BIND, OURS.key, "gone", OutcomeStatus.FAILED), "ours", "FailedScheduling", id="not bound"
        ),
        pytest.param(done(Action.EVICT, OURS.key), "ours", "ScaleDown", id="evicted"),
        pytest.param(done(Action.MIGRATE, OURS.key, "to m, as asked"), "ours", "Migrating", id="moved by hand"),
        pytest.param(
            done(Action.MIGRATE, OURS.key, "no room", OutcomeStatus.FAILED), "ours", "MigrationFailed", id="not moved"
        ),
        pytest.param(done(Action.PREEMPT, OURS.key, "for x on n"), "ours", "Preempted", id="preempted"),
        pytest.param(done(Action.NOMINATE, OURS.key, "n", target="n"), "ours", "Nominated", id="nominated"),
        pytest.param(done(Action.DRAIN, "n", "empty"), "n", "ScaleDown", id="a node is emptied"),
        pytest.param(done(Action.UNDO_DRAIN, "n", "why"), "n", "ScaleDownFailed", id="a node is given back"),
    ],
)
def test_what_was_done_is_told(
    outcome: list[Outcome], name: str, reason: str, announcing: EventRecorder, listening: Listening
) -> None:
    announcing.announce(snapshot(), Plan(NOW), outcome)
    assert listening.reasons(name) == [reason]


def test_a_pod_whose_node_is_given_back_is_told_so_however_it_leaves(
    announcing: EventRecorder, listening: Listening
) -> None:
    here, elsewhere = make_pod("here", node="n"), make_pod("elsewhere", node="m")
    view = ClusterView((make_node("n"), make_node("m")), (here, elsewhere))
    taken = ClusterSnapshot(NOW, view, drains=(Drain("n", "c1", "Underutilized", NOW),))
    announcing.announce(
        taken, Plan(NOW), [*done(Action.MIGRATE, here.key, "to m"), *done(Action.MIGRATE, elsewhere.key, "to n")]
    )
    assert [(news.reason, news.message) for news in listening.news] == [
        ("ScaleDown", "leaves its node, which HTAS drains and deletes: migrate"),
        ("Migrating", "leaves its node to n"),
    ]


def test_warnings_come_first_in_case_some_are_dropped(announcing: EventRecorder, listening: Listening) -> None:
    plan = unplaced(OURS)
    announcing.announce(snapshot(), plan, done(Action.DRAIN, "n", "empty"))
    assert listening.news[0].is_warning


@pytest.mark.parametrize(
    ("age_s", "marks"),
    [
        pytest.param(1.0, [], id="it is about to be asked"),
        pytest.param(ASKED_SOON_S - 1, [], id="still"),
        pytest.param(ASKED_SOON_S, [("ours", "too big")], id="it should have been"),
        pytest.param(3600.0, [("ours", "too big")], id="it waits for long"),
    ],
)
def test_a_pod_that_nothing_was_asked_about_is_marked_once_it_has_waited(
    age_s: float, marks: list[tuple[str, str]], announcing: EventRecorder, listening: Listening
) -> None:
    pod = msgspec.structs.replace(OURS, created_at=NOW - age_s)
    there = ClusterSnapshot(NOW, ClusterView((make_node("n"),), (pod,)))
    announcing.announce(there, unplaced(pod, Unplaced.AUTOSCALING_NOT_DUE), [])
    assert listening.marks == marks


def test_a_mark_is_written_anew_only_where_it_says_something_else(
    announcing: EventRecorder, listening: Listening
) -> None:
    for message in ("too big", "too big", "too small", "too big"):
        announcing.announce(snapshot(), unplaced(OURS, message=message), [])
    assert [message for _, message in listening.marks] == ["too big", "too small", "too big"]


def test_a_pod_that_waits_again_is_marked_again(announcing: EventRecorder, listening: Listening) -> None:
    for made in (unplaced(OURS), Plan(NOW), unplaced(OURS)):
        announcing.announce(snapshot(), made, [])
    assert [message for _, message in listening.marks] == ["too big", "too big"]
