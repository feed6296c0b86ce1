"""The corpus of decisions: what counts as one, what is kept, and how a difference is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from htas.model.moves import MigrationMethod, Move, MoveReason
from htas.model.plan import Bind, Carrying, Cost, KeptNode, Plan, UnplacedPod
from htas.model.policy import Policy
from htas.model.proposals import Launch, Proposal, Release
from htas.model.reasons import Kept, OutcomeReason, ProposalReason, Unplaced
from htas.model.reservations import Reservation
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.planner import plan
from tests.builders import NOW, make_job, make_node, make_pod, make_policy, make_snapshot
from tests.stories.play import Story, job
from tools.corpus import stories
from tools.corpus.decided import decisions_of
from tools.corpus.decisions import Corpus, Question, merge, planned_by, write
from tools.corpus.documents import LostError, brief, differences, read
from tools.corpus.recording import Recorder, without_folders

ONE = make_snapshot([make_node("n")], [make_pod("p", "1", "1Gi"), make_job("j")])
ASKED = planned_by(plan)


def recorded(folder: Path, *snapshots: ClusterSnapshot) -> Recorder:
    """A corpus in a folder, of what is decided about these; and who recorded it."""
    recorder = Recorder()
    recorder.source = "here"
    planner = recorder.watching(plan)
    for snapshot in snapshots:
        planner(snapshot, make_policy(), NOW, ALL_STAGES)
    write(folder, recorder.questions, recorder.answers, recorder.policies)
    return recorder


def binding_nobody(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    return msgspec.structs.replace(plan(snapshot, policy, now, stages), bind=())


def raising(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    raise KeyError("n")


def test_what_is_decided_again_differs_in_nothing(tmp_path: Path) -> None:
    recorded(tmp_path, ONE)
    corpus = Corpus(tmp_path)
    (question,) = corpus
    assert corpus.differing(question, ASKED) == []


@pytest.mark.parametrize(
    ("planner", "told"),
    [
        pytest.param(binding_nobody, '- {"bind":"default/p","node":"n"}', id="it binds no more"),
        pytest.param(raising, "raises KeyError: 'n'", id="it raises"),
    ],
)
def test_what_is_decided_otherwise_is_told(tmp_path: Path, planner: Any, told: str) -> None:
    recorded(tmp_path, ONE)
    corpus = Corpus(tmp_path)
    (question,) = corpus
    assert told in corpus.differing(question, planned_by(planner))


def test_of_one_source_few_decisions_of_a_kind_are_kept(tmp_path: Path) -> None:
    snapshots = [msgspec.structs.replace(ONE, generation=turn) for turn in range(1, 10)]
    assert [each.snapshot["generation"] for each in recorded(tmp_path, *snapshots).questions] == [1, 2, 3]


def test_one_question_is_kept_once_and_none_that_is_answered_otherwise_now(tmp_path: Path) -> None:
    other = msgspec.structs.replace(ONE, generation=1)
    for part, snapshots in (("a", (ONE,)), ("b", (ONE, other))):
        recorded(tmp_path / part, *snapshots)
    parts = [tmp_path / "a", tmp_path / "b"]
    assert len(merge(parts, tmp_path / "all", ASKED)) == len(list(Corpus(tmp_path / "all"))) == 2
    assert merge(parts, tmp_path / "none", planned_by(binding_nobody)) == []


def test_default_values_are_left_out_and_read_again() -> None:
    document = brief(ONE)
    assert "expects_more" not in document
    assert "taints" not in document["cluster"]["nodes"][0]
    assert read(document, ClusterSnapshot) == ONE


def test_a_recorded_field_that_nobody_reads_any_more_is_told() -> None:
    document = brief(ONE)
    document["cluster"]["nodes"][0]["weather"] = "rain"
    with pytest.raises(
        LostError, match=r"ClusterSnapshot\.cluster\.nodes\[0\]\.weather: recorded, but not read any more"
    ):
        read(document, ClusterSnapshot)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(["a", "b"], ["a", "c"], ["- b", "+ c"], id="another line"),
        pytest.param(["a", "a"], ["a"], ["- a"], id="one of two equal ones"),
        pytest.param(["a", "b"], ["b", "a"], ["in another order from line 1: b"], id="another order"),
        pytest.param(["a"], ["a"], [], id="nothing"),
    ],
)
def test_differences_are_told_line_by_line(old: list[str], new: list[str], told: list[str]) -> None:
    assert differences(old, new) == told


MOVE = Move("default/p", "uid", "a", "b", MigrationMethod.EVICT, MoveReason.NODE_DRAINED)
LAUNCH = Launch("c", "any", "small", None, 100_000_000, ("default/p",), "for headroom")
RICH = Plan(
    NOW,
    Cost("USD", 1, 2, 1),
    bind=(Bind("default/p", "n"),),
    launch=(LAUNCH,),
    proposals=(Proposal(ProposalReason.EMPTY, (MOVE,), (), (Release("n", "c"),), (), 5_000_000, "it is empty"),),
    carry=Carrying((), OutcomeReason.TIMED_OUT, "it took too long"),
    unplaced=(UnplacedPod("default/q", Unplaced.BACKING_OFF, "all back off", {"too full": 2, "tainted": 1}),),
    kept=(KeptNode("n", Kept.DO_NOT_DISRUPT, "it is annotated"),),
    memory=Memory(empty_since={"n": NOW - 60}, reservations={"default/q": Reservation("c", NOW)}),
)


def reworded(value: Any) -> Any:
    """The same with other sentences."""
    if isinstance(value, tuple):
        return tuple(map(reworded, value))
    if not isinstance(value, msgspec.Struct) or isinstance(value, Memory):
        return value
    fields = {field.name: getattr(value, field.name) for field in msgspec.structs.fields(value)}
    return type(value)(**{name: _reworded(name, each) for name, each in fields.items()})


def _reworded(name: str, value: Any) -> Any:
    if name == "nodes":
        return {f"other words {index}": count for index, count in enumerate(value.values())}
    return "other words" if name in ("message", "why") else reworded(value)


def test_sentences_are_no_decisions() -> None:
    assert reworded(RICH) != RICH
    assert decisions_of(reworded(RICH)) == decisions_of(RICH)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"bind": (Bind("default/p", "m"),)}, id="another node"),
        pytest.param({"bind": ()}, id="no bind"),
        pytest.param({"launch": (msgspec.structs.replace(LAUNCH, flavour="big"),)}, id="another flavour"),
        pytest.param({"launch": (msgspec.structs.replace(LAUNCH, pods=()),)}, id="for other pods"),
        pytest.param({"cost": Cost("USD", 1_000, 2, 1)}, id="another amount, by a millionth"),
        pytest.param({"proposals": ()}, id="nothing is drained"),
        pytest.param({"carry": Carrying()}, id="a rearrangement goes on"),
        pytest.param(
            {"unplaced": (UnplacedPod("default/q", Unplaced.CAPACITY_FREES_SOON, "all back off"),)}, id="another reason"
        ),
        pytest.param({"kept": ()}, id="no node is kept"),
        pytest.param(
            {"memory": Memory(empty_since={"n": NOW - 61}, reservations={"default/q": Reservation("c", NOW)})},
            id="another time",
        ),
        pytest.param(
            {"memory": Memory(empty_since={"n": NOW - 60}, reservations={"default/q": Reservation("d", NOW)})},
            id="another claim",
        ),
    ],
)
def test_all_else_that_a_plan_says_is_a_decision(change: dict[str, Any]) -> None:
    assert decisions_of(msgspec.structs.replace(RICH, **change)) != decisions_of(RICH)


def test_each_decision_is_a_line_that_begins_with_its_kind() -> None:
    kinds = [next(iter(line)) for line in decisions_of(RICH)]
    assert kinds == [
        *("cost", "bind", "launch", "propose", "move", "release", "cancel", "unplaced", "kept", "reserve"),
        "emptySince",
    ]


def test_what_a_daemon_does_is_listened_to_and_then_no_more() -> None:
    with stories.listening() as lines:
        Story(None, job("one")).play(120)
    heard = [msgspec.json.decode(line) for line in lines]
    assert next(line for line in heard if "create" in line)["flavour"]
    assert next(line for line in heard if "bind" in line)["at"] > 0
    assert not any("message" in line for line in heard)
    before = list(lines)
    Story(None, job("one")).play(120)
    assert lines == before


def test_a_long_story_is_kept_by_its_beginning_and_a_digest(tmp_path: Path) -> None:
    lines = [f'{{"at":{index},"bind":"default/p-{index}","node":"n"}}' for index in range(stories.HEAD + 5)]
    told = stories.shortened(lines)
    assert len(told) == stories.HEAD + 1
    assert msgspec.json.decode(told[-1])["then"] == {"bind": 5}
    other = [*lines[:-1], lines[-1].replace('"n"', '"m"')]
    assert stories.first_difference(told, stories.shortened(other))
    stories.write(tmp_path / stories.STORIES, {"b": told, "a": ()})
    assert stories.read(tmp_path / stories.STORIES) == {"a": (), "b": told}


def test_a_story_that_goes_another_way_is_told_from_there() -> None:
    told = dict(
        stories.differing({"a": ("1", "2", "3"), "b": ("1",), "c": ("1",)}, {"a": ("1", "2", "4"), "b": ("1",)})
    )
    assert told == {
        "a": "line 3 of 3:\n               1\n               2\n      recorded 3\n      now      4",
        "c": "is not told any more",
    }


def test_a_question_is_known_by_what_was_asked() -> None:
    first, second = (Question.of(source, ONE, "p", NOW, ALL_STAGES) for source in "ab")
    assert first.id == second.id
    assert first.id != Question.of("a", ONE, "p", NOW, frozenset({Stage.CLEANING})).id


def test_no_folder_of_the_machine_that_records_is_written_down() -> None:
    asked = make_snapshot(store_problem="/tmp/somewhere/else/htas.db: disk is full; see docs/store.md or a/b")
    assert without_folders(asked).store_problem == "htas.db: disk is full; see docs/store.md or a/b"
