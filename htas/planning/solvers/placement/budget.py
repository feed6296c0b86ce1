"""How long a search may take, and the clock that says when it is over."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from htas.model.policy import Engine


class SearchBudget(msgspec.Struct, frozen=True):
    """What one search may use. `seconds` is T and `share` is α of the document's get_timeout.

    With `is_deterministic`, seconds are counted as work done instead of read off the stopwatch: then the same seed
    gives the same answer on any machine, however busy it is. Otherwise it does so whenever the search ends by proof.
    """

    seconds: float = 10.0
    workers: int = 2
    seed: int = 0
    share: float = 0.8
    engine: Engine = Engine.DECOMPOSITION
    is_deterministic: bool = False
    pace: float = 1.0
    """Seconds of wall clock in which one of the budget passes: more than one where the caller's stopwatch is that of a
    processor shared with others. The solvers that are called have a wall clock alone."""

    def __post_init__(self) -> None:
        if self.seconds < 0 or self.workers < 1 or not 0 <= self.share <= 1 or self.pace <= 0:
            raise ValueError(
                f"fallback: budget {self.seconds:g} s (0 or more), workers {self.workers} (1 or more), "
                f"share {self.share:g} (0 to 1), pace {self.pace:g} (above 0): "
                f"correct the configuration's section `fallback`"
            )


class SearchClock:
    """Seconds since the search was asked for: the caller's, or the work done."""

    def __init__(self, budget: SearchBudget, elapsed: Callable[[], float]) -> None:
        self.budget = budget
        self._elapsed = elapsed
        self._work = 0.0

    def now(self) -> float:
        return self._work if self.budget.is_deterministic else self._elapsed()

    def work(self, seconds: float) -> None:
        """Count work done that takes about so many seconds on one core of 2.5 GHz."""
        self._work += seconds

    def is_over(self, deadline: float) -> bool:
        return self.now() >= deadline

    def left(self, deadline: float) -> float:
        return max(0.0, deadline - self.now())

    def wall_left(self, deadline: float) -> float:
        """What a solver may use by its own wall clock: a millisecond at least, as 0 means no limit to some."""
        return max(self.left(deadline) * self.budget.pace, 0.001)

    def stopwatch_left(self, deadline: float) -> float | None:
        """The same; None (no limit) where work is counted instead."""
        return None if self.budget.is_deterministic else self.wall_left(deadline)


class Shares:
    """get_timeout of the document: α·T/tiers for each tier, and what is unused. `staying` is the second stage's part.

    A stage that ends early leaves its rest to those after it; the last one may use all that is left.
    """

    def __init__(self, clock: SearchClock, tiers: int, staying: float) -> None:
        budget = clock.budget
        self._clock = clock
        # What building the problem took, replaying the answer will take again: 1 s each on 1,000 nodes.
        self._end = max(0.0, budget.seconds - clock.now())
        share = budget.share * budget.seconds / max(tiers, 1)
        self._reserved = [share * part for _ in range(tiers) for part in (staying, 1 - staying)]

    def deadline(self) -> float:
        """When the stage that begins now must end: what is reserved for the stages after it stays theirs."""
        self._reserved.pop()
        return max(self._clock.now(), self._end - sum(self._reserved))
