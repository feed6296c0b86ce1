"""The optimiser: when nothing can be bought, the best placement of what there is, tier of priority by tier.

`build` makes the problem of a snapshot, `solvers/placement` solves it stage by stage (greedy placement, exchanges, node
patterns, neighbourhoods), `decode` turns the answer back into pods and replays it. docs/algorithms.md states the model.
"""

from htas.planning.optimize.considering import as_if_all_may_move
from htas.planning.optimize.optimise import optimise
from htas.planning.optimize.untouched import Untouched, untouched
from htas.planning.solvers.placement.budget import SearchBudget
from htas.planning.solvers.placement.engines import load

__all__ = ["SearchBudget", "Untouched", "as_if_all_may_move", "load", "optimise", "untouched"]
