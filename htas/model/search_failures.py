"""Searches that a plan can do without, and what is known of one that failed."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class OptionalSearch(StrEnum):
    """A search that only makes a plan better. Metrics, logs and alerts use these words."""

    HEADROOM = "headroom"
    """Headroom for work that is expected."""
    OTHER_WAYS = "other-ways"
    """Greedy purchases that judge machines otherwise than the first one."""
    CHEAPEST_MIX = "cheapest-mix"
    MAKING_ROOM = "making-room"
    """Moves instead of a launch."""
    PREEMPTION = "preemption"
    EDGE_PLACEMENT = "edge-placement"
    EDGE_MOVES = "edge-moves"
    CLEANING = "cleaning"
    """Which nodes to drain or replace."""
    REARRANGEMENT = "rearrangement"
    """The optimiser's search; it runs beside the plan."""
    BEYOND_PLACING = "beyond-placing"
    """All of a plan but placing: the plan only binds pods to nodes that are there."""


class SearchFailure(msgspec.Struct, frozen=True):
    """A search that raised an exception. The plan was made without it.

    `where` names the frames of the traceback, outermost first. A plan reads no files, so source lines are left out.
    """

    search: OptionalSearch
    error: str
    where: tuple[str, ...] = ()

    @property
    def defect(self) -> tuple[OptionalSearch, str, str]:
        """The search, the kind of error and the line that raised it: an error's words may differ each time."""
        return self.search, self.error.partition(":")[0], self.where[-1] if self.where else ""

    @property
    def message(self) -> str:
        return f"{self.search} failed, the plan does without it: {self.error}"
