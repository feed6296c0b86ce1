"""The gate before every delete: no machine is deleted while pods run on its node. They leave by a drain first.

It reads the cluster right before each delete: a pod that tolerates everything binds to a closed node, also between two
deletes of one cycle. On a real cluster that is the live view, and no call. Where the cluster cannot be read, nothing is
deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from htas.execution.identity import nodes_of_machine
from htas.execution.ports import Ports
from htas.model.claims import ClaimState, Instance, NodeClaim
from htas.model.nodes import Node
from htas.model.policy import Timeouts
from htas.model.snapshot import ClusterView
from htas.planning.cluster.ending import must_leave
from htas.planning.eligibility.drain_rules import cannot_be_read

_NOT_READY = frozenset({ClaimState.REGISTERED, ClaimState.FAILED})
"""States whose beginning tells since when a node has been silent, to a daemon that has just started."""


@dataclass(slots=True)
class DeletionGate:
    """`look` notes what a cycle has seen; `why_not` may be asked from any thread."""

    ports: Ports
    timeouts: Timeouts
    _silent_since: Mapping[str, float] = field(default_factory=dict)
    """By node since when its kubelet has been silent (not Ready)."""
    _ready: frozenset[str] = frozenset()
    """Nodes that were Ready when they were last looked at: whatever the journal says, these were not silent."""
    _known: Mapping[str, str] = field(default_factory=dict)
    """The claim of each machine that the cloud or the journal knows; empty where it has none."""

    def look(self, nodes: Iterable[Node], claims: Iterable[NodeClaim], instances: Iterable[Instance]) -> None:
        """Note which nodes are silent, and which machines there are."""
        now, claims, nodes = self.ports.clock.now(), list(claims), list(nodes)
        waited = {claim.node: claim.since for claim in claims if claim.state in _NOT_READY}
        self._silent_since = {
            node.name: min(self._silent_since.get(node.name, now), waited.get(node.name, now), now)
            if node.name not in self._ready
            else now
            for node in nodes
            if not node.is_ready
        }
        self._ready = frozenset(node.name for node in nodes if node.is_ready)
        known = {instance.id: instance.claim or "" for instance in instances}
        self._known = known | {claim.instance: claim.id for claim in claims if claim.instance is not None}

    def why_not(self, instance: str, claim: str, node: str | None) -> str | None:
        """What runs on a machine, in words; None: nothing. Raises what the cluster raises where it cannot be read."""
        return self.runs_on(self.ports.cluster.observe(), instance, claim, node)

    def runs_on(self, view: ClusterView, instance: str, claim: str, node: str | None) -> str | None:
        """The same of one view of the cluster. A node that has been silent for `timeouts.ready` runs nothing."""
        return self.on_nodes(view, nodes_of_machine(view.nodes, instance, claim, node, self._known))

    def on_nodes(self, view: ClusterView, nodes: Sequence[Node]) -> str | None:
        """What runs on one of some nodes."""
        now = self.ports.clock.now()
        names = {node.name for node in nodes if node.is_ready or not self._is_lost(node, now)}
        if not names:
            return None
        running = next((pod for pod in view.pods if pod.node in names and must_leave(pod, now)), None)
        if running is not None:
            return f"pod {running.key} runs on its node {running.node}"
        unread = next((name for name in sorted(names) if name in view.unread), None)
        return f"node {unread}: {cannot_be_read(view.unread[unread])}" if unread is not None else None

    def _is_lost(self, node: Node, now: float) -> bool:
        return now - self._silent_since.get(node.name, now) >= self.timeouts.ready_s
