"""A decision on record, and files of them."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import Stage
from tools.corpus.documents import Document, decided, differences, document_of, plain, read

Line = TypeVar("Line", bound=msgspec.Struct)
DECISIONS, POLICIES = "decisions.jsonl.xz", "policies.jsonl.xz"
Planner = Callable[[ClusterSnapshot, Policy, float, frozenset[Stage]], Plan]
Asked = Callable[[ClusterSnapshot, Policy, float, frozenset[Stage]], Plan | Document]
"""A planner, or whoever else is asked about a snapshot (`tools/corpus/answers.py`), and answers in a document."""


class Decision(msgspec.Struct, frozen=True):
    """`source` is what it was recorded of, `policy` the digest of one; `seconds` is how long it took to plan."""

    source: str
    policy: str
    now: float
    stages: tuple[str, ...]
    snapshot: Document
    plan: Document
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.source} at {self.now:.3f}"

    @property
    def digest(self) -> str:
        """Of what was asked: the same question is recorded once."""
        return digest((self.policy, self.now, sorted(self.stages), self.snapshot))


class WrittenPolicy(msgspec.Struct, frozen=True):
    digest: str
    policy: Document


def digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:16]


class Corpus:
    """The decisions of a folder, each policy read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents: Mapping[str, Document] = {
            each.digest: each.policy for each in _lines(folder / POLICIES, WrittenPolicy)
        }
        self._policies: dict[str, Policy] = {}

    def __iter__(self) -> Iterator[Decision]:
        return _lines(self.folder / DECISIONS, Decision)

    def policy(self, decision: Decision) -> Policy:
        if decision.policy not in self._policies:
            self._policies[decision.policy] = read(self.documents[decision.policy], Policy)
        return self._policies[decision.policy]

    def planned(self, decision: Decision, planner: Asked) -> Document:
        """What is decided now."""
        stages = frozenset(map(Stage, decision.stages))
        snapshot = read(decision.snapshot, ClusterSnapshot)
        made = planner(snapshot, self.policy(decision), decision.now, stages)
        document: Document = plain(document_of(made) if isinstance(made, Plan) else made)
        return document

    def differing(self, decision: Decision, planner: Asked) -> list[str]:
        """How what is decided now differs from what is on record; a planner that raises differs, too."""
        try:
            now = self.planned(decision, planner)
        except Exception as error:  # whatever a changed planner raises is a difference
            return [f"raises {type(error).__name__}: {error}"]
        return list(differences(decided(decision.plan), decided(now)))


def _lines(path: Path, kind: type[Line]) -> Iterator[Line]:
    decoder = msgspec.json.Decoder(kind)
    with lzma.open(path) as lines:
        yield from map(decoder.decode, lines)


def write(folder: Path, decisions: Iterable[Decision], policies: Mapping[str, Document]) -> None:
    """Both files of a folder; only the policies that are asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    used = set()
    with lzma.open(folder / DECISIONS, "wb", preset=6) as lines:
        for decision in decisions:
            lines.write(msgspec.json.encode(decision) + b"\n")
            used.add(decision.policy)
    with lzma.open(folder / POLICIES, "wb") as lines:
        for key in sorted(used):
            lines.write(msgspec.json.encode(WrittenPolicy(key, policies[key])) + b"\n")


def merge(parts: Iterable[Path], folder: Path, planner: Planner) -> list[Decision]:
    """What several folders have, in one: each question once. Returns the decisions.

    What comes out otherwise when it is planned again is left out: a test had changed a constant of the planner's.
    """
    decisions: dict[str, Decision] = {}
    policies: dict[str, Document] = {}
    for part in parts:
        corpus = Corpus(part)
        for decision in corpus:
            if decision.digest not in decisions and not corpus.differing(decision, planner):
                decisions[decision.digest] = decision
                policies[decision.policy] = corpus.documents[decision.policy]
    in_order = sorted(decisions.values(), key=lambda each: (each.source, each.now))
    write(folder, in_order, policies)
    return in_order
