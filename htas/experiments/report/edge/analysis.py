"""Why figures differ from the document's: what the load leaves possible, and what the baselines have by themselves."""

from __future__ import annotations

from htas.experiments.edge.contenders import KUBEDSM
from htas.experiments.edge.results import EdgeResults
from htas.experiments.report.edge import statistics
from htas.experiments.report.edge.looks import title_of
from htas.experiments.report.edge.statistics import best_baseline, over_sweep, played
from htas.experiments.report.edge.tables import GOALS, Goal


def analysis(results: EdgeResults) -> list[str]:
    """A paragraph for each sweep, and one on how the document's own margins are to be read."""
    told = [line for goal in GOALS if (line := _of_sweep(results, goal))]
    return [*told, _reading(results), ""] if told else []


def _of_sweep(results: EdgeResults, goal: Goal) -> str:
    scenarios = played(results, goal.sweep)
    best = best_baseline(results, scenarios)
    ours = over_sweep(results, KUBEDSM, scenarios, statistics.edge_ratio)
    most = over_sweep(results, KUBEDSM, scenarios, statistics.bound)
    theirs = over_sweep(results, best, scenarios, statistics.edge_ratio) if best is not None else None
    if ours is None or most is None or theirs is None or best is None:
        return ""
    return (
        f"*{goal.title.capitalize()}.* The edge holds at best {most.mean:.1f} % of the pods that the load makes;"
        f" KubeDSM comes to {100 * ours.mean / most.mean:.1f} % of that. {title_of(best)} has {theirs.mean:.1f} %, so"
        f" that the best of all schedulers would be {most.mean - theirs.mean:.1f} points ahead of it.\n"
    )


def _reading(results: EdgeResults) -> str:
    """What the document's best baseline had, as its margins tell, and what makes those here better."""
    as_points = " and ".join(f"{goal.ratio - goal.ahead:.1f} %" for goal in GOALS)
    as_shares = " and ".join(f"{goal.ratio / (1 + goal.ahead / 100):.1f} %" for goal in GOALS)
    return (
        f"The document's best baseline had {as_points}, if its margins are points, or {as_shares}, if they are shares"
        " of the baseline. What baselines reach hangs on which pods go as the load falls: a ReplicaSet that shrinks"
        " gives up first those that share their node with most others of it, often in the one large cloud node, and so"
        " much of the edge is won back without a move. KubeDSM does not depend on it."
    )
