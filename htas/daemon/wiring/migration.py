"""Which methods move pods, and the engine that carries each: those that groups ask for, and KWOK's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Semaphore

from htas.adapters.kubernetes.access import Access
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.migration.copying.registry_copies import RegistryCopies
from htas.adapters.migration.copying.scp import SecureCopies
from htas.adapters.migration.documents import Json
from htas.adapters.migration.engine import MigrationEngine, MovesByMethod
from htas.adapters.migration.method import Method
from htas.adapters.migration.methods.command import CommandMethod
from htas.adapters.migration.methods.kubelet_checkpoint import Copies, KubeletCheckpoint, Kubelets
from htas.adapters.migration.methods.replace import Replacing
from htas.adapters.migration.methods.simulated import Simulated, SimulatedObjects
from htas.adapters.migration.objects import Objects, at_once_s
from htas.config.kwok import KwokSetting
from htas.config.loader import Loaded
from htas.execution.crash_points import reached
from htas.model.migrations import MigrationSettings, Transfer
from htas.model.moves import MigrationMethod
from htas.model.nodes import Node
from htas.model.policy import Policy

USUAL_GRACE_S = 30
"""Kubernetes' own default."""


def moves_by_method(loaded: Loaded, access: Access, api: ApiServer, live: LiveView) -> MovesByMethod:
    """The methods that groups name or that are set up; on nodes that KWOK plays, its own."""
    policy, objects = loaded.policy, Objects(api)
    makers: dict[MigrationMethod, Callable[[], Method]] = {
        MigrationMethod.KUBELET_CHECKPOINT: partial(kubelet_checkpoint, policy.migration, access, objects),
        MigrationMethod.COMMAND: lambda: CommandMethod(policy.migration.commands, objects.address),
        MigrationMethod.REPLACE: lambda: Replacing(objects),
    }
    named = {group.cleaning.migration for group in policy.groups} | set_up(policy.migration)
    at_once = Semaphore(policy.migration.at_once)
    engine = partial(MigrationEngine, settings=policy.migration, reached=reached, at_once=at_once)
    engines = {
        method: engine(
            objects,
            make(),
            sweepable=partial(_nodes_of, policy, live, method),
            grace=partial(grace_s, policy, live.node) if method is MigrationMethod.REPLACE else at_once_s,
        )
        for method, make in makers.items()
        if method in named
    }
    if isinstance(loaded.provider, KwokSetting):
        simulated = SimulatedObjects(api)
        method = Simulated(simulated, bandwidth_bytes_per_s=loaded.provider.move_bandwidth)
        engines[MigrationMethod.CHECKPOINT] = engine(simulated, method)
    return MovesByMethod(engines, objects)


def set_up(settings: MigrationSettings) -> set[MigrationMethod]:
    """Methods that have their keys, or their commands, whether a group names them or not.

    Going back to evict thus ends no move in its middle, for as long as the keys are left in place.
    """
    found = set()
    if settings.secure_copy.identity_file or settings.registry.agent_token_file:
        found.add(MigrationMethod.KUBELET_CHECKPOINT)
    if settings.commands.checkpoint:
        found.add(MigrationMethod.COMMAND)
    return found


def kubelet_checkpoint(settings: MigrationSettings, access: Access, objects: Objects) -> KubeletCheckpoint:
    """The method, with the transfer that is configured. By ssh a kubelet's own certificate can be read and trusted."""
    copies: Copies
    own = None
    if settings.transfer is Transfer.SCP:
        copies = by_ssh = SecureCopies(settings.secure_copy, objects.address)
        own = by_ssh.certificate if not settings.kubelet_ca_file else None
    else:
        copies = RegistryCopies(settings.registry, objects.address)
    trusted = Path(settings.kubelet_ca_file) if settings.kubelet_ca_file else access.ca_file
    return KubeletCheckpoint(objects, Kubelets(access, settings.kubelet_port, trusted, own), copies)


def grace_s(policy: Policy, node_of: Callable[[str], Node | None], pod: Json) -> int:
    """What a pod that serves until it ends is given: as an evicted one, its own, but no more than its group allows."""
    node = node_of(pod["spec"].get("nodeName", ""))
    group = policy.group(node.group if node is not None else None)
    own_s: int = pod["spec"].get("terminationGracePeriodSeconds", USUAL_GRACE_S)
    return own_s if group is None else min(own_s, int(group.cleaning.max_grace_s))


def _nodes_of(policy: Policy, live: LiveView, method: MigrationMethod) -> Sequence[str]:
    """Ready nodes of ours whose group is cleaned by a method."""
    groups = {group.name for group in policy.groups if group.cleaning.migration is method}
    return [
        node.name
        for node in live.view().nodes
        if node.is_ready and node.cluster == policy.cluster and node.group in groups
    ]
