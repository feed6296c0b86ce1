"""How pods are moved: by the provider's own means, or by the methods for real nodes that groups ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Semaphore

from htas.adapters.checkpoint.command import CommandMethod
from htas.adapters.checkpoint.documents import Json
from htas.adapters.checkpoint.engine import CheckpointMigration
from htas.adapters.checkpoint.kubelet import Kubelets
from htas.adapters.checkpoint.kubelet_checkpoint import Copies, KubeletCheckpoint
from htas.adapters.checkpoint.methods import Method
from htas.adapters.checkpoint.objects import Objects
from htas.adapters.checkpoint.registry_copies import RegistryCopies
from htas.adapters.checkpoint.removal import at_once_s
from htas.adapters.checkpoint.replacing import Replacing
from htas.adapters.checkpoint.secure_copy import SecureCopies
from htas.adapters.checkpoint.shell import Shell
from htas.adapters.kubernetes.access import Access
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.live import LiveView
from htas.daemon.stranded_moves import set_up, tell_stranded
from htas.execution.crash_points import reached
from htas.model.migrations import ENDED_KEPT, MigrationRecord, MigrationSettings, Refusal, Transfer
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import MigrationMethod, Policy
from htas.model.snapshot import Move
from htas.ports import MigrationPort, MoveRefusedError

USUAL_GRACE_S = 30
"""Kubernetes' own default."""


class MovesByMethod:
    """Implements MigrationPort: each move goes to the one that carries its method."""

    def __init__(
        self, provider: MigrationPort, real: Mapping[MigrationMethod, CheckpointMigration], objects: Objects
    ) -> None:
        self._provider = provider
        self._real = real
        self._objects = objects

    def start(self, pod: Pod, target: str, method: MigrationMethod = MigrationMethod.CHECKPOINT) -> None:
        if method in self._real:
            self._real[method].start(pod, target, method)
        elif method is MigrationMethod.CHECKPOINT:
            self._provider.start(pod, target, method)
        else:
            raise MoveRefusedError(
                Refusal.NOT_CONFIGURED, f"pod {pod.key}: {method} is not set up, and no group moves by it"
            )

    def moving(self) -> Sequence[Move]:
        return [move for port in self._ports for move in port.moving()]

    def records(self) -> Sequence[MigrationRecord]:
        found = [record for port in self._ports for record in port.records()]
        ended = sorted((each for each in found if each.is_over), key=lambda each: each.ended_at or 0.0)
        return [each for each in found if not each.is_over] + ended[-ENDED_KEPT:]

    def run(self) -> None:
        """Carry moves on real nodes: only the daemon that leads does so. Those that none of them carries are told."""
        tell_stranded(self._objects, {*self._real, MigrationMethod.CHECKPOINT})
        for engine in self._real.values():
            engine.run()

    def close(self) -> None:
        for engine in self._real.values():
            engine.close()

    @property
    def _ports(self) -> tuple[MigrationPort, ...]:
        return (self._provider, *self._real.values())


def moves_by_method(
    policy: Policy, access: Access, api: ApiServer, live: LiveView, provider: MigrationPort
) -> MovesByMethod:
    """The methods that the policy's groups name or that are set up, beside the provider's own."""
    makers: dict[MigrationMethod, Callable[[], Method]] = {
        MigrationMethod.KUBELET_CHECKPOINT: partial(kubelet_checkpoint, policy.migration, access, api),
        MigrationMethod.COMMAND: lambda: CommandMethod(policy.migration.commands, Objects(api).address),
        MigrationMethod.REPLACE: lambda: Replacing(Objects(api)),
    }
    at_once = Semaphore(policy.migration.at_once)
    named = {group.cleaning.migration for group in policy.groups} | set_up(policy.migration)
    real = {
        method: CheckpointMigration(
            api,
            make(),
            policy.migration,
            sweepable=partial(_nodes_of, policy, live, method),
            reached=reached,
            at_once=at_once,
            grace=partial(grace_s, policy, live.node) if method is MigrationMethod.REPLACE else at_once_s,
        )
        for method, make in makers.items()
        if method in named
    }
    return MovesByMethod(provider, real, Objects(api))


def kubelet_checkpoint(settings: MigrationSettings, access: Access, api: ApiServer) -> KubeletCheckpoint:
    """The method, with the transfer that is configured. By ssh a kubelet's own certificate can be read and trusted."""
    objects = Objects(api)
    copies: Copies
    own = None
    if settings.transfer is Transfer.SCP:
        copies = by_ssh = SecureCopies(Shell(settings.secure_copy), settings.secure_copy, objects.address)
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
