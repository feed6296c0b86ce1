"""Nodes: machines that have joined the cluster."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from htas.model.constraints import Effect, Taint
from htas.model.resources import Resources

CLUSTER_LABEL = "htas.io/cluster"
"""The label of a node that HTAS launched: the name of the cluster, as in the configuration."""
CLAIM_LABEL = "htas.io/claim"
"""The label of a node that HTAS launched: the claim in the journal."""
GROUP_LABEL = "htas.io/group"
"""The label of a node that HTAS launched: its node group."""
OWN_LABELS = (CLUSTER_LABEL, CLAIM_LABEL, GROUP_LABEL)
"""What makes a node ours."""
HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"

DRAINING_TAINT_KEY = "htas.io/draining"
"""The taint (NoSchedule) of a node that HTAS drains."""
DRAINING_TAINT = Taint(DRAINING_TAINT_KEY, Effect.NO_SCHEDULE)
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
"""The annotation that keeps a node: "true"."""
DO_NOT_DISRUPT = "htas.io/do-not-disrupt"
"""The annotation that keeps a node ("true"), or a pod on its node ("true" or a duration)."""
KARPENTER_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
"""The annotation of Karpenter with the same meaning as htas.io/do-not-disrupt."""
HOLDING = (SCALE_DOWN_DISABLED, DO_NOT_DISRUPT, KARPENTER_DO_NOT_DISRUPT)
"""Annotations that keep a node, with the value "true". Pods bear the last two as well."""

CONTROL_PLANE_KEYS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node as the planner sees it. Of its CSINode: `attach_limits` are the volumes each driver can attach,
    `topology_keys` the labels that drivers gave the node, to say from where its volumes can be reached.
    """

    name: str
    allocatable: Resources
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    is_unschedulable: bool = False
    is_ready: bool = True
    provider_id: str = ""
    created_at: float = 0.0
    attach_limits: tuple[tuple[str, int], ...] = ()
    runtime: str = ""
    """containerRuntimeVersion, such as `containerd://2.3.7`: whether pods can be restored there."""
    kubelet: str = ""
    """kubeletVersion, such as `v1.34.1`; empty: nobody says, as of a machine that is not there yet."""
    ready_since: float | None = None
    """Since when its condition Ready has stood at True; None: nobody says, or it does not."""
    conditions: tuple[tuple[str, float], ...] = ()
    """What stands at True beside Ready, and since when, as DiskPressure or KernelDeadlock: on most nodes nothing."""
    topology_keys: tuple[str, ...] = ()
    is_of_any_zone: bool = False
    """A machine that is not there yet and was asked for in no zone: it may come up in any."""

    @property
    def is_control_plane(self) -> bool:
        """Whether its labels or taints say that it is of the control plane."""
        return any(key in self.labels for key in CONTROL_PLANE_KEYS) or any(
            taint.key in CONTROL_PLANE_KEYS for taint in self.taints
        )

    @property
    def takes_pods(self) -> bool:
        """Whether pods may be bound to it: Ready, and not cordoned."""
        return self.is_ready and not self.is_unschedulable

    @property
    def cluster(self) -> str | None:
        return self.labels.get(CLUSTER_LABEL)

    @property
    def claim(self) -> str | None:
        return self.labels.get(CLAIM_LABEL)

    @property
    def group(self) -> str | None:
        return self.labels.get(GROUP_LABEL)

    @property
    def flavour(self) -> str | None:
        return self.labels.get(INSTANCE_TYPE_LABEL)

    @property
    def zone(self) -> str | None:
        return self.labels.get(ZONE_LABEL)

    @property
    def machine(self) -> str:
        """The id of its machine: what stands last in `openstack:///ID`, `kwok://ID` or `openstack://REGION/ID`."""
        return self.provider_id.rpartition("/")[2]

    @property
    def held_by(self) -> str | None:
        """The annotation that keeps the node from being emptied, given back or replaced; None: there is none."""
        return next((key for key in HOLDING if self.annotations.get(key) == "true"), None)

    @property
    def is_draining(self) -> bool:
        return DRAINING_TAINT in self.taints
