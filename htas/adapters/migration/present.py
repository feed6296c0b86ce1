"""What is there of a move at this moment: its source, its twin and how that is doing, and their nodes; what forbids it.

A pod that cannot be moved, or would lose something without a word, is seen on the documents before anything is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from htas.adapters.migration.documents import (
    Json,
    is_ending,
    is_ready,
    is_twin_of,
    owner_kind,
    stands_for,
    starts_afresh,
    statuses,
    twin_name_of,
)
from htas.adapters.migration.method import StepFailedError, shortened
from htas.adapters.migration.objects import Objects, TakenOverError
from htas.model.migrations import (
    TAKE_A_TWIN,
    Failure,
    MigrationRecord,
    MigrationSettings,
    Refusal,
    can_checkpoint,
    can_restore,
)
from htas.model.moves import MigrationMethod
from htas.model.pods import SAFE_LOCAL_VOLUMES
from htas.ports import MoveRefusedError


class PresentObjects:
    """Looks anew each time it is asked; raises what the API server answers."""

    def __init__(self, objects: Objects, settings: MigrationSettings) -> None:
        self._objects = objects
        self._settings = settings

    def source_or_none(self, record: MigrationRecord) -> Json | None:
        return source_of(self._objects, record)

    def running_source(self, record: MigrationRecord) -> Json:
        found = self.source_or_none(record)
        if found is None or is_ending(found):
            raise StepFailedError(Failure.SOURCE_ENDED, f"pod {record.pod} ended or was deleted", is_final=True)
        return found

    def movable_source(self, record: MigrationRecord) -> Json:
        """Looked at once more before a twin is made of it: somebody may have changed it, or written its journal."""
        source = self.running_source(record)
        try:
            check_pod(source, self._settings, record.method)
        except MoveRefusedError as error:
            is_final = error.reason is not Refusal.NOT_RUNNING
            raise StepFailedError(Failure.REFUSED, str(error), is_final=is_final) from error
        return source

    def twin(self, record: MigrationRecord) -> Json | None:
        """The twin of the present attempt, also where the journal does not know of it yet."""
        found = self._objects.pod(record.pod.partition("/")[0], twin_name_of(record))
        return found if found is not None and is_twin_of(found, record) else None

    def twin_of_the_move(self, record: MigrationRecord) -> Json | None:
        """Only such a twin may be deleted. Raises TakenOverError for one that is a pod like any other by now."""
        twin = self.twin(record)
        if twin is not None and not stands_for(twin, record):
            raise TakenOverError(f"pod {twin['metadata']['name']} is no twin any more")
        return twin

    def check_source_node(self, record: MigrationRecord, *, may_be_gone: bool = False) -> None:
        """A switch may go on without the node, when the twin is all that is left; not while nobody knows."""
        node = self._objects.node(record.source)
        if node is None and not may_be_gone:
            raise StepFailedError(Failure.SOURCE_LOST, f"node {record.source} is gone", is_final=True)
        if node is not None and not is_ready(node):
            raise StepFailedError(Failure.SOURCE_LOST, f"node {record.source} is not Ready")

    def check_target(self, record: MigrationRecord, *, may_be_unready: bool = False) -> None:
        """A node that is not Ready may be so again before a deadline; one that is gone does not come back."""
        node = self._objects.node(record.target)
        if node is None:
            raise StepFailedError(Failure.TARGET_LOST, f"node {record.target} is gone", is_final=True)
        if not may_be_unready and (why := unready(node)):
            raise StepFailedError(Failure.TARGET_LOST, why)


# How a twin is doing, by what the kubelet says of its containers; one that was started afresh, by its Ready condition.
#
# Never by its phase: that says Running also where every restore has failed and is tried again.

WAITING_WELL = frozenset({"", "ContainerCreating", "PodInitializing"})


def check_target(objects: Objects, record: MigrationRecord) -> None:
    """Raises StepFailedError where the node that a pod moves to is gone, or does not answer."""
    node = objects.node(record.target)
    if node is None or not is_ready(node):
        what = f"node {record.target} is {'gone' if node is None else 'not Ready'}"
        raise StepFailedError(Failure.TARGET_LOST, what)


def source_of(objects: Objects, record: MigrationRecord) -> Json | None:
    """The pod that is moved, unless it is gone; another one may bear its name by now."""
    namespace, _, name = record.pod.partition("/")
    found = objects.pod(namespace, name)
    return found if found is not None and found["metadata"]["uid"] == record.uid else None


def has_come_up(record: MigrationRecord, twin: Json, source: Json) -> bool:
    """Whether a twin can take its source's place; raises StepFailedError where that will not happen any more."""
    return _is_started(twin) if starts_afresh(record) else is_restored(twin, source)


def late(record: MigrationRecord, twin: Json, within_s: float) -> str:
    """What is told of a twin that was given enough time: of a fresh copy, what its containers wait for, too."""
    if not starts_afresh(record):
        return f"did not run within {within_s:.0f} s"
    told = twin.get("status", {})
    said = [*(told.get("initContainerStatuses") or ()), *(told.get("containerStatuses") or ())]
    waiting = ((each["name"], (each.get("state") or {}).get("waiting")) for each in said)
    why = "".join(f"; {name}: {_told(state)}" for name, state in waiting if state)
    return shortened(f"was not Ready within {within_s:.0f} s{why}")


def _is_started(twin: Json) -> bool:
    """A container that ends or waits is started again by its kubelet, as any pod's is: there is a deadline for that."""
    told = twin.get("status", {})
    if told.get("phase") in ("Failed", "Succeeded"):
        what = f"it ended as {told['phase']} ({told.get('reason', '')}: {told.get('message', '')})"
        raise StepFailedError(Failure.RESTORE_FAILED, shortened(what))
    if twin["metadata"].get("deletionTimestamp"):
        raise StepFailedError(Failure.RESTORE_FAILED, "the new pod was deleted")
    return is_ready(twin)


def is_restored(twin: Json, source: Json) -> bool:
    """Whether every container runs, or ran on to its end, and the twin is as ready as its source is.

    Raises StepFailedError where that will not happen any more.
    """
    told = twin.get("status", {})
    if told.get("phase") == "Failed" and not told.get("containerStatuses"):
        raise StepFailedError(Failure.RESTORE_FAILED, shortened(f"{told.get('reason')}: {told.get('message')}"))
    if twin["metadata"].get("deletionTimestamp"):
        raise StepFailedError(Failure.RESTORE_FAILED, "the restored pod was deleted")
    runs = [_runs(status) for status in statuses(twin)]
    return all(runs) and (is_ready(twin) or not is_ready(source) or told.get("phase") == "Succeeded")


def _runs(status: Mapping[str, Any]) -> bool:
    state: Mapping[str, Any] = status.get("state") or {}
    if "terminated" in state:
        if state["terminated"].get("exitCode") == 0:
            return True  # it was near its end
        raise StepFailedError(Failure.RESTORE_FAILED, _told(state["terminated"]))
    waiting = state.get("waiting") or {}
    if waiting.get("reason", "") not in WAITING_WELL:
        raise StepFailedError(Failure.RESTORE_FAILED, _told(waiting))
    return "running" in state


def _told(state: Mapping[str, Any]) -> str:
    return shortened(f"{state.get('reason', 'ended')}: {state.get('message') or state.get('exitCode', '')}")


# What cannot be moved, or would lose something without a word.

PLAIN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "hugepages-")
MOVABLE_VOLUMES = frozenset({"configMap", "secret", "projected", "downwardAPI", "persistentVolumeClaim"})
"""Their files are the same on every node; a claim's access modes are judged before a move is begun."""

STARTED_ANEW = frozenset({Refusal.EMPTY_DIR, Refusal.HOST_PATH})
"""What a fresh copy has a new one of, as any new pod has. Whether it may be lost is the cleaner's to judge, as of an
eviction."""


def check_pod(pod: Json, settings: MigrationSettings, method: MigrationMethod) -> None:
    """Raises MoveRefusedError for a pod that is not moved as it is."""
    key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for reason, what in _objections(pod, settings, method):
        raise MoveRefusedError(reason, f"pod {key} {what}")


def check_nodes(source: Json, target: Json, method: MigrationMethod) -> None:
    """Raises MoveRefusedError where the runtimes of two nodes, or the target's state, do not allow a move."""
    if method is MigrationMethod.KUBELET_CHECKPOINT:
        runtimes = [node["status"]["nodeInfo"]["containerRuntimeVersion"] for node in (source, target)]
        if not can_checkpoint(runtimes[0]):
            what = f"{source['metadata']['name']} runs {runtimes[0]}"
            raise MoveRefusedError(Refusal.SOURCE_CANNOT_CHECKPOINT, what)
        if not can_restore(runtimes[1]):
            what = f"{target['metadata']['name']} runs {runtimes[1]}"
            raise MoveRefusedError(Refusal.TARGET_CANNOT_RESTORE, what)
    if why := unready(target):
        raise MoveRefusedError(Refusal.TARGET_NOT_READY, why)


def unready(node: Json) -> str:
    """Why a node takes no pods now; empty: it does."""
    name = node["metadata"]["name"]
    if not is_ready(node):
        return f"node {name} is not Ready"
    return f"node {name} is cordoned" if node["spec"].get("unschedulable") else ""


def _objections(pod: Json, settings: MigrationSettings, method: MigrationMethod) -> Iterator[tuple[Refusal, str]]:
    yield from _to_any_move(pod)
    if method is MigrationMethod.CHECKPOINT:  # a simulated pod has nothing to lose but its name
        return
    yield from _to_a_twin(pod)
    if method is MigrationMethod.REPLACE:
        yield from _to_a_fresh_copy(pod)
    else:
        yield from _to_a_checkpoint(pod, settings)


def _to_any_move(pod: Json) -> Iterator[tuple[Refusal, str]]:
    if pod["metadata"].get("deletionTimestamp") or not all("running" in (s.get("state") or {}) for s in statuses(pod)):
        yield Refusal.NOT_RUNNING, "does not run, or not for long"
    if owner_kind(pod) == "StatefulSet":
        yield Refusal.KEEPS_ITS_NAME, "must keep its name, which a twin cannot have"


def _to_a_twin(pod: Json) -> Iterator[tuple[Refusal, str]]:
    if (kind := owner_kind(pod)) and kind not in TAKE_A_TWIN:
        yield Refusal.OWNER_UNKNOWN, f"belongs to a {kind}"
    if pod["spec"].get("readinessGates"):
        yield Refusal.READINESS_GATE, "has a readiness gate, which whoever sets it does not set on a twin"
    if pod["spec"].get("resourceClaims"):
        yield Refusal.RESOURCE_CLAIM, "claims a device, which the scheduler would allocate"


def _to_a_fresh_copy(pod: Json) -> Iterator[tuple[Refusal, str]]:
    """Claims' access modes are judged before a move is begun; the scheduler, which a twin does not meet, would do the
    rest for a new pod's volumes and devices.
    """
    spec = pod["spec"]
    if owner_kind(pod) == "Job" or spec.get("restartPolicy", "Always") != "Always":
        yield Refusal.BEGINS_AGAIN, "runs to an end, and a fresh copy would begin its work again"
    for reason, what in _lost_with_its_node(pod):
        if reason not in STARTED_ANEW:
            yield reason, what


def _to_a_checkpoint(pod: Json, settings: MigrationSettings) -> Iterator[tuple[Refusal, str]]:
    spec = pod["spec"]
    if len(spec["containers"]) > 1 and not settings.several_containers:
        yield Refusal.SEVERAL_CONTAINERS, "has several containers, which are not checkpointed at one instant"
    if any(each.get("restartPolicy") == "Always" for each in spec.get("initContainers") or ()):
        yield Refusal.SIDECAR, "has an init container that runs on"
    if any(spec.get(each) for each in ("hostNetwork", "hostPID", "hostIPC")):
        yield Refusal.HOST_NAMESPACE, "shares a namespace with its node"
    for container in spec["containers"]:
        if container.get("volumeDevices") or any(
            map(_is_device, (container.get("resources") or {}).get("limits") or {})
        ):
            yield Refusal.DEVICE, f"has a device (container {container['name']})"
    yield from _lost_with_its_node(pod)


def _lost_with_its_node(pod: Json) -> Iterator[tuple[Refusal, str]]:
    annotations = pod["metadata"].get("annotations") or {}
    exempt = {name.strip() for name in annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")}
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] not in exempt:
            yield from _lost_with(volume)


def _is_device(resource: str) -> bool:
    return not resource.startswith(PLAIN_RESOURCES)


def _lost_with(volume: dict[str, Any]) -> Iterator[tuple[Refusal, str]]:
    for form in volume:
        if form == "name" or form in MOVABLE_VOLUMES:
            continue
        match form:
            case "emptyDir":
                yield Refusal.EMPTY_DIR, f"would lose what is in its emptyDir {volume['name']}"
            case "hostPath":
                yield Refusal.HOST_PATH, f"uses a directory of its node (volume {volume['name']})"
            case "ephemeral":
                yield Refusal.READ_WRITE_ONCE, f"has volume {volume['name']}, which is bound to its name"
            case _:
                yield Refusal.LOCAL_VOLUME, f"has a volume of the kind {form} ({volume['name']})"
