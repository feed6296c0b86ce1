"""DaemonSets: which pods are really theirs, and what a new node will run of them.

Anybody who may create pods may write `kind: DaemonSet` among a pod's owners; nobody checks that there is one. So an
owner is believed only where a DaemonSet of apps/v1 with that name and uid exists, and what a new node will run is read
from the templates, not from the pods.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from htas.adapters.controllers import kind_and_group
from htas.adapters.kubernetes import wire

KIND = "DaemonSet"
NONE_SUCH = "DaemonSet that does not exist"
"""The kind of an owner that is not believed."""

DaemonSets = Mapping[tuple[str, str], str]
"""Uids by namespace and name."""

_TOLERATED = tuple(
    wire.Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""What the controller adds to each pod (kubernetes, pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations)."""
_NETWORK = wire.Toleration(key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule")


def kind_of(reference: wire.OwnerReference, namespace: str, known: DaemonSets | None) -> str:
    """The kind of a pod's controller, with its group where that is not the built-in one's; NONE_SUCH where it says
    DaemonSet of `apps` and there is none. One of another group (OpenKruise's) is a custom controller like others.

    `known` None: nobody has said which DaemonSets there are, as in a dump without them; then the reference counts.
    """
    kind = kind_and_group(reference.kind, reference.api_version)
    if kind != KIND:
        return kind
    is_there = known is None or known.get((namespace, reference.name)) == reference.uid
    return KIND if is_there else NONE_SUCH


def pod_of(raw: wire.DaemonSet) -> wire.Pod:
    """The pod that its controller would make on a node that suits it, bound to none."""
    meta, template = raw.metadata, raw.spec.template
    owner = wire.OwnerReference(kind=KIND, name=meta.name, uid=meta.uid, controller=True, api_version="apps/v1")
    network = (_NETWORK,) if template.spec.host_network else ()
    tolerations = [*(template.spec.tolerations or ()), *_TOLERATED, *network]
    return wire.Pod(
        metadata=wire.Metadata(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=[owner],
        ),
        spec=msgspec.structs.replace(template.spec, tolerations=tolerations, node_name=""),
    )
