"""Who runs cycles: the daemon that acts, and the one that only recommends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from htas.daemon.loops.cycle import CycleResult
from htas.model.policy import Policy
from htas.model.stages import Stage
from htas.ports import Clock


class Timed(Protocol):
    """Ports, as far as the time is concerned."""

    @property
    def clock(self) -> Clock: ...


class Cycling(Protocol):
    """What `Triggers` run, and the API shows."""

    policy: Policy
    recorded: int | None
    """The number under which the last cycle is on record; None: it is not."""
    listeners: list[Callable[[CycleResult], None]]

    @property
    def ports(self) -> Timed: ...

    @property
    def has_answers(self) -> bool:
        """Whether something has ended that was not waited for."""
        ...

    @property
    def has_edge(self) -> bool:
        """Whether any node that was seen last is of tier edge."""
        ...

    @property
    def store_problem(self) -> str:
        """Why what is done cannot be written down; empty: it can."""
        ...

    def changes(self) -> int:
        """A number that changes with news that a cycle should come early for."""
        ...

    def on_news(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when there is such news."""
        ...

    def adopt(self, policy: Policy) -> None:
        """Go on with a new policy."""
        ...

    def run_cycle(self, stages: frozenset[Stage]) -> CycleResult:
        """One cycle; raises HTASError where it had to be given up."""
        ...
