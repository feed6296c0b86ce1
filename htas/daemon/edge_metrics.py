"""The edge tier as metrics: how near services come to their targets, and how much of each edge node nobody can use."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from htas.model.policy import Policy
from htas.model.snapshot import ClusterView
from htas.planning.place.edge_present import edge_nodes, present
from htas.planning.solvers.edge.search import edge_ratios, node_fragmentation, service_qualities


def edge_metrics(view: ClusterView, policy: Policy) -> Iterator[Metric]:
    """Nothing but the names where no node is of tier edge."""
    ratio = GaugeMetricFamily("htas_edge_ratio", "Share of a service's pods on the edge.", labels=["service"])
    qos = GaugeMetricFamily("htas_edge_qos", "What that is worth, by its target.", labels=["service"])
    unused = GaugeMetricFamily("htas_edge_fragmentation", "Share free that no service can use.", labels=["node"])
    if edge_nodes(view.nodes, policy):
        state = present(view, policy)
        names = [service.name for service in state.services]
        for service, share in zip(names, edge_ratios(state), strict=True):
            ratio.add_metric([service], share)
        for service, worth in zip(names, service_qualities(state, policy.edge), strict=True):
            qos.add_metric([service], worth)
        for node, share in zip(state.nodes, node_fragmentation(state), strict=True):
            unused.add_metric([node.name], share)
    yield from (ratio, qos, unused)
