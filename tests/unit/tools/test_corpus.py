"""The corpus of decisions: what is kept of what was decided, and how a difference is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.planner import plan
from tests.builders import NOW, make_job, make_node, make_pod, make_policy, make_snapshot
from tests.stories.play import Story, job
from tools.corpus import documents, stories
from tools.corpus.decisions import Corpus, Decision, merge, write
from tools.corpus.documents import LostError, decided, differences, plain, read
from tools.corpus.recording import Recorder

ONE = make_snapshot([make_node("n")], [make_pod("p", "1", "1Gi"), make_job("j")])


def recorded(folder: Path, *snapshots: ClusterSnapshot) -> Recorder:
    """A corpus in a folder, of what is decided about these; and who recorded it."""
    recorder = Recorder()
    recorder.source = "here"
    planner = recorder.watching(plan)
    for snapshot in snapshots:
        planner(snapshot, make_policy(), NOW, ALL_STAGES)
    write(folder, recorder.decisions, recorder.policies)
    return recorder


def binding_nobody(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    return msgspec.structs.replace(plan(snapshot, policy, now, stages), bind=())


def raising(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    raise KeyError("n")


def test_what_is_decided_again_differs_in_nothing(tmp_path: Path) -> None:
    recorded(tmp_path, ONE)
    corpus = Corpus(tmp_path)
    (decision,) = corpus
    assert corpus.differing(decision, plan) == []


@pytest.mark.parametrize(
    ("planner", "told"),
    [
        pytest.param(binding_nobody, 'bind: recorded only: {"node":"n","pod":"default/p"}', id="it binds no more"),
        pytest.param(raising, "raises KeyError: 'n'", id="it raises"),
    ],
)
def test_what_is_decided_otherwise_is_told(tmp_path: Path, planner: Any, told: str) -> None:
    recorded(tmp_path, ONE)
    corpus = Corpus(tmp_path)
    (decision,) = corpus
    assert told in corpus.differing(decision, planner)


def test_of_one_source_few_decisions_of_a_kind_are_kept(tmp_path: Path) -> None:
    snapshots = [msgspec.structs.replace(ONE, generation=turn) for turn in range(10)]
    assert [each.snapshot["generation"] for each in recorded(tmp_path, *snapshots).decisions] == [0, 1, 2]


def test_one_question_is_kept_once_and_none_that_is_answered_otherwise_now(tmp_path: Path) -> None:
    other = msgspec.structs.replace(ONE, generation=1)
    for part, snapshots in (("a", (ONE,)), ("b", (ONE, other))):
        recorded(tmp_path / part, *snapshots)
    parts = [tmp_path / "a", tmp_path / "b"]
    assert len(merge(parts, tmp_path / "all", plan)) == len(list(Corpus(tmp_path / "all"))) == 2
    assert merge(parts, tmp_path / "none", binding_nobody) == []


def test_a_recorded_field_that_nobody_reads_any_more_is_told() -> None:
    document = {**plain(ONE), "weather": "rain"}
    with pytest.raises(LostError, match=r"ClusterSnapshot\.weather: recorded, but not read any more"):
        read(document, ClusterSnapshot)


def test_a_renamed_field_is_read_by_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    document = plain(ONE)
    for pod in document["cluster"]["pods"]:
        pod["title"] = pod.pop("name")
    monkeypatch.setattr(documents, "RENAMED", {"cluster.pods.*.title": "name"})
    assert read(document, ClusterSnapshot) == ONE


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, ["a[1]: recorded 2, now 3"], id="a number of a list"),
        pytest.param({"a": 1}, {"b": 1}, ["a: recorded 1, now nothing", "b: recorded nothing, now 1"], id="a key"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, ["a: now only: 2"], id="one more"),
        pytest.param({"a": [1, 1]}, {"a": [1]}, ["a: recorded 2 items, now 1"], id="one of two equal ones"),
        pytest.param({"a": 1}, {"a": 1}, [], id="nothing"),
    ],
)
def test_differences_are_told_by_their_place(old: Any, new: Any, told: list[str]) -> None:
    assert list(differences(old, new)) == told


@pytest.mark.parametrize(
    ("recorded", "now", "is_same"),
    [
        pytest.param({"message": "it is Ready"}, {"message": "it runs"}, True, id="another sentence"),
        pytest.param({"why": "NotReady: it is"}, {"why": "Expired: it is"}, False, id="another reason before it"),
        pytest.param({"message": "Promised"}, {"message": "Protected"}, True, id="a reason that was renamed"),
        pytest.param({"reason": "Promised"}, {"reason": "PodCame"}, False, id="another reason"),
        pytest.param({"nodes": {"full": 2}}, {"nodes": {"too small": 2}}, True, id="another word of a filter"),
        pytest.param({"nodes": {"full": 2}}, {"nodes": {"full": 3}}, False, id="more nodes refuse"),
    ],
)
def test_records_compare_decisions_and_not_words(recorded: Any, now: Any, is_same: bool) -> None:
    assert (decided(recorded) == decided(now)) is is_same


@pytest.mark.parametrize(
    ("recorded", "now", "is_same"),
    [
        ('1.0 {"verb":"release","message":"old"}', '1.0 {"verb":"delete","message":"new"}', True),
        ('1.0 {"verb":"drain","message":"old"}', '1.0 {"verb":"delete","message":"old"}', False),
        ("  mark_waiting default/p old words", "  mark_waiting default/p new words", True),
        ("  mark_waiting default/p old words", "  mark_waiting default/q old words", False),
    ],
)
def test_stories_compare_calls_and_not_words(recorded: str, now: str, is_same: bool) -> None:
    assert (stories.first_difference([recorded], [now]) == "") is is_same


def test_what_a_daemon_does_is_listened_to_and_then_no_more() -> None:
    with stories.listening() as lines:
        Story(None, job("one")).play(120)
    heard = list(lines)
    assert [line for line in heard if line.startswith("  create ")]
    assert [line for line in heard if '"verb":"launch"' in line]
    Story(None, job("one")).play(120)
    assert lines == heard


def test_a_story_that_goes_another_way_is_told_from_there() -> None:
    told = dict(
        stories.differing({"a": ("1", "2", "3"), "b": ("1",), "c": ("1",)}, {"a": ("1", "2", "4"), "b": ("1",)})
    )
    assert told == {
        "a": "line 3 of 3:\n               1\n               2\n      recorded 3\n      now      4",
        "c": "is not told any more",
    }


def test_a_decision_is_known_by_what_was_asked() -> None:
    first, second = (Decision(source, "p", NOW, ("scheduling",), plain(ONE), {}) for source in "ab")
    assert first.digest == second.digest
    assert first.digest != msgspec.structs.replace(first, stages=("cleaning",)).digest
