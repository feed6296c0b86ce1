"""Pods that state no requests: by which amounts they count, where.

kube-scheduler lets a pod without requests onto any node, and so does HTAS: what fits a node that is there is judged by
what pods state. But a machine is not launched as if such pods needed nothing, and a node is not drained onto others as
if they did. There `scheduling.defaultRequests` counts for each cpu or memory that a pod does not state. Launching and
draining count alike, so that what was launched for such pods is not drained again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from htas.model.pods import Pod
from htas.model.resources import DefaultRequests, LackingRequests
from htas.planning.cluster.classes import Ints, PodClass


def lacking_requests(pods: Iterable[Pod], defaults: DefaultRequests) -> LackingRequests:
    """How many pods state no cpu or no memory; those that belong to their nodes are left out."""
    stated = [bool(pod.requests.cpu_m and pod.requests.memory_bytes) for pod in pods if pod.is_work]
    lacking = stated.count(False)
    return LackingRequests(lacking, len(stated), defaults) if lacking else LackingRequests()


class Columns(Protocol):
    """What rows have free, and what default requests count of the pods on them (`NodeTable`)."""

    free: Ints
    missing: Ints


class DefaultRequestsSwitch:
    """Whether default requests count now, in the classes that lack requests and in what rows have free."""

    def __init__(self) -> None:
        self._classes: list[PodClass] = []
        self.are_counted = False
        self._counts_all = False

    @property
    def matter(self) -> bool:
        """Whether it makes a difference: some pods lack requests."""
        return bool(self._classes)

    def register(self, cls: PodClass) -> None:
        """Take note of a class that lacks requests."""
        if any(cls.missing):
            self._classes.append(cls)
            _set(cls, is_counted=self._counts_all)

    @contextmanager
    def counted(self, table: Columns, cls: PodClass | None = None) -> Iterator[None]:
        """They count meanwhile: of all classes, or of one where no other is placed."""
        if self.are_counted or not self._classes:
            yield
            return
        self.are_counted, self._counts_all = True, cls is None
        _set_all(self._classes if cls is None else (cls,), is_counted=True)
        table.free[:2] -= table.missing
        try:
            yield
        finally:
            self.are_counted = self._counts_all = False
            _set_all(self._classes if cls is None else (cls,), is_counted=False)
            table.free[:2] += table.missing


def _set_all(classes: Sequence[PodClass], *, is_counted: bool) -> None:
    for cls in classes:
        _set(cls, is_counted=is_counted)


def _set(cls: PodClass, *, is_counted: bool) -> None:
    if not any(cls.missing):
        return
    cls.requests = cls.asked
    if is_counted:
        cls.requests = cls.asked.copy()
        cls.requests[:2] += cls.missing
    cls.needs = tuple(np.flatnonzero(cls.requests).tolist())
