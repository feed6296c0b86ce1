"""Expectations: binds issued and not yet observed, so that the next plan does not place the same pod twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from htas.model.pods import Pod

PATIENCE_S = 30.0
"""After this long an unobserved bind is taken to have been lost, and the pod is planned for again."""


@dataclass(slots=True)
class Expectations:
    """Binds by pod key."""

    _binds: dict[str, tuple[str, float]] = field(default_factory=dict)

    def expect_bind(self, pod: str, node: str, now: float) -> None:
        self._binds[pod] = node, now

    def forget(self, pod: str) -> None:
        self._binds.pop(pod, None)

    def settle(self, pods: Iterable[Pod], now: float) -> None:
        """Drop what has been observed, what is moot because the pod is gone, and what is too old to believe."""
        if not self._binds:
            return
        waiting = {pod.key for pod in pods if pod.node is None}
        self._binds = {
            pod: (node, at) for pod, (node, at) in self._binds.items() if pod in waiting and now - at < PATIENCE_S
        }

    @property
    def binds(self) -> Mapping[str, str]:
        return {pod: node for pod, (node, _) in self._binds.items()}
