"""One place for searches that a plan can do without: a search that raises costs neither a bind nor a cycle.

What it did in the simulation is undone, the plan uses the fallback, and the plan says so in `failures`. The daemon
logs and counts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from traceback import walk_tb
from typing import Protocol, TypeVar

from htas.model.search_failures import OptionalSearch, SearchFailure
from htas.planning.cluster.simulation import Simulation

Found = TypeVar("Found")
LONGEST_ERROR = 500
"""Characters of an error's words that are kept."""
MOST_FRAMES = 20
"""Frames of a traceback that are kept, half of them from either end: a RecursionError has a thousand."""


class SearchRunner(Protocol):
    """Runs a search. The planner's runs it as it is; a test may hand in one that fails."""

    def __call__(self, search: OptionalSearch, do: Callable[[], Found]) -> Found: ...


def as_it_is(search: OptionalSearch, do: Callable[[], Found]) -> Found:
    """Run the search, nothing else."""
    return do()


@dataclass(frozen=True, slots=True)
class OptionalSearches:
    """Runs the optional searches of one plan and remembers which of them failed, each defect once."""

    runner: SearchRunner = as_it_is
    failures: list[SearchFailure] = field(default_factory=list)

    def run(
        self, sim: Simulation, search: OptionalSearch, do: Callable[[], Found], otherwise: Callable[[], Found]
    ) -> Found:
        """What `do` finds. If it raises, undo its changes of the simulation and return `otherwise()`.

        `do` must change nothing else that the plan goes on to use.
        """
        with sim.fork() as branch:
            try:
                found = self.runner(search, do)
            except Exception as error:  # whatever it is: the plan can do without
                failure = failure_of(search, error)
            else:
                branch.commit()
                return found
        if all(failure.defect != known.defect for known in self.failures):
            self.failures.append(failure)
        return otherwise()


def failure_of(search: OptionalSearch, error: Exception) -> SearchFailure:
    """What is known of an exception, within bounds."""
    frames = list(walk_tb(error.__traceback__))
    where = [f"{frame.f_globals.get('__name__', '?')}:{line} {frame.f_code.co_name}" for frame, line in frames]
    left_out = len(where) - MOST_FRAMES
    if left_out > 0:
        half = MOST_FRAMES // 2
        where[half:-half] = [f"… {left_out} more"]
    return SearchFailure(search, error_text(error), tuple(where))


def error_text(error: Exception) -> str:
    """The kind of an exception and its words, within bounds; raises nothing, whatever its words are made of."""
    try:
        words = str(error)
    except Exception:  # an error whose words cannot be made costs no plan, either
        words = "its message cannot be read"
    words = words if len(words) <= LONGEST_ERROR else f"{words[:LONGEST_ERROR]}…"
    return f"{type(error).__name__}: {words}"
