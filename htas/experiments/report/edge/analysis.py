"""Why figures differ from the document's: what the load leaves possible, and what the baselines have by themselves."""

from __future__ import annotations

from htas.experiments.edge.contenders import KUBEDSM, RANDOM
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
    reached = 100 * ours.mean / most.mean
    room, taken = most.mean - theirs.mean, ours.mean - theirs.mean
    return (
        f"*{goal.title.capitalize()}.* Of the pods that the load makes, {most.mean:.1f} % fit on the edge at best;"
        f" KubeDSM has {reached:.1f} % of that. {title_of(best)} has {theirs.mean:.1f} % already, so that no scheduler"
        f" could be more than {room:.1f} points ahead of it; KubeDSM takes {taken:.1f} of them.\n"
    )


def _reading(results: EdgeResults) -> str:
    """What the document's baseline had, as its margins tell, beside those that were played here."""
    as_shares = " and ".join(f"{goal.ratio / (1 + goal.ahead / 100):.1f} %" for goal in GOALS)
    as_points = " and ".join(f"{goal.ratio - goal.ahead:.1f} %" for goal in GOALS)
    return (
        "The document calls its margins improvements of 13.4 % and 18.9 % and does not say of what. As shares of the"
        f" best baseline they put that at {as_shares}, near what it reaches here; as points at"
        f" {as_points}{_random(results)}."
        " A ReplicaSet that shrinks gives up first the pods that share their node with most others of it, and those are"
        " in the one large cloud node: baselines win back the edge as the load falls, without a move."
    )


def _random(results: EdgeResults) -> str:
    """What the draw of lots reaches, for comparison."""
    found = [over_sweep(results, RANDOM, played(results, goal.sweep), statistics.edge_ratio) for goal in GOALS]
    means = [f"{each.mean:.1f} %" for each in found if each is not None]
    return f", while choosing nodes by lot reaches {' and '.join(means)}" if means else ""
