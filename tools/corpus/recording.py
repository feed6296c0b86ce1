"""What is kept of the decisions that a planner makes: few of each kind from each source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from time import thread_time

import msgspec

from htas.model.plan import KeptNode, NodeRemoval, Plan, UnplacedPod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from tools.corpus.decided import decisions_of
from tools.corpus.decisions import Planner, Question, digest
from tools.corpus.documents import Document, LostError, brief, read, text_of

MOST_OF_A_KIND = 3
MOST_OF_A_SOURCE = 60
MOST_BYTES = 1_000_000
MOST_SECONDS = 3.0


_FOLDER = re.compile(r"(?<!\S)/\S*/(?=[^/\s])")


def without_folders(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """A snapshot whose store's problem names a file alone: a folder is that of the machine that recorded it."""
    return msgspec.structs.replace(snapshot, store_problem=_FOLDER.sub("", snapshot.store_problem))


class Recorder:
    """Wraps planners. `source` names what is played now; while it `is_off`, nothing is recorded."""

    def __init__(self) -> None:
        self.source = ""
        self.is_off = False
        self.questions: list[Question] = []
        self.answers: dict[str, list[str]] = {}
        self.policies: dict[str, Document] = {}
        self.passed_over: Counter[str] = Counter()
        self._of_a_kind: Counter[tuple[object, ...]] = Counter()
        self._of_source: Counter[str] = Counter()

    def watching(self, planner: Planner) -> Planner:
        """The same planner, looked at."""

        def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage] = ALL_STAGES) -> Plan:
            began = thread_time()
            made = planner(snapshot, policy, now, stages)
            if not self.is_off:
                self._see(snapshot, policy, now, stages, made, thread_time() - began)
            return made

        return plan

    def _see(
        self,
        snapshot: ClusterSnapshot,
        policy: Policy,
        now: float,
        stages: frozenset[Stage],
        made: Plan,
        seconds: float,
    ) -> None:
        kind = self.source, *_kind(snapshot, made, stages)
        if self._of_a_kind[kind] >= MOST_OF_A_KIND or self._of_source[self.source] >= MOST_OF_A_SOURCE:
            return
        if seconds > MOST_SECONDS:
            self.passed_over["took long"] += 1
            return
        snapshot = without_folders(snapshot)
        policy_document = brief(policy)
        key = digest(policy_document)
        question = Question.of(self.source, snapshot, key, now, stages)
        written = msgspec.json.encode(question.snapshot)
        if len(written) > MOST_BYTES:
            self.passed_over["large"] += 1
            return
        document = msgspec.json.decode(written)
        try:
            is_whole = read(document, ClusterSnapshot) == snapshot and read(policy_document, Policy) == policy
        except (LostError, msgspec.ValidationError):
            is_whole = False
        if not is_whole:  # such as an infinite number, which JSON does not have
            self.passed_over["not the same once written"] += 1
            return
        self.policies[key] = policy_document
        self._of_a_kind[kind] += 1
        self._of_source[self.source] += 1
        self.answers[question.id] = list(map(text_of, decisions_of(made)))
        self.questions.append(msgspec.structs.replace(question, snapshot=document, seconds=round(seconds, 4)))


def _reasons(items: Iterable[UnplacedPod | KeptNode | NodeRemoval]) -> frozenset[str]:
    return frozenset(item.reason.value for item in items)


def _kind(snapshot: ClusterSnapshot, made: Plan, stages: frozenset[Stage]) -> tuple[object, ...]:
    """Coarsely what was decided and in what state: one of two pods, three or more are of one kind."""
    parts = (made.bind, made.nominate, made.launches, made.preempt, made.optimize, made.migrate, made.remove)
    carried = made.carry.steps, made.suggest
    unplaced, kept, removed = _reasons(made.unplaced), _reasons(made.kept), _reasons(made.remove)
    state = snapshot.claims, snapshot.drains, snapshot.moves, snapshot.backoffs, snapshot.failed_moves
    return (
        *(min(2, len(part)) for part in (*parts, *carried, *state)),
        made.carry.cancel,
        unplaced,
        kept,
        removed,
        stages,
        snapshot.rearrangement is not None,
        bool(snapshot.cloud_problem),
        bool(snapshot.store_problem),
    )
