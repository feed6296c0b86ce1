"""What in a cluster's objects cannot be so: running pods whose volumes their nodes would not reach."""

from __future__ import annotations

from collections.abc import Mapping

from htas.model.nodes import ZONE_LABEL, Node
from htas.model.snapshot import ClusterView
from htas.model.volumes import PersistentVolume

_ZONES = ZONE_LABEL, "failure-domain.beta.kubernetes.io/zone"
"""Labels of volumes, and of nodes, that name zones."""


def out_of_reach(view: ClusterView) -> dict[str, str]:
    """Running pods whose bound volumes say that the pods' nodes cannot reach them, with the volume and the node."""
    claims = {claim.key: claim for claim in view.volumes.claims}
    volumes = {volume.name: volume for volume in view.volumes.persistent}
    nodes = {node.name: node for node in view.nodes}
    found: dict[str, str] = {}
    for pod in view.pods:
        node = nodes.get(pod.node or "")
        if node is None:
            continue
        for name in pod.constraints.claims:
            claim = claims.get(f"{pod.namespace}/{name}")
            volume = volumes.get(claim.volume or "") if claim is not None else None
            if volume is not None and not _is_reached(volume, node):
                found.setdefault(pod.key, f"{pod.key} runs on {node.name}, which volume {volume.name} does not reach")
    return found


def _is_reached(volume: PersistentVolume, node: Node) -> bool:
    terms = volume.node_affinity
    if terms is not None:
        return any(term.holds_for(node.labels, node.name) for term in terms)
    named = {key: volume.labels.get(key, "").split("__") for key in _ZONES}
    return all("" in zones or key not in node.labels or node.labels[key] in zones for key, zones in named.items())


def told(found: Mapping[str, str]) -> str:
    """How many such pods there are, with one of them."""
    first = next(iter(found.values()))
    return f"volumes contradict the nodes of {'1 pod' if len(found) == 1 else f'{len(found)} pods'}: {first}"
