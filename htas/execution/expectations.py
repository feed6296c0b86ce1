"""Expectations: what was issued and is not observed yet, so that no pod is placed, evicted or preempted for twice.

kube-scheduler calls such pods assumed. A bind that failed is forgotten, and its pod held back for a while that
doubles from 1 s to 10 s (kube-scheduler's podInitialBackoff and podMaxBackoff).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock

import msgspec

from htas.execution.backoff import NO_PAUSE, Pause
from htas.model.pods import Pod

PATIENCE_S = 30.0
"""After this long what was not observed is taken to have been lost, and is planned anew."""
FIRST_HOLD_S, LONGEST_HOLD_S = 1.0, 10.0


class Expectations:
    """Binds by pod, and pods whose last bind failed: safe from several threads. Evictions and nominations, by uid."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._binds: dict[str, tuple[str, float]] = {}
        self._held: dict[str, Pause] = {}
        self._evicted: dict[str, float] = {}
        self._nominated: dict[str, tuple[str | None, float]] = {}

    def expect_bind(self, pod: str, node: str, now: float) -> None:
        with self._lock:
            self._binds[pod] = node, now

    def failed(self, pod: str, now: float) -> None:
        """A bind was refused or got no answer: forget it, and hold the pod back."""
        with self._lock:
            self._binds.pop(pod, None)
            self._held[pod] = self._held.get(pod, NO_PAUSE).after(now, FIRST_HOLD_S, LONGEST_HOLD_S)

    def settle(self, pods: Iterable[Pod], now: float) -> None:
        """Drop what has been observed, what is moot because the pod is gone, and what is too old to believe."""
        with self._lock:
            if not self._binds and not self._held:
                return
            waiting = {pod.key for pod in pods if pod.node is None}
            self._binds = {
                pod: (node, at) for pod, (node, at) in self._binds.items() if pod in waiting and now - at < PATIENCE_S
            }
            self._held = {pod: hold for pod, hold in self._held.items() if pod in waiting}

    @property
    def binds(self) -> Mapping[str, str]:
        with self._lock:
            return {pod: node for pod, (node, _) in self._binds.items()}

    def held_back(self, now: float) -> Mapping[str, float]:
        """Until when pods are held back."""
        with self._lock:
            return {pod: pause.until for pod, pause in self._held.items() if pause.until > now}

    def expect_eviction(self, uid: str, now: float) -> None:
        self._evicted[uid] = now

    def expect_nomination(self, uid: str, node: str | None, now: float) -> None:
        self._nominated[uid] = node, now

    def applied(self, pods: tuple[Pod, ...], now: float) -> tuple[Pod, ...]:
        """The pods as preemptions have left them: evicted and nominated, though no watch has shown it yet."""
        if not self._evicted and not self._nominated:
            return pods
        seen = {pod.uid: pod for pod in pods if pod.uid in self._evicted or pod.uid in self._nominated}
        self._evicted = {
            uid: at
            for uid, at in self._evicted.items()
            if uid in seen and not seen[uid].is_terminating and now - at < PATIENCE_S
        }
        self._nominated = {
            uid: (node, at)
            for uid, (node, at) in self._nominated.items()
            if uid in seen and seen[uid].nominated_node != node and seen[uid].node is None and now - at < PATIENCE_S
        }
        return tuple(self._as_done(pod) for pod in pods) if self._evicted or self._nominated else pods

    def _as_done(self, pod: Pod) -> Pod:
        if pod.uid in self._evicted:
            return msgspec.structs.replace(pod, deleted_at=self._evicted[pod.uid])
        if pod.uid in self._nominated:
            return msgspec.structs.replace(pod, nominated_node=self._nominated[pod.uid][0])
        return pod
