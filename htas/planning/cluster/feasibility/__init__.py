"""One notion of "fits": a filter per file, at parity with kube-scheduler's plugins of the same names.

Each filter answers for one class of pods over a range of node rows at once, with the reason of each refusal in
kube-scheduler's words. The same filters judge existing nodes, machines on their way and machines not bought yet.
"""

from htas.planning.cluster.feasibility import (
    host_ports,
    inter_pod_affinity,
    namespace_limit,
    node_affinity,
    node_groups,
    resources,
    supported,
    taints,
    topology_spread,
    volumes,
)
from htas.planning.cluster.feasibility.filter_context import Filter

STATIC_FILTERS: tuple[Filter, ...] = (
    supported.refuse,
    volumes.refuse_claims,
    node_affinity.refuse_names,
    taints.refuse_unschedulable,
    node_groups.refuse,
    taints.refuse,
    node_affinity.refuse,
    volumes.refuse_binding,
    volumes.refuse_zone,
)
"""Filters that read the nodes and volumes alone; their answers are kept."""

LENT_FILTERS: tuple[Filter, ...] = tuple(each for each in STATIC_FILTERS if each is not node_groups.refuse)
"""What of them holds on nodes of another group that are lent (`lending.py`)."""

NEIGHBOUR_FILTERS: tuple[Filter, ...] = (topology_spread.refuse, inter_pod_affinity.refuse)
"""Filters that read which pods run in a node's whole domain, so that room on the node alone changes nothing."""

PLACEMENT_FILTERS: tuple[Filter, ...] = (
    host_ports.refuse,
    volumes.refuse_restrictions,
    volumes.refuse_limits,
    *NEIGHBOUR_FILTERS,
    namespace_limit.refuse,
)
"""Filters that also read what is placed; resources are apart, since packing asks them in counts."""

FILTERS: tuple[Filter, ...] = (
    supported.refuse,
    volumes.refuse_claims,
    node_affinity.refuse_names,
    taints.refuse_unschedulable,
    node_groups.refuse,
    taints.refuse,
    node_affinity.refuse,
    host_ports.refuse,
    resources.refuse,
    volumes.refuse_restrictions,
    volumes.refuse_limits,
    volumes.refuse_binding,
    volumes.refuse_zone,
    topology_spread.refuse,
    inter_pod_affinity.refuse,
    namespace_limit.refuse,
)
"""All filters in kube-scheduler's order, which decides whose reason is counted for a node.

First what its PreFilter step says of the pod before nodes are looked at.
"""
