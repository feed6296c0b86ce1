"""The migration method: a pod leaves its node by that of its group where nothing speaks against it, else by eviction.

The same rule for what the optimiser decides, for each step of carrying it out, and for whether a pod without a
controller may be moved at all: evicted, nobody would start it again. Who carries each method is wired in
htas/daemon/migration_wiring.py; what keeps a pod from being moved by one is in movability.py.
"""

from __future__ import annotations

from htas.model.moves import MigrationMethod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterView
from htas.planning.eligibility.drain_rules.rule import NO_VOLUMES
from htas.planning.eligibility.movability import VolumeBook, refusal, source_refusal, target_refusal


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
