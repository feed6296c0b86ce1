"""Removing pods so that it is known that their processes have ended: no two copies of them work at one time."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from htas.adapters.checkpoint.documents import Json, is_ready
from htas.adapters.checkpoint.objects import GRACE_S, Objects
from htas.adapters.twins import has_ended
from htas.ports import ConflictError, TransientError

POLL_S = 0.1
"""Between looks at a pod that is to go, or to come."""


class Removal:
    """Deletes a pod and waits for its end."""

    def __init__(self, objects: Objects, closing: Event) -> None:
        self._objects = objects
        self._closing = closing

    def remove(self, find: Callable[[], Json | None], within_s: float) -> bool:
        """Whether the pod that `find` returns (None: it is gone) has ended, or the Node object it was on is gone.

        Where a node that is Ready does not end it within as many seconds, its object is removed all the same: the
        kubelet ends what the API server does not know. A node that is not Ready may run it on, and the answer is False:
        it ends the pod when it answers again. Raises what `find` raises, and TransientError where this daemon ends.
        """
        until = time.monotonic() + within_s
        while (pod := find()) is not None and not _has_stopped(pod):
            name = pod["spec"].get("nodeName")
            node = self._objects.node(name) if name else None
            is_late = time.monotonic() > until
            if node is None or (is_ready(node) and is_late):
                if self._ask(pod, grace_s=0):
                    return True
            elif self._ask(pod, GRACE_S) and not is_ready(node):
                return False
            if self._closing.wait(POLL_S):
                raise TransientError(f"pod {pod['metadata']['name']} is being removed, and this daemon ends")
        return True

    def _ask(self, pod: Json, grace_s: int) -> bool:
        """Whether it is asked to end. A controller that deletes it, too, gives it 30 s mostly: that is shortened."""
        meta = pod["metadata"]
        if meta.get("deletionTimestamp") and meta.get("deletionGracePeriodSeconds", 0) <= grace_s:
            return True
        try:
            self._objects.delete(pod, grace_s)
        except ConflictError:  # its kubelet writes its status all the time: the next look shows what it is now
            return False
        return True


def _has_stopped(pod: Json) -> bool:
    """Deleted, its kubelet says that it ended, and a finalizer alone holds the object for longer."""
    meta = pod["metadata"]
    return bool(meta.get("deletionTimestamp") and meta.get("finalizers")) and has_ended(pod)
