"""The quality of service that is maximised, and what a pod's size is measured in (KubeDSM, equations 1 to 4, 10, 11)."""

from __future__ import annotations

from htas.model.edge import EdgePolicy
from htas.planning.edge.state import EdgeState, Layout, Size


def worth(above: float, policy: EdgePolicy) -> float:
    """F (equation 3) of Δ: the share of a service's pods on the edge, less its target."""
    return policy.alpha * above if above < 0 else policy.beta * above + policy.gamma


def service_quality(near: int, pods: int, target: float, policy: EdgePolicy) -> float:
    """QoS(i, u) (equations 2 and 4) of a service with `near` of its `pods` on the edge."""
    raise NotImplementedError


def total_quality(layout: Layout, policy: EdgePolicy) -> float:
    """QoS(u) (equation 1): the sum over the services that have pods."""
    raise NotImplementedError


def service_qualities(state: EdgeState, policy: EdgePolicy) -> list[float]:
    """QoS(i, u) of each service as it is; 0 for one without pods."""
    raise NotImplementedError


def edge_ratios(state: EdgeState) -> list[float]:
    """The share of each service's pods that are on the edge, 0 to 1; 1 for one without pods."""
    raise NotImplementedError


def share(size: Size, total: Size) -> float:
    """size(pod) (equation 11): the geometric mean of what it takes of the edge's cpu and of its memory."""
    raise NotImplementedError
