"""The cluster as execution sees it: every look goes through here, so that no step acts on pins that do not count."""

from __future__ import annotations

from htas.execution.ports import Ports
from htas.model.policy import Policy
from htas.model.snapshot import ClusterView
from htas.planning.namespaces import pins


def observed(ports: Ports, policy: Policy) -> ClusterView:
    """What the cluster shows, with the promises that count: those within the limits of their namespaces.

    Raises HTASError where the cluster does not answer.
    """
    return pins.within_limits(ports.cluster.observe(), policy, ports.clock.now())
