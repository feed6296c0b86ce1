"""Plans, searches of the optimiser and answers of `htas simulate` on record, of random clusters.

No plan runs the search or the simulation: decisions on record tell nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import thread_time

from htas.model.plan import Plan
from htas.model.policy import Engine, Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import ALL_STAGES, Stage
from htas.planning.optimize.optimise import optimise
from htas.planning.planner import plan
from htas.planning.solvers.placement.budget import SearchBudget
from htas.planning.what_if.answer import NothingPricedError, what_if
from tools.corpus.clusters import NOW, crowded, grown
from tools.corpus.decisions import Asked, Decision, digest
from tools.corpus.documents import Document, document_of, plain
from tools.corpus.lives import lived

PLANS, SEARCHES, SIMULATIONS = "plans", "searches", "simulations"
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


def searched(snapshot: ClusterSnapshot, policy: Policy, now: float, _stages: frozenset[Stage] = ALL_STAGES) -> Document:
    """The rearrangement that each engine finds, and the one that is found without any time to search."""
    budgets = {engine.value: SearchBudget(WORK_S, 1, engine=engine, is_deterministic=True) for engine in Engine}
    budgets["no time"] = SearchBudget(0.0, 1, is_deterministic=True)
    return {
        name: plain(optimise(snapshot, policy, now, budget, elapsed=lambda: 0.0)) for name, budget in budgets.items()
    }


def simulated(
    snapshot: ClusterSnapshot, policy: Policy, now: float, _stages: frozenset[Stage] = ALL_STAGES
) -> Document:
    """What a cluster would cost, with all services taken to have opted in to being moved and as they are annotated."""
    found = {}
    for name, as_annotated in (("opted in", False), ("as annotated", True)):
        try:
            found[name] = plain(what_if(snapshot.cluster, policy, now, as_annotated=as_annotated))
        except NothingPricedError as error:
            found[name] = {"refused": str(error)}
    return found


ASKED: Mapping[str, Asked] = {PLANS: plan, SEARCHES: searched, SIMULATIONS: simulated}


def made(name: str, asked: Asked) -> tuple[list[Decision], dict[str, Document]]:
    """Questions of the first seeds that are quickly answered, with their answers; and the policies by digest."""
    decisions, policies = list[Decision](), dict[str, Document]()
    seed = 0
    while len(decisions) < COUNT[name]:
        snapshot, policy = CLUSTERS[name](seed)
        began = thread_time()
        given = asked(snapshot, policy, NOW, ALL_STAGES)
        answer = plain(document_of(given) if isinstance(given, Plan) else given)
        seconds = round(thread_time() - began, 4)
        document = plain(policy)
        if seconds <= LONG_S:
            policies[digest(document)] = document
            source = f"{name}, seed {seed}"
            stages = tuple(sorted(stage.value for stage in ALL_STAGES))
            decisions.append(Decision(source, digest(document), NOW, stages, plain(snapshot), answer, seconds))
        seed += 1
    return decisions, policies
