"""What moves leave on nodes: images that nobody needs any more, and whatever a node kept that could not be reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

import msgspec
import structlog

from htas.adapters.migration.documents import (
    Json,
    base_images_of,
    has_ended,
    is_ending,
    is_its_own,
    is_ready,
    journalled,
    record_in,
    restored_image_labels,
    statuses,
    twin_name_of,
)
from htas.adapters.migration.method import Checkpointing, Method, StepFailedError
from htas.adapters.migration.objects import Objects
from htas.model.migrations import MigrationRecord, MigrationState, is_checkpoint
from htas.ports import HTASError, NotFoundError, PermanentError

log = structlog.get_logger()

CANNOT_START = frozenset({"ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff"})
"""What a kubelet says of a container whose image is not there."""


class Leftovers:
    """Removes them, sooner or later. By the method command, a restored pod's image stays while the pod lives."""

    def __init__(self, objects: Objects, method: Method, sweepable: Callable[[], Sequence[str]]) -> None:
        self._objects = objects
        self._method = method
        self._sweepable = sweepable
        self._lock = Lock()
        self._unswept: set[str] = set()
        self._living: set[tuple[str, str]] = set()
        self._owed: dict[tuple[str, int], tuple[MigrationRecord, bool]] = {}
        self._is_first = True

    def owe(self, record: MigrationRecord, *, keep_image: bool) -> None:
        """Clean up after an attempt once its nodes can be reached, and its pod is not on its way."""
        with self._lock:
            self._owed[record.id, record.attempt] = record, keep_image
        if not keep_image or not record.needs_image:
            self.defer(record.target)

    def discard(self, record: MigrationRecord) -> None:
        """Remove what a twin that runs was restored from: now, or once its node can be reached."""
        if not isinstance(self._method, Checkpointing):
            return
        try:
            self._method.discard(record)
        except (StepFailedError, PermanentError) as error:
            log.info("a restored pod's image stays for now", move=record.id, error=record.without_names(str(error)))
            self.defer(record.target)

    def defer(self, node: str) -> None:
        """Sweep a node once it can be reached."""
        with self._lock:
            self._unswept.add(node)

    def restored(self, node: str, move: str) -> None:
        """Know of a pod that was restored just now, however soon it ends."""
        with self._lock:
            self._living.add((node, move))

    def look(self, under_way: Callable[[], Sequence[MigrationRecord]]) -> None:
        """Remove what can be removed now: at first on all nodes, since an earlier process may have been killed."""
        if self._is_first:
            for pod in self._objects.left_behind():
                record = record_in(pod)
                if record is not None and record.is_over and is_its_own(pod, record):
                    self.owe(record, keep_image=record.state is MigrationState.DONE)
            for node in self._sweepable():
                self.defer(node)
            self._is_first = False
        self._forget(under_way)
        with self._lock:
            unswept, self._unswept = self._unswept, set()
            owed, self._owed = self._owed, {}
        for node in unswept:
            self._try(node, partial(self._sweep, node, under_way), partial(self.defer, node))
        for record, keep_image in owed.values():
            again = partial(self.owe, record, keep_image=keep_image)
            if record.pod in {each.pod for each in under_way()}:
                again()  # its archives and those of the move under way have the same names
                continue
            self._try(record.source, partial(self._clean_again, record, keep_image=keep_image), again)

    def _clean_again(self, record: MigrationRecord, *, keep_image: bool) -> None:
        """And say on the pod, be it the source or the twin, that nothing is left, if that attempt was its last."""
        self._method.clean_again(record, keep_image=keep_image)
        namespace, _, name = record.pod.partition("/")
        for each in (name, twin_name_of(record)):
            pod = self._objects.pod(namespace, each)
            told = record_in(pod) if pod is not None else None
            if pod is None or told is None or not told.left_behind or not is_its_own(pod, told):
                continue
            if (told.id, told.attempt) == (record.id, record.attempt):
                self._objects.patch(pod, journalled(msgspec.structs.replace(told, left_behind=False)))

    def _forget(self, under_way: Callable[[], Sequence[MigrationRecord]]) -> None:
        """The images of pods that run no more. Pods that live without theirs start over where they end."""
        with self._lock:
            before = set(self._living)
        restored = self._objects.restored()
        for pod in restored:
            self._start_over(pod)
        living = {
            (pod["spec"]["nodeName"], move)
            for pod in restored
            if (move := restored_image_labels(pod)) and pod["spec"].get("nodeName") and _needs_image(pod)
        }
        gone = before - living
        with self._lock:  # what was restored while the pods were listed stays known
            self._living = (self._living - gone) | living
        for node, move in gone - {(each.target, each.id) for each in under_way()}:
            self._try(node, partial(self._method.forget, node, move), partial(self.defer, node))

    def _start_over(self, pod: Json) -> None:
        patch = starting_over(pod)
        if patch is None:
            return
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        try:
            self._objects.patch(pod, patch)
            log.info("a restored container ended, and starts again from its own image", pod=name)
        except HTASError as error:  # met again by the next look, if it is still so
            log.warning("a restored container cannot start again", pod=name, error=str(error))

    def _sweep(self, node: str, under_way: Callable[[], Sequence[MigrationRecord]]) -> None:
        """What is needed is asked just now: a sweep of another node takes long enough for a move to be restored here.

        Those under way first: a move that ends in between is known as living before it is not under way any more.
        """
        keep = {each.id for each in under_way() if each.needs_image}
        with self._lock:
            keep |= {move for place, move in self._living if place == node}
        self._method.sweep(node, sorted(keep))

    def _try(self, node: str, act: Callable[[], None], again: Callable[[], None]) -> None:
        """Carry out what has to do with a node; `again` has it tried later. With a node all that was on it is gone."""
        try:
            found = self._objects.node(node)
            if found is None:
                return
            if not is_ready(found):
                again()
                return
            act()
        except NotFoundError:
            return
        except HTASError as error:
            log.warning("what moves left cannot be removed yet", node=node, error=str(error))
            again()
        except Exception:
            log.exception("what moves left cannot be removed: a defect of HTAS", node=node)


def _needs_image(pod: Json) -> bool:
    """Whether a restored pod restarts from what it was restored from."""
    record = record_in(pod)
    return not has_ended(pod) and (record is None or record.needs_image or not is_its_own(pod, record))


def starting_over(pod: Json) -> Json | None:
    """The patch by which its waiting containers start from their own images; None: none waits for a checkpoint.

    A restored container that ended is started again by its kubelet, and its checkpoint is gone by then: it begins anew
    from its own image, as any does. Not before it has ended: a kubelet ends a running container whose image changes.
    """
    record = record_in(pod)
    if record is None or not record.is_over or is_ending(pod):
        return None  # a move under way is judged by who carries it
    own = base_images_of(pod)
    containers, has_changed = [], False
    for container, base, status in zip(pod["spec"]["containers"], own, statuses(pod), strict=True):
        waiting = ((status.get("state") or {}).get("waiting") or {}).get("reason")
        is_stuck = waiting in CANNOT_START and is_checkpoint(container.get("image", "")) and not is_checkpoint(base)
        has_changed = has_changed or is_stuck
        containers.append({**container, "image": base} if is_stuck else container)
    return {"metadata": {}, "spec": {"containers": containers}} if has_changed else None
