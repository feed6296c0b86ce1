"""Who is asked for each folder of the small corpus: the planner, the optimiser's engines, and `htas simulate`.

The planner's own questions were recorded from tests and days in the sandbox. The others are random clusters: no test's
plan runs the search or the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import thread_time

import msgspec

from htas.model.policy import Engine, Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.optimize.optimise import optimise
from htas.planning.planner import plan
from htas.planning.solvers.placement.budget import SearchBudget
from htas.planning.what_if.answer import NothingPricedError, what_if
from tools.corpus.clusters import NOW, crowded, grown
from tools.corpus.decided import answered, found
from tools.corpus.decisions import Asked, Question, digest, planned_by
from tools.corpus.documents import Document, brief, text_of
from tools.corpus.lives import lived

RECORDED, PLANS, SEARCHES, SIMULATIONS = "recorded", "plans", "searches", "simulations"
COUNT: Mapping[str, int] = {PLANS: 160, SEARCHES: 36, SIMULATIONS: 48}
CLUSTERS: Mapping[str, Callable[[int], tuple[ClusterSnapshot, Policy]]] = {
    PLANS: lived,
    SEARCHES: crowded,
    SIMULATIONS: grown,
}
LONG_S = 0.2
"""Of a cluster that takes longer to answer for, none is kept."""
WORK_S = 2.0
"""What a search may do, counted as work and not read off a clock: the answer is the same on any machine."""


def searched(snapshot: ClusterSnapshot, policy: Policy, now: float, _stages: frozenset[Stage]) -> list[Document]:
    """The rearrangement that each engine finds, and the one that is found without any time to search."""
    budgets = {engine.value: SearchBudget(WORK_S, 1, engine=engine, is_deterministic=True) for engine in Engine}
    budgets["no time"] = SearchBudget(0.0, 1, is_deterministic=True)
    return found(
        {name: optimise(snapshot, policy, now, budget, elapsed=lambda: 0.0) for name, budget in budgets.items()}
    )


def simulated(snapshot: ClusterSnapshot, policy: Policy, now: float, _stages: frozenset[Stage]) -> list[Document]:
    """What a cluster would cost, with all services taken to have opted in to being moved and as they are annotated."""
    lines: list[Document] = []
    for way, as_annotated in (("opted in", False), ("as annotated", True)):
        try:
            lines += answered(way, what_if(snapshot.cluster, policy, now, as_annotated=as_annotated))
        except NothingPricedError:
            lines.append({"answer": way, "raises": NothingPricedError.__name__})
    return lines


ASKED: Mapping[str, Asked] = {
    RECORDED: planned_by(plan),
    PLANS: planned_by(plan),
    SEARCHES: searched,
    SIMULATIONS: simulated,
}


def made(name: str) -> tuple[list[Question], dict[str, list[str]], dict[str, Document]]:
    """Questions of the first seeds that are quickly answered, with their answers; and the policies by digest."""
    questions, answers, policies = list[Question](), dict[str, list[str]](), dict[str, Document]()
    seed = 0
    while len(questions) < COUNT[name]:
        snapshot, policy = CLUSTERS[name](seed)
        began = thread_time()
        lines = ASKED[name](snapshot, policy, NOW, ALL_STAGES)
        seconds = round(thread_time() - began, 4)
        if seconds <= LONG_S:
            document = brief(policy)
            key = digest(document)
            question = Question.of(f"{name}, seed {seed}", snapshot, key, NOW, ALL_STAGES)
            policies[key] = document
            answers[question.id] = list(map(text_of, lines))
            questions.append(msgspec.structs.replace(question, seconds=seconds))
        seed += 1
    return questions, answers, policies
