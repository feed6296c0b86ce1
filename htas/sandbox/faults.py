"""Faults: errors arranged for the next calls of a port, nodes that start nothing, pods that nobody understands."""

from __future__ import annotations

from collections import Counter, defaultdict

from htas.ports import HTASError


class Faults:
    """Errors by call name; those arranged are raised once each, in order, those refused each time."""

    def __init__(self) -> None:
        self._next: defaultdict[str, list[HTASError]] = defaultdict(list)
        self._always: dict[str, HTASError] = {}
        self.struck: Counter[str] = Counter()
        """How often each call was made."""
        self.starts_nothing: set[str] = set()
        """Nodes that are Ready and start no container, as where no image can be pulled."""

        self.unreadable: set[str] = set()
        """Pods (namespace/name) that are there and cannot be understood by who observes them."""

    def arrange(self, call: str, error: HTASError) -> None:
        """Let the next such call fail, as in `arrange("bind", TransientError("the API server is away"))`."""
        self._next[call].append(error)

    def refuse(self, call: str, error: HTASError | None) -> None:
        """Let every such call fail from now on; None: none any more."""
        if error is None:
            self._always.pop(call, None)
        else:
            self._always[call] = error

    def strike(self, call: str) -> None:
        """Called at the start of each call."""
        self.struck[call] += 1
        if call in self._always:
            raise self._always[call]
        if self._next[call]:
            raise self._next[call].pop(0)
