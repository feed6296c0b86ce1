"""Faults: errors arranged for the next calls of a port, and nodes on which nothing starts."""

from __future__ import annotations

from collections import defaultdict

from htas.ports import HTASError


class Faults:
    """Errors by call name; each is raised once, in the order in which they were arranged."""

    def __init__(self) -> None:
        self._next: defaultdict[str, list[HTASError]] = defaultdict(list)
        self.starts_nothing: set[str] = set()
        """Nodes that are Ready and start no container, as where no image can be pulled."""

    def arrange(self, call: str, error: HTASError) -> None:
        """Let the next such call fail, as in `arrange("bind", TransientError("the API server is away"))`."""
        self._next[call].append(error)

    def strike(self, call: str) -> None:
        """Called at the start of each call."""
        if self._next[call]:
            raise self._next[call].pop(0)
