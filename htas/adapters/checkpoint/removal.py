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
LONGEST_POLL_S = 1.0


def poll_s(since: float) -> float:
    """Until the next look at a pod that is waited for since an instant of the monotonic clock.

    A twentieth of the wait so far, so that ten services that each take 30 s to start do not ask 200 times a second.
    """
    return min(max((time.monotonic() - since) / 20, POLL_S), LONGEST_POLL_S)


def at_once_s(pod: Json) -> int:
    """The grace in which a pod's processes are ended that would only do work twice."""
    return GRACE_S


class Removal:
    """Deletes a pod and waits for its end."""

    def __init__(self, objects: Objects, closing: Event) -> None:
        self._objects = objects
        self._closing = closing

    def remove(
        self, find: Callable[[], Json | None], within_s: float, grace: Callable[[Json], int] = at_once_s
    ) -> bool:
        """Whether the pod that `find` returns (None: it is gone) has ended, or the Node object it was on is gone.

        Where a node that is Ready does not end it within as many seconds after its grace, its object is removed all
        the same: the kubelet ends what the API server does not know. A node that is not Ready may run it on, and the
        answer is False: it ends the pod when it answers again. Raises what `find` raises, and TransientError where this
        daemon ends.
        """
        began = time.monotonic()
        while (pod := find()) is not None and not _has_stopped(pod):
            grace_s = grace(pod)
            name = pod["spec"].get("nodeName")
            node = self._objects.node(name) if name else None
            is_late = time.monotonic() > began + grace_s + within_s
            if node is None or (is_ready(node) and is_late):
                if self._ask(pod, grace_s=0):
                    return True
            elif self._ask(pod, grace_s) and not is_ready(node):
                return False
            if self._closing.wait(poll_s(began)):
                raise TransientError(f"pod {pod['metadata']['name']} is being removed, and this daemon ends")
        return True

    def _ask(self, pod: Json, grace_s: int) -> bool:
        """Whether it is asked to end. Where a controller deletes it, too, with a longer grace, that is shortened."""
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
