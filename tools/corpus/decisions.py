"""Questions on record with what was decided on each, and files of them.

A folder has three: `questions.jsonl`, `policies.jsonl` (each once, by its digest) and `decisions.jsonl`, in which each
line is one decision and names its question.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from tools.corpus.decided import decisions_of
from tools.corpus.documents import Document, brief, differences, read, text_of

Line = TypeVar("Line", bound=msgspec.Struct)
QUESTIONS, POLICIES, DECISIONS = "questions.jsonl", "policies.jsonl", "decisions.jsonl"
IN = "in"
"""Key of a decision's question."""
Planner = Callable[[ClusterSnapshot, Policy, float, frozenset[Stage]], Plan]
Asked = Callable[[ClusterSnapshot, Policy, float, frozenset[Stage]], list[Document]]
"""Who is asked about a snapshot, and answers with decisions."""


def planned_by(planner: Planner) -> Asked:
    """Asks a planner."""

    def asked(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> list[Document]:
        return decisions_of(planner(snapshot, policy, now, stages))

    return asked


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was asked: `source` is where, `policy` the digest of one. `stages` None: all.

    `id` is a digest of it as it was when it was recorded. `seconds` is how long the answer took: of large corpora.
    """

    id: str
    source: str
    now: float
    policy: str
    snapshot: Document
    stages: tuple[str, ...] | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, source: str, snapshot: ClusterSnapshot, policy: str, now: float, stages: frozenset[Stage]) -> Question:
        """A question that is asked now."""
        names = None if stages == ALL_STAGES else tuple(sorted(stage.value for stage in stages))
        document = brief(snapshot)
        return cls(digest((policy, now, names, document)), source, now, policy, document, names)

    @property
    def name(self) -> str:
        return f"{self.id}, {self.source} at {self.now:.3f}"


class WrittenPolicy(msgspec.Struct, frozen=True):
    digest: str
    policy: Document


Answers = Mapping[str, Sequence[str]]
"""By question the lines of what is decided on it."""


def digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:10]


class Corpus:
    """The questions of a folder with their answers, each policy read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents: Mapping[str, Document] = {
            each.digest: each.policy for each in _lines(folder / POLICIES, WrittenPolicy)
        }
        self.answers = _answers(folder / DECISIONS)
        self._policies: dict[str, Policy] = {}

    def __iter__(self) -> Iterator[Question]:
        return _lines(self.folder / QUESTIONS, Question)

    def policy(self, question: Question) -> Policy:
        if question.policy not in self._policies:
            self._policies[question.policy] = read(self.documents[question.policy], Policy)
        return self._policies[question.policy]

    def decided(self, question: Question, asked: Asked) -> list[str]:
        """What is decided now."""
        snapshot = read(question.snapshot, ClusterSnapshot)
        stages = ALL_STAGES if question.stages is None else frozenset(map(Stage, question.stages))
        return list(map(text_of, asked(snapshot, self.policy(question), question.now, stages)))

    def differing(self, question: Question, asked: Asked) -> list[str]:
        """How what is decided now differs from what is on record; raising an error differs, too."""
        try:
            now = self.decided(question, asked)
        except Exception as error:  # whatever a changed planner raises is a difference
            return [f"raises {type(error).__name__}: {error}"]
        return differences(self.answers[question.id], now)


def _lines(path: Path, kind: type[Line]) -> Iterator[Line]:
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as lines:
        yield from map(decoder.decode, lines)


def _answers(path: Path) -> dict[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    with path.open("rb") as lines:
        for line in map(msgspec.json.decode, lines):
            found[line.pop(IN)].append(text_of(line))
    return found


def write(folder: Path, questions: Iterable[Question], answers: Answers, policies: Mapping[str, Document]) -> int:
    """All files of a folder, with only the policies that are asked for; how many bytes they have."""
    folder.mkdir(parents=True, exist_ok=True)
    questions = list(questions)
    used = sorted({question.policy for question in questions})
    _write(folder / QUESTIONS, map(msgspec.json.encode, questions))
    _write(folder / POLICIES, (msgspec.json.encode(WrittenPolicy(key, policies[key])) for key in used))
    _write(
        folder / DECISIONS,
        (
            msgspec.json.encode({IN: question.id, **msgspec.json.decode(line)})
            for question in questions
            for line in answers[question.id]
        ),
    )
    return sum((folder / name).stat().st_size for name in (QUESTIONS, POLICIES, DECISIONS))


def _write(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(line + b"\n" for line in lines)


def merge(parts: Iterable[Path], folder: Path, asked: Asked) -> list[Question]:
    """What several folders have, in one: each question once. Returns the questions.

    What comes out otherwise when it is asked again is left out: a test had changed a constant of the planner's.
    """
    questions: dict[str, Question] = {}
    answers: dict[str, Sequence[str]] = {}
    policies: dict[str, Document] = {}
    for part in parts:
        corpus = Corpus(part)
        for question in corpus:
            if question.id not in questions and not corpus.differing(question, asked):
                questions[question.id] = question
                answers[question.id] = corpus.answers[question.id]
                policies[question.policy] = corpus.documents[question.policy]
    in_order = sorted(questions.values(), key=lambda each: (each.source, each.now))
    write(folder, in_order, answers, policies)
    return in_order
