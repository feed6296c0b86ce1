"""What moves leave on nodes: images of pods that run no more, and whatever a node kept that could not be reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import structlog

from htas.adapters.checkpoint.documents import is_ready, restored_image_labels
from htas.adapters.checkpoint.failures import StepFailedError
from htas.adapters.checkpoint.methods import Method
from htas.adapters.checkpoint.objects import Objects
from htas.adapters.kwok.twins import has_ended
from htas.ports import NotFoundError

log = structlog.get_logger()


class Leftovers:
    """Removes them, sooner or later. A restored pod's image stays while the pod lives: it restarts from it."""

    def __init__(self, objects: Objects, method: Method, sweepable: Callable[[], Sequence[str]]) -> None:
        self._objects = objects
        self._method = method
        self._sweepable = sweepable
        self._lock = Lock()
        self._unswept: set[str] = set()
        self._living: set[tuple[str, str]] = set()
        self._is_first = True

    def defer(self, node: str) -> None:
        """Sweep a node once it can be reached."""
        with self._lock:
            self._unswept.add(node)

    def restored(self, node: str, move: str) -> None:
        """Know of a pod that was restored just now, however soon it ends."""
        with self._lock:
            self._living.add((node, move))

    def look(self, under_way: Sequence[str]) -> None:
        """Remove what can be removed now: at first on all nodes, since an earlier process may have been killed."""
        with self._lock:
            before = set(self._living)
        pods = self._objects.restored()
        living = {
            (pod["spec"]["nodeName"], restored_image_labels(pod) or "")
            for pod in pods
            if not has_ended(pod) and pod["spec"].get("nodeName")
        }
        gone = before - living
        with self._lock:  # what was restored while the pods were listed stays known
            self._living = (self._living - gone) | living
        for node, move in gone:
            if move not in under_way:
                self._try(node, lambda node=node, move=move: self._method.forget(node, move))  # type: ignore[misc] # both are bound here
        if self._is_first:
            self._is_first = False
            for node in self._sweepable():
                self.defer(node)
        with self._lock:
            unswept, self._unswept = self._unswept, set()
        for node in unswept:
            keep = [*under_way, *(move for place, move in living if place == node)]
            self._try(node, lambda node=node, keep=keep: self._method.sweep(node, keep))  # type: ignore[misc] # both are bound here

    def _try(self, node: str, act: Callable[[], None]) -> None:
        try:
            found = self._objects.node(node)
            if found is None:
                return  # and with the machine all that was on it
            if not is_ready(found):
                self.defer(node)
                return
            act()
        except NotFoundError:
            return
        except StepFailedError as error:
            log.warning("what moves left cannot be removed yet", node=node, error=str(error))
            self.defer(node)
