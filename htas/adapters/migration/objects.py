"""The pods and nodes of moves on the API server: read, changed, journalled, and removed so that all processes end.

The journal is an annotation on the pod that is moved, and on its twin once that has taken over. So a daemon that was
killed, or another one that leads now, finds every move without a store, and nothing has to be kept in step with the
cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event

import msgspec

from htas.adapters.kubernetes.api import ApiServer, part, retry_on_conflict
from htas.adapters.migration.copying.image import USUAL
from htas.adapters.migration.documents import (
    LEFT_BEHIND,
    RESTORED,
    Json,
    has_ended,
    is_its_own,
    is_ready,
    is_twin_of,
    journalled,
    record_in,
    settled,
    twin_name_of,
)
from htas.adapters.migration.method import StepFailedError
from htas.model.migrations import Failure, MigrationRecord, MigrationState
from htas.model.pods import MOVING, TWIN_OF
from htas.ports import ConflictError, HTASError, NotFoundError, TransientError

CONFLICTS = 10
"""How often a pod is read again when somebody else changed it meanwhile (its kubelet does, all the time)."""
GRACE_S = 1
"""For the processes of a pod that is deleted: a shell as the first of them ignores SIGTERM, and longer would be so much
work done twice."""
POLL_S = 0.1
"""Between looks at a pod that is to go, or to come."""
LONGEST_POLL_S = 1.0

_CONTROLLERS = {
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "ReplicationController": "/api/v1/namespaces/{}/replicationcontrollers",
}


class Objects:
    """Reads and changes; raises what ApiServer raises."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    def may_write(self) -> bool:
        """Whether this daemon leads: nothing is to be changed, here or on a node, once it does not."""
        return self._api.may_write()

    def pod(self, namespace: str, name: str) -> Json | None:
        """None: there is no pod of that name."""
        try:
            found: Json = msgspec.json.decode(self._api.get(_path(namespace, name)))
        except NotFoundError:
            return None
        return found

    def create(self, pod: Json) -> None:
        """A pod; one of its name that is there already is taken for it."""
        try:
            self._api.post(f"/api/v1/namespaces/{part(pod['metadata']['namespace'])}/pods", pod)
        except ConflictError:
            return

    def patch(self, pod: Json, patch: Json) -> Json:
        """Change a pod if it is still as it was read; ConflictError: it is not."""
        as_read = {"uid": pod["metadata"]["uid"], "resourceVersion": pod["metadata"]["resourceVersion"]}
        changed = {**patch, "metadata": {**patch["metadata"], **as_read}}
        meta = pod["metadata"]
        found: Json = msgspec.json.decode(self._api.patch(_path(meta["namespace"], meta["name"]), changed))
        return found

    def delete(self, pod: Json, grace_s: int = GRACE_S) -> None:
        """Ask for a pod's end if it is still as it was read (ConflictError: it is not); gone already is done.

        Its object stays until its kubelet says that its processes ended; with a grace of 0 it goes at once, and
        nobody knows whether they did.
        """
        meta = pod["metadata"]
        as_read = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        body = {"gracePeriodSeconds": grace_s, "preconditions": as_read}
        try:
            self._api.delete(_path(meta["namespace"], meta["name"]), body)
        except NotFoundError:
            return

    def moving(self) -> list[Json]:
        """Sources and twins of moves that are under way."""
        return self._labelled(MOVING)

    def restored(self) -> list[Json]:
        return self._labelled(RESTORED)

    def twins_of(self, namespace: str, uid: str) -> list[Json]:
        """Of a pod, which no controller has for its own, or whose source is not gone yet."""
        path = f"/api/v1/namespaces/{part(namespace)}/pods"
        found: list[Json] = msgspec.json.decode(self._api.get(path, {"labelSelector": f"{TWIN_OF}={uid}"}))["items"]
        return found

    def left_behind(self) -> list[Json]:
        """Pods of moves that are over, and left archives on a node that could not be reached."""
        return self._labelled(LEFT_BEHIND)

    def _labelled(self, label: str) -> list[Json]:
        found: list[Json] = msgspec.json.decode(self._api.get("/api/v1/pods", {"labelSelector": label}))["items"]
        return found

    def unbound_beside(self, pod: Json | None) -> bool:
        """Whether a pod of the same owner waits for a node."""
        owners = {each["uid"] for each in (pod or {}).get("metadata", {}).get("ownerReferences") or ()}
        if pod is None or not owners:
            return False
        path = f"/api/v1/namespaces/{part(pod['metadata']['namespace'])}/pods"
        found = msgspec.json.decode(self._api.get(path, {"fieldSelector": "spec.nodeName="}))["items"]
        return any(owners & {own["uid"] for own in each["metadata"].get("ownerReferences") or ()} for each in found)

    def controller(self, namespace: str, kind: str, name: str) -> Json | None:
        """A ReplicaSet or ReplicationController, read as a list of one: HTAS may list them, and not get them."""
        base = _CONTROLLERS[kind].format(part(namespace))
        listed: list[Json] = msgspec.json.decode(self._api.get(base, {"fieldSelector": f"metadata.name={name}"}))[
            "items"
        ]
        return listed[0] if listed else None

    def selected(self, namespace: str, labels: Mapping[str, str]) -> list[Json]:
        """The pods of a namespace that bear labels."""
        query = {"labelSelector": ",".join(f"{key}={text}" for key, text in labels.items())}
        found: list[Json] = msgspec.json.decode(self._api.get(f"/api/v1/namespaces/{part(namespace)}/pods", query))[
            "items"
        ]
        return found

    def node(self, name: str) -> Json | None:
        try:
            found: Json = msgspec.json.decode(self._api.get(f"/api/v1/nodes/{part(name)}"))
        except NotFoundError:
            return None
        return found

    def architecture(self, node: str) -> str:
        """What a node's processor is (`amd64`, `arm64`); raises NotFoundError where it is gone."""
        found = self.node(node)
        if found is None:
            raise NotFoundError(f"node {node} is gone")
        return str(found.get("status", {}).get("nodeInfo", {}).get("architecture") or USUAL)

    def address(self, node: str) -> str:
        """The node's InternalIP; raises NotFoundError where it is gone or has none."""
        found = self.node(node)
        addresses = (found or {}).get("status", {}).get("addresses") or ()
        for each in addresses:
            if each["type"] == "InternalIP":
                return str(each["address"])
        raise NotFoundError(f"node {node} {'has no InternalIP' if found is not None else 'is gone'}")


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{part(namespace)}/pods/{part(name)}"


def poll_s(since: float) -> float:
    """Until the next look at a pod that is waited for since an instant of the monotonic clock.

    A twentieth of the wait so far, so that ten services that each take 30 s to start do not ask 200 times a second.
    """
    return min(max((time.monotonic() - since) / 20, POLL_S), LONGEST_POLL_S)


def at_once_s(pod: Json) -> int:
    """The grace in which a pod's processes are ended that would only do work twice."""
    return GRACE_S


class Removal:
    """Deletes a pod and waits for its end: no two copies of its processes work at one time."""

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


class TakenOverError(HTASError):
    """Somebody else has written the journal of a move since we did: it is not ours to carry on."""


class Journal:
    """Writes the state of moves on their sources, and on twins that have taken over."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    @retry_on_conflict(CONFLICTS)
    def write(self, before: MigrationRecord | None, after: MigrationRecord) -> MigrationRecord:
        """Write a state over the one that was written last; returns it.

        Raises TakenOverError where the journal says something else than `before`, and StepFailedError (final) where
        the source is gone.
        """
        namespace, _, name = after.pod.partition("/")
        pod = self._objects.pod(namespace, name)
        if pod is None or pod["metadata"]["uid"] != after.uid:
            raise _gone(after)
        _check_ours(pod, before, after)
        try:
            self._objects.patch(pod, journalled(after))
        except NotFoundError as error:
            raise _gone(after) from error
        return after

    @retry_on_conflict(CONFLICTS)
    def write_on_twin(self, record: MigrationRecord) -> None:
        """Write a state where the source is about to go; a twin that was deleted meanwhile has none."""
        twin = self._objects.pod(record.pod.partition("/")[0], twin_name_of(record))
        if twin is None or not is_twin_of(twin, record):
            return
        is_done = record.state is MigrationState.DONE
        with suppress(NotFoundError):
            self._objects.patch(twin, settled(record) if is_done else journalled(record))


def _gone(record: MigrationRecord) -> StepFailedError:
    return StepFailedError(Failure.SOURCE_ENDED, f"pod {record.pod} is gone", is_final=True)


def _check_ours(pod: Json, before: MigrationRecord | None, after: MigrationRecord) -> None:
    found = record_in(pod)
    if found is not None and not is_its_own(pod, found):
        found = None  # a copy of a pod bears its annotations, too
    if found is not None and found.is_over and before is None:
        return  # an earlier move of the same pod
    if found is not None and before is not None and before.state is MigrationState.SWITCHED and found.id == after.id:
        return  # from the switch on the twin's journal was written, and this one no more
    if found != before and found != after:
        raise TakenOverError(f"the journal of {after.pod} was written by another daemon")
