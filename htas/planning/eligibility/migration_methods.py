"""The migration method: a pod leaves its node by that of its group where nothing speaks against it, else by eviction.

The same rule for what the optimiser decides, for each step of carrying it out, and for whether a pod without a
controller may be moved at all: evicted, nobody would start it again. Who carries each method is wired in
htas/daemon/wiring/migration.py. What cannot be moved so that its twin runs before it ends is told before anything is
touched, as far as it is known; sources: what CRIU and the kubelet were seen to refuse or to lose without a word
(docs/migration.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from htas.model.migrations import TAKE_A_TWIN, MigrationSettings, Refusal, can_checkpoint, can_restore
from htas.model.moves import MigrationMethod
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.pods import MAY_MIGRATE, SHARED_VOLUMES, Pod, WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterView
from htas.model.volumes import PersistentVolume, VolumeClaim, Volumes
from htas.planning.cluster.run_length import may_begin_again

SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
KEEP_FROM_STARTING = frozenset(
    {Refusal.READ_WRITE_ONCE, Refusal.LOCAL_VOLUME, Refusal.READINESS_GATE, Refusal.RESOURCE_CLAIM}
)
"""Obstacles to a fresh copy beside the source, too. The others are about checkpoints: a GPU, say, starts anew."""

WORDS = {
    Refusal.SIDECAR: "it has a restartable init container",
    Refusal.EMPTY_DIR: "its emptyDir would be empty at the target",
    Refusal.HOST_PATH: "it uses a path of its node",
    Refusal.READ_WRITE_ONCE: "its ephemeral volume is bound to its name",
    Refusal.LOCAL_VOLUME: "it has a volume of a kind that was never tested",
    Refusal.DEVICE: "it uses a device, whose state cannot be dumped",
    Refusal.RESOURCE_CLAIM: "it claims a device (resourceClaims), which the scheduler would allocate",
    Refusal.HOST_NAMESPACE: "it shares a namespace of its node",
    Refusal.READINESS_GATE: "another controller sets its readiness gates, and does not see a twin",
}
"""Of the refusals that a pod's manifest is enough for."""


@dataclass(frozen=True, slots=True)
class VolumeBook:
    """Claims by key and volumes by name."""

    claims: Mapping[str, VolumeClaim] = field(default_factory=dict)
    persistent: Mapping[str, PersistentVolume] = field(default_factory=dict)

    @classmethod
    def of(cls, volumes: Volumes) -> VolumeBook:
        return cls({each.key: each for each in volumes.claims}, {each.name: each for each in volumes.persistent})


NO_VOLUMES = VolumeBook()


def method_for(pod: Pod, method: MigrationMethod) -> MigrationMethod:
    """How a group that moves pods by a method has this one moved: batch work of one that replaces is evicted.

    A copy would begin it again beside itself; evicted, it at least runs once at a time, and the rules ask what is lost.
    """
    is_batch = pod.kind is WorkKind.BATCH
    return MigrationMethod.EVICT if method is MigrationMethod.REPLACE and is_batch else method


def refusal(
    pod: Pod, method: MigrationMethod, settings: MigrationSettings, volumes: VolumeBook
) -> tuple[Refusal, str] | None:
    """Why no twin can take a pod's place by a method, and in words; None: nothing speaks against it.

    Simulated nodes (method `checkpoint`) lose nothing but the name.
    """
    owner = pod.owner.kind if pod.owner is not None else None
    if pod.disruption.get(MAY_MIGRATE) == "false":
        return Refusal.OPTED_OUT, f'it opted out with {MAY_MIGRATE}="false"'
    if owner == "StatefulSet":
        return Refusal.KEEPS_ITS_NAME, "a StatefulSet's pod must keep its name"
    if method is MigrationMethod.CHECKPOINT:
        return None
    if owner is not None and owner not in TAKE_A_TWIN:
        return Refusal.OWNER_UNKNOWN, f"a {owner} is not known to take another pod for its own"
    is_fresh = method is MigrationMethod.REPLACE
    if is_fresh and pod.kind is WorkKind.BATCH:
        return Refusal.BEGINS_AGAIN, "batch work would begin again; it is evicted, or moved by a checkpoint"
    if pod.containers > 1 and not settings.several_containers and not is_fresh:
        return (
            Refusal.SEVERAL_CONTAINERS,
            "its containers cannot be dumped at one instant (migration.severalContainers)",
        )
    for reason in pod.obstacles:
        if reason in KEEP_FROM_STARTING or not is_fresh:
            return reason, WORDS[reason]
    return _of_volumes(pod, volumes, is_fresh=is_fresh)


def _of_volumes(pod: Pod, volumes: VolumeBook, *, is_fresh: bool) -> tuple[Refusal, str] | None:
    """A fresh copy may write to a shared volume beside its source, as replicas do: it repeats nothing."""
    for name in pod.constraints.claims:
        claim = volumes.claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            return Refusal.READ_WRITE_ONCE, f"its claim {name} is not known"
        if not SHARED & set(claim.access_modes):
            return Refusal.READ_WRITE_ONCE, f"its volume {name} can be attached to one node at a time"
        is_read = set(claim.access_modes) == {"ReadOnlyMany"} or name in pod.only_read
        if not is_read and not is_fresh and pod.disruption.get(SHARED_VOLUMES) != "true":
            what = f"it writes to the shared volume {name} until its twin runs, which writes the same again"
            return Refusal.SHARED_VOLUME, f'{what} (fine for you: {SHARED_VOLUMES}="true")'
        volume = volumes.persistent.get(claim.volume or "")
        if volume is not None and _is_local(volume):
            return Refusal.LOCAL_VOLUME, f"its volume {name} is on its node"
    return None


def _is_local(volume: PersistentVolume) -> bool:
    terms = volume.node_affinity or ()
    return any(each.key == HOSTNAME_LABEL for term in terms for each in term.expressions)


def begins_on_a_guess(pod: Pod, method: MigrationMethod, policy: Policy, now: float) -> str | None:
    """Why a pod that would begin again is not worth moving, for people: nobody knows how long it runs.

    None: it keeps its progress in a group that moves pods so, has none, or its end is known well enough.
    """
    if pod.started_at is None or method_for(pod, method).keeps_progress or may_begin_again(pod, policy, now):
        return None
    return f"{pod.key} has run for {now - pod.started_at:.0f} s and would begin again; how long it runs is not known"


def source_refusal(node: Node, method: MigrationMethod) -> tuple[Refusal, str] | None:
    """Why nothing can be moved away from a node; None: it can."""
    if method is not MigrationMethod.KUBELET_CHECKPOINT or can_checkpoint(node.runtime):
        return None
    return Refusal.SOURCE_CANNOT_CHECKPOINT, f"{node.runtime or 'its runtime'} does not checkpoint"


def target_refusal(node: Node, method: MigrationMethod) -> tuple[Refusal, str] | None:
    """Why nothing can be moved to a node; None: it can."""
    if not node.takes_pods:
        return Refusal.TARGET_NOT_READY, f"node {node.name} is not Ready, or cordoned"
    if method is not MigrationMethod.KUBELET_CHECKPOINT or can_restore(node.runtime):
        return None
    what = node.runtime or "the runtime"
    return Refusal.TARGET_CANNOT_RESTORE, f"{what} of node {node.name} does not restore (containerd 2.2 and 2.3 do)"


class MigrationMethods:
    """By which methods the pods of a cluster can leave their nodes now."""

    def __init__(self, view: ClusterView, policy: Policy) -> None:
        self._nodes = {node.name: node for node in view.nodes}
        self._methods = {group.name: group.cleaning.migration for group in policy.groups}
        self._settings = policy.migration
        has_twins = any(method.makes_twin for method in self._methods.values())
        self._volumes = VolumeBook.of(view.volumes) if has_twins else NO_VOLUMES

    def method(self, pod: Pod, target: str | None = None) -> MigrationMethod:
        """That of its node's group if nothing speaks against it, else eviction; `target` None: not chosen yet."""
        source = self._nodes.get(pod.node or "")
        group = source.group if source is not None else None
        return self.possible(pod, self._methods.get(group or "", MigrationMethod.EVICT), target)

    def possible(self, pod: Pod, method: MigrationMethod, target: str | None = None) -> MigrationMethod:
        """A method if pod, source and target allow it, else eviction."""
        source, there = self._nodes.get(pod.node or ""), self._nodes.get(target or "")
        if source is None or not method.makes_twin:
            return MigrationMethod.EVICT
        refused = (
            refusal(pod, method, self._settings, self._volumes)
            or source_refusal(source, method)
            or (target_refusal(there, method) if there is not None else None)
        )
        return method if refused is None else MigrationMethod.EVICT

    def wanted(self, pod: Pod) -> MigrationMethod | None:
        """For a pod that somebody wants moved without saying how; None: there is no one method.

        Its group's; where its node is of no group, the only one that any group has.
        """
        source = self._nodes.get(pod.node or "")
        group = source.group if source is not None else None
        methods = [self._methods[group]] if group in self._methods else self._methods.values()
        with_twin = {method for method in methods if method.makes_twin}
        return with_twin.pop() if len(with_twin) == 1 else None

    def arrives(self, pod: Pod, target: str) -> bool:
        """Whether the pod, or one that its controller makes instead, comes to run at the target."""
        return pod.owner is not None or self.method(pod, target).makes_twin
