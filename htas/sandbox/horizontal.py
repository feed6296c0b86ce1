"""Requests that services answer, and HorizontalPodAutoscalers that give them as many pods as those take.

After Kubernetes, pkg/controller/podautoscaler: every sync the wanted number is ceil(pods × use ÷ target), nothing is
done within the tolerance, growth is at most the larger of twice the pods and four more, and the service shrinks to no
fewer pods than any sync within the stabilisation window wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from htas.sandbox.clock import EventQueue, VirtualClock
from htas.sandbox.workload import HorizontalScaler, Load, Rescale

GROWTH_TIMES, GROWTH_PODS = 2, 4
"""The default behaviour's policies for growing: 100 % or four pods in fifteen seconds, whichever is more."""


@dataclass(slots=True)
class _Scaled:
    """A scaler, the requests its service gets now, and what it wanted of late."""

    scaler: HorizontalScaler
    requests_per_s: float = 0.0
    wanted: list[tuple[float, int]] = field(default_factory=list)

    def use(self, running: int) -> float:
        """The mean use of running pods, 1 being all that they are rated for."""
        use = self.requests_per_s / (running * self.scaler.requests_per_pod)
        return min(use, 1.0) if self.scaler.is_saturating else use

    def proposal(self, now: float, replicas: int, running: int) -> int:
        """How many pods to have now, of `replicas` wanted so far and `running` ones, which are measured."""
        scaler = self.scaler
        proposed = self._by_use(replicas, running) if running else replicas
        self.wanted = [(at, pods) for at, pods in self.wanted if now - at <= scaler.shrink_window_s]
        self.wanted.append((now, proposed))
        if proposed < replicas:
            proposed = min(replicas, max(pods for _, pods in self.wanted))
        most = min(scaler.max_replicas, max(GROWTH_TIMES * replicas, replicas + GROWTH_PODS))
        return max(scaler.min_replicas, min(proposed, most))

    def _by_use(self, replicas: int, running: int) -> int:
        """Pods that do not run yet count as idle where that says to grow, so that they are waited for."""
        ratio = self.use(running) / self.scaler.target_utilization
        if ratio > 1 and running < replicas:
            ratio, running = ratio * running / replicas, replicas
            if ratio < 1:
                return replicas
        if abs(ratio - 1) <= self.scaler.tolerance:
            return replicas
        return math.ceil(round(running * ratio, 9))  # 3 × 1.1 ÷ 0.3 is 11, and in floats a little more


class HorizontalAutoscaler:
    """Looks at every scaled service once in its sync period and rescales its controller."""

    def __init__(
        self,
        clock: VirtualClock,
        queue: EventQueue,
        count: Callable[[str], tuple[int, int] | None],
        rescale: Callable[[Rescale], None],
    ) -> None:
        """`count` tells how many pods a controller wants and how many of them run; None: it has not arrived."""
        self._clock = clock
        self._queue = queue
        self._count = count
        self._rescale = rescale
        self._scaled: dict[str, _Scaled] = {}

    def add(self, scaler: HorizontalScaler) -> None:
        """Begin to scale a service; its first look is now."""
        self._scaled[scaler.key] = _Scaled(scaler)
        self._queue.after(0.0, partial(self._sync, scaler.key))

    def serve(self, load: Load) -> None:
        """From now on a service gets so many requests."""
        self._scaled[load.key].requests_per_s = load.requests_per_s

    def _sync(self, key: str) -> None:
        scaled, counted = self._scaled[key], self._count(key)
        if counted is not None:
            replicas, running = counted
            wanted = scaled.proposal(self._clock.now(), replicas, running)
            if wanted != replicas:
                self._rescale(Rescale(self._clock.now(), scaled.scaler.namespace, scaled.scaler.name, wanted))
        self._queue.after(scaled.scaler.sync_s, partial(self._sync, key))
