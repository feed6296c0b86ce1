"""ClusterPort on the API server: what is seen comes from the live view, what is done is one call each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from threading import Event
from time import monotonic

import msgspec

from htas.adapters.kubernetes import wire
from htas.adapters.kubernetes.api import MERGE_PATCH, STRATEGIC_PATCH, ApiServer, part, retry_on_conflict
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kubernetes.objects import SELECTED_NODE
from htas.adapters.kubernetes.resources import RESOURCES
from htas.adapters.kubernetes.watching import Watching, list_into
from htas.model.constraints import Taint
from htas.model.deletion_costs import DELETION_COST
from htas.model.nodes import DRAINING_TAINT, OWN_LABELS
from htas.model.pods import Pod
from htas.model.snapshot import ClusterView
from htas.ports import ConflictError, NotFoundError, NotYetError, PermanentError, TransientError

STALE_S = 15.0
"""With a kind unwatched for longer the view may be wrong, and nothing is planned on it."""
MOST_TOLD = 2
"""Of kinds that cannot be listed: mostly all fail for one reason."""
CONFLICTS = 5
"""How often a node is read again when somebody else changed it meanwhile (kubelets write to it all the time)."""

_NODES = msgspec.json.Decoder(wire.Node)
_PODS = msgspec.json.Decoder(wire.Pod)


class KubernetesCluster:
    """Implements ClusterPort. `start` begins to watch; `close` ends it."""

    def __init__(
        self,
        api: ApiServer,
        scheduler_name: str,
        *,
        page_size: int = 1000,
        on_restart: Callable[[str], None] = lambda kind: None,
    ) -> None:
        self.live = LiveView(scheduler_name)
        self._api = api
        self._stopping = Event()
        self._page_size = page_size
        self._watches = [
            Watching(api, resource, self.live, self._stopping, page_size=page_size, on_restart=on_restart)
            for resource in RESOURCES
        ]

    def start(self) -> None:
        """Begin to list and watch every kind, each in a thread of its own."""
        for watch in self._watches:
            watch.start()

    def close(self) -> None:
        """End watching. The threads notice at their next event, and hold up no exit."""
        self._stopping.set()

    def read_once(self) -> None:
        """List every kind once instead of watching; raises what the API server answers."""
        for resource in RESOURCES:
            list_into(self.live, self._api, resource, self._page_size)

    def complaint(self) -> str:
        """Which kinds are not listed yet, and why."""
        failing = [f"{watch.resource.kind}: {watch.error}" for watch in self._watches if watch.error]
        what = f"not synced yet: {', '.join(self.live.missing)}"
        if len(failing) > MOST_TOLD:
            failing[MOST_TOLD:] = [f"and {len(failing) - MOST_TOLD} more"]
        return f"{what} ({'; '.join(failing)})" if failing else what

    # The port.

    def observe(self) -> ClusterView:
        if self.live.missing:
            raise TransientError(self.complaint())
        for watch in self._watches:
            if watch.failing_since is not None and monotonic() - watch.failing_since > STALE_S:
                silent_s = monotonic() - watch.failing_since
                raise TransientError(f"{watch.resource.kind} not watched for {silent_s:.0f} s: {watch.error}")
        return self.live.view()

    def changes(self) -> int:
        return self.live.changes

    def on_change(self, wake: Callable[[], None]) -> None:
        self.live.on_change = wake

    def bind(self, pod: Pod, node: str, deletion_cost: int | None = None) -> None:
        if self.live.node(node) is None:  # the API server would bind to a node that is not there
            raise NotFoundError(f"node {node} is gone")
        self._have_volumes_made(pod, node)
        annotations = {} if deletion_cost is None else {"annotations": {DELETION_COST: str(deletion_cost)}}
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "uid": pod.uid, **annotations},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            self._api.post(f"{_pod_path(pod)}/binding", body)
        except ConflictError:
            # Bound already, perhaps by ourselves: an answer that got lost on its way.
            if _PODS.decode(self._api.get(_pod_path(pod))).spec.node_name != node:
                raise

    def _have_volumes_made(self, pod: Pod, node: str) -> None:
        """Tell provisioners for which node a pod's volumes are meant, as kube-scheduler does before it binds.

        Without that nobody makes a volume of a class that waits for its first consumer.
        """
        unbound = self.live.unbound(pod)
        for claim in unbound:
            if claim.selected_node == node:
                continue
            path = f"/api/v1/namespaces/{part(claim.namespace)}/persistentvolumeclaims/{part(claim.name)}"
            self._api.patch(path, {"metadata": {"annotations": {SELECTED_NODE: node}}}, MERGE_PATCH)
        if unbound:
            names = ", ".join(sorted(claim.name for claim in unbound))
            raise NotYetError(f"volumes are being made for node {node}: {names}")

    def evict(self, pod: Pod, grace_s: float | None = None) -> None:
        grace = {} if grace_s is None else {"gracePeriodSeconds": int(grace_s)}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}, **grace},
        }
        try:
            self._api.post(f"{_pod_path(pod)}/eviction", body)
        except NotFoundError:
            return
        except ConflictError:
            # Another pod bears this name by now: ours is gone. Anything else is a conflict in earnest.
            if self._uid(pod) == pod.uid:
                raise

    def nominate(self, pod: Pod, node: str | None) -> None:
        self._patch_status(pod, {"nominatedNodeName": node}, MERGE_PATCH)

    def preempt(self, pod: Pod, message: str) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": message,
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        try:
            # First the condition: Job controllers look at it to tell preemption from failure.
            self._patch_status(pod, {"conditions": [condition]}, STRATEGIC_PATCH)
            self._api.delete(_pod_path(pod), {"preconditions": {"uid": pod.uid}})
        except NotFoundError:
            return
        except ConflictError:
            if self._uid(pod) == pod.uid:
                raise

    def _patch_status(self, pod: Pod, status: dict[str, object], form: str) -> None:
        """Change a pod's status; NotFoundError if it is gone, also where another one bears its name by now."""
        try:
            self._api.patch(f"{_pod_path(pod)}/status", {"metadata": {"uid": pod.uid}, "status": status}, form)
        except NotFoundError:
            raise
        except PermanentError as error:  # a uid that is not the object's is "immutable" to the API server
            if self._uid(pod) == pod.uid:
                raise
            raise NotFoundError(f"pod {pod.key} is gone, another one bears its name") from error

    def _uid(self, pod: Pod) -> str:
        try:
            return _PODS.decode(self._api.get(_pod_path(pod))).metadata.uid
        except NotFoundError:
            return ""

    def set_draining(self, node: str, draining: bool) -> None:
        self._change(node, partial(_draining_change, draining=draining))

    def set_up_node(self, node: str, labels: Mapping[str, str], taints: Sequence[Taint] = ()) -> None:
        self._change(node, partial(_setting_up, labels=labels, taints=taints))

    def disown_node(self, node: str) -> None:
        with suppress(NotFoundError):
            self._change(node, _disowning)

    @retry_on_conflict(CONFLICTS)
    def _change(self, node: str, change_of: Callable[[dict[str, object]], dict[str, object] | None]) -> None:
        """Read, change and write with the version that was read: others' taints are never lost."""
        change = change_of(msgspec.json.decode(self._api.get(_node_path(node))))
        if change is not None:
            self._api.patch(_node_path(node), change, MERGE_PATCH)

    def delete_node(self, node: str) -> None:
        known = self.live.node(node)
        precondition = {"preconditions": {"uid": known.uid}} if known is not None and known.uid else None
        try:
            self._api.delete(_node_path(node), precondition)
        except NotFoundError:
            return


def _draining_change(found: dict[str, object], draining: bool) -> dict[str, object] | None:
    """The merge patch that cordons and taints a node, or undoes both; None: it is so already."""
    spec = found.get("spec") or {}
    assert isinstance(spec, dict)
    taint = {"key": DRAINING_TAINT.key, "effect": DRAINING_TAINT.effect.value}
    taints = [each for each in spec.get("taints") or () if (each["key"], each["effect"]) != tuple(taint.values())]
    if draining:
        taints.append(taint)
    if bool(spec.get("unschedulable")) == draining and len(taints) == len(spec.get("taints") or ()):
        return None
    return {"metadata": _as_read(found), "spec": {"unschedulable": draining or None, "taints": taints or None}}


def _setting_up(
    found: dict[str, object], labels: Mapping[str, str], taints: Sequence[Taint]
) -> dict[str, object] | None:
    """The merge patch that adds labels and taints; None: they are there already."""
    spec, metadata = found.get("spec") or {}, found["metadata"]
    assert isinstance(spec, dict)
    assert isinstance(metadata, dict)
    has = metadata.get("labels") or {}
    borne = list(spec.get("taints") or ())
    there = {(each["key"], each["effect"]) for each in borne}
    new = [taint_manifest(taint) for taint in taints if (taint.key, taint.effect.value) not in there]
    missing = {key: value for key, value in labels.items() if has.get(key) != value}
    if not missing and not new:
        return None
    return {
        "metadata": {**_as_read(found), "labels": missing},
        **({"spec": {"taints": borne + new}} if new else {}),
    }


def _disowning(found: dict[str, object]) -> dict[str, object] | None:
    """The merge patch that takes our labels off; None: there are none."""
    metadata = found["metadata"]
    assert isinstance(metadata, dict)
    ours = {label: None for label in OWN_LABELS if label in (metadata.get("labels") or {})}
    return {"metadata": {**_as_read(found), "labels": ours}} if ours else None


def taint_manifest(taint: Taint) -> dict[str, str]:
    """A taint as the API has it; one without a value has no such field."""
    return {"key": taint.key, "effect": taint.effect.value, **({"value": taint.value} if taint.value else {})}


def _as_read(found: dict[str, object]) -> dict[str, object]:
    """The metadata of a patch that must find the object as it was read."""
    metadata = found["metadata"]
    assert isinstance(metadata, dict)
    return {"resourceVersion": metadata["resourceVersion"], "uid": metadata["uid"]}


def _pod_path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{part(pod.namespace)}/pods/{part(pod.name)}"


def _node_path(node: str) -> str:
    return f"/api/v1/nodes/{part(node)}"
