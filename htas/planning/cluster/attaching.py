"""What a machine will get once it has joined: the labels of kubelet, cloud and CSI drivers, and how many volumes.

A driver labels a node once it runs there (`topology.cinder.csi.openstack.org/zone: az-1`), so a machine that is not
there yet has no such label, and no volume could be reached from it. Which it will get is read from nodes that are
there: of its group, else of its zone. What nobody shows is taken from the configuration (`volumes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from htas.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from htas.model.policy import NodeGroup, Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.volumes import TopologyLabel

AttachLimits = tuple[tuple[str, int], ...]
"""Volumes each CSI driver can attach to a node."""

REGISTERS_WITHIN_S = 120.0
"""So long after a node is Ready its CSI drivers may take to register: their images are pulled, their pods start."""

OS_LABEL = "kubernetes.io/os"
GIVEN_BY_KUBELETS = (
    OS_LABEL,
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
)
"""Labels that nodes are given as they join, by kubelets or the cloud's controllers, and that no group states: were they
taken for missing, a pod that may not be where they are had one machine bought after another."""
MOST_LOOKED_AT = 20
"""Nodes of one group and flavour: the labels of 5,000 would be read for each purchase that is weighed."""
GIVEN_BY_OTHERS = frozenset({ZONE_LABEL, HOSTNAME_LABEL})
"""Topology keys of some drivers that nodes have anyway."""


class Attaching:
    """What is known of drivers in one snapshot."""

    def __init__(self, policy: Policy, snapshot: ClusterSnapshot) -> None:
        self._policy, self._rules = policy, policy.volumes
        self._nodes = snapshot.models or snapshot.cluster.nodes
        self._now = snapshot.taken_at
        self._values: dict[tuple[str, str, str | None], str | None] = {}

    def labels(self, group: NodeGroup, zone: str | None, flavour: str = "") -> dict[str, str]:
        """The labels that others will give to a machine of a group in a zone (None: wherever the cloud puts it)."""
        return {**self._of_kubelets(group.name, flavour), **self._of_drivers(group, zone)}

    def _of_drivers(self, group: NodeGroup, zone: str | None) -> dict[str, str]:
        found = {key: self._value(key, group.name, zone) for key in self._keys}
        return {key: value for key, value in found.items() if value is not None}

    def _of_kubelets(self, group: str, flavour: str) -> Mapping[str, str]:
        """What nodes of its flavour in its group have, else those of its group, else all there are.

        Of a cluster without a node, that it runs Linux. Where they differ nobody knows which it will have.
        """
        if not self._nodes:
            return {OS_LABEL: "linux"}
        found = {}
        for key in GIVEN_BY_KUBELETS:
            shown = (self._given.get((*asked, key)) for asked in ((group, flavour), (group, ""), ("", "")))
            values = next((values for values in shown if values), frozenset[str]())
            if len(values) == 1:
                (found[key],) = values
        return found

    @cached_property
    def _given(self) -> Mapping[tuple[str, str, str], set[str]]:
        """Values by group, flavour and label, of a few Ready nodes of each; by group, and of all, too.

        A node that lacks a label says nothing of it: the cloud's controller may not have come to it yet.
        """
        shown: dict[tuple[str, str, str], set[str]] = {}
        looked_at: Counter[tuple[str, str]] = Counter()
        for node in self._nodes:
            kind = node.group or "", node.flavour or ""
            if looked_at[kind] >= MOST_LOOKED_AT or not node.is_ready:
                continue
            looked_at[kind] += 1
            for key in GIVEN_BY_KUBELETS:
                if key not in node.labels:
                    continue
                for asked in (kind, (kind[0], ""), ("", "")):
                    shown.setdefault((*asked, key), set()).add(node.labels[key])
        return shown

    def limits(self, flavour: str) -> AttachLimits:
        """As the first Ready node of the flavour shows; else as configured; else the least that any node shows."""
        shown = self._limits.get(flavour)
        return shown if shown is not None else self._limits_of_others

    def awaited(self, node: Node) -> Mapping[str, str]:
        """Labels that drivers will still give to a node of ours that has become Ready just now."""
        if not self._is_new(node) or node.claim is None or not node.is_ready:
            return {}
        group = self._policy.group(node.group)
        if group is None:
            return {}
        expected = self._of_drivers(group, node.labels.get(ZONE_LABEL))
        return {key: value for key, value in expected.items() if key not in node.labels}

    def completed(self, node: Node, awaited: Mapping[str, str]) -> Node:
        """The node as it will be once its drivers have registered."""
        limits = node.attach_limits or self.limits(node.flavour or "")
        return msgspec.structs.replace(node, labels={**node.labels, **awaited}, attach_limits=limits)

    @cached_property
    def _configured(self) -> Mapping[str, TopologyLabel]:
        return {label.key: label for label in self._rules.topology}

    @cached_property
    def _showing(self) -> dict[str, list[Node]]:
        """Nodes by the topology labels that drivers gave them; a configured label is one whoever wrote it."""
        showing: dict[str, list[Node]] = {}
        for node in self._nodes:
            for key in {*node.topology_keys, *self._configured}:
                if key in node.labels and key not in GIVEN_BY_OTHERS:
                    showing.setdefault(key, []).append(node)
        return showing

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(sorted({*self._showing, *self._configured}))

    @cached_property
    def _settled(self) -> frozenset[str]:
        """Groups with a node that has been Ready for long enough to have every label it will ever have."""
        return frozenset(node.group for node in self._nodes if node.group and node.is_ready and not self._is_new(node))

    def _is_new(self, node: Node) -> bool:
        return node.ready_since is not None and self._now - node.ready_since < REGISTERS_WITHIN_S

    def _value(self, key: str, group: str, zone: str | None) -> str | None:
        asked = key, group, zone
        if asked not in self._values:
            self._values[asked] = self._worked_out(key, group, zone)
        return self._values[asked]

    def _worked_out(self, key: str, group: str, zone: str | None) -> str | None:
        showing = self._showing.get(key, [])
        of_group = [node for node in showing if node.group == group]
        if not of_group and group in self._settled:
            return None  # the driver does not run on this group's nodes: another machine would not get the label either
        configured = self._configured.get(key)
        for nodes in (of_group, showing):
            value = _shared(key, _in_zone(nodes, zone), is_of_zones=configured is not None)
            if value is not None:
                return value
        if configured is not None and (zone is None or zone in configured.zones):
            return configured.value(zone)
        zoned = [node for node in showing if ZONE_LABEL in node.labels]
        if zone is not None and (configured is not None or zoned) and _names_zones(key, zoned):
            return zone
        return None

    @cached_property
    def _limits(self) -> dict[str, AttachLimits]:
        limits: dict[str, AttachLimits] = {}
        showing = [node for node in self._nodes if node.attach_limits and node.is_ready and node.flavour is not None]
        for node in sorted(showing, key=lambda node: node.name):
            limits.setdefault(node.flavour or "", node.attach_limits)
        return limits

    @cached_property
    def _limits_of_others(self) -> AttachLimits:
        least: dict[str, int] = {}
        for shown in self._limits.values():
            for driver, count in shown:
                least[driver] = min(count, least.get(driver, count))
        return tuple(sorted((least | dict(self._rules.attach_limits)).items()))


def _in_zone(nodes: Iterable[Node], zone: str | None) -> list[Node]:
    return [node for node in nodes if zone is None or node.labels.get(ZONE_LABEL) == zone]


def _shared(key: str, nodes: list[Node], *, is_of_zones: bool) -> str | None:
    """The value that all nodes have; of a single node only where it is known to name a zone, and not the node itself.

    `topology.topolvm.io/node: n1` is shared by all nodes of a group of one, and by no machine that is bought.
    """
    values = {node.labels[key] for node in nodes}
    if len(values) != 1:
        return None
    (value,) = values
    is_zone = is_of_zones or nodes[0].labels.get(ZONE_LABEL) == value
    return value if is_zone or len(nodes) > 1 else None


def _names_zones(key: str, zoned: Iterable[Node]) -> bool:
    """Whether the label is the zone's name on every node that has both."""
    return all(node.labels[ZONE_LABEL] == node.labels[key] for node in zoned)
