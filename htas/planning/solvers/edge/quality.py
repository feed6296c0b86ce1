"""The quality of service that is maximised, and what a pod's size is measured in (KubeDSM, equations 1-4, 10, 11)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from htas.model.edge import EdgePolicy
from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.state import CLOUD, EdgeState, Size, summed

TOLERANCE = 1e-9
"""Shares are floating-point numbers: 3 pods of 10 meet a target of 0.3 though 3 / 10 - 0.3 may come out below 0."""


def worth(above: float, policy: EdgePolicy) -> float:
    """F (equation 3) of Δ: the share of a service's pods on the edge, less its target."""
    return policy.alpha * above if above < -TOLERANCE else policy.beta * above + policy.gamma


def service_quality(near: int, pods: int, target: float, policy: EdgePolicy) -> float:
    """QoS(i, u) (equations 2 and 4) of a service with `near` of its `pods` on the edge; 0 for one without pods."""
    return worth(near / pods - target, policy) if pods else 0.0


class Qualities:
    """QoS(i, u) of every service for every number of its pods on the edge, worked out once for a state."""

    def __init__(self, state: EdgeState, policy: EdgePolicy) -> None:
        self.count = [0] * len(state.services)
        for pod in state.pods:
            self.count[pod.service] += 1
        self.of: list[list[float]] = [
            [service_quality(near, pods, service.target, policy) for near in range(pods + 1)]
            for service, pods in zip(state.services, self.count, strict=True)
        ]

    def total(self, near: Sequence[int]) -> float:
        """QoS(u) (equation 1) with so many pods of each service on the edge."""
        return sum(of[there] for of, there in zip(self.of, near, strict=True))

    def gain(self, service: int, near: int, pods: int) -> float:
        """What so many more pods of a service on the edge (fewer, where negative) add to QoS(u)."""
        of = self.of[service]
        return of[near + pods] - of[near]


def service_qualities(state: EdgeState, policy: EdgePolicy) -> list[float]:
    """QoS(i, u) of each service as it is; 0 for one without pods."""
    near = Layout(state).near
    return [of[there] for of, there in zip(Qualities(state, policy).of, near, strict=True)]


def edge_ratios(state: EdgeState) -> list[float]:
    """The share of each service's pods that are on the edge, 0 to 1; 1 for one without pods."""
    count, near = [0] * len(state.services), [0] * len(state.services)
    for pod in state.pods:
        count[pod.service] += 1
        near[pod.service] += pod.where != CLOUD
    return [there / pods if pods else 1.0 for there, pods in zip(near, count, strict=True)]


def edge_total(state: EdgeState) -> Size:
    """M_CPU and M_MEM: what all edge nodes offer together."""
    width = len(state.nodes[0].total) if state.nodes else 2
    return summed((node.total for node in state.nodes), width)


def share(size: Size, total: Size) -> float:
    """size(pod) (equation 11): the geometric mean of what it takes of the edge's cpu and of its memory.

    A pod that asks for none of one of them would weigh nothing and come before all others, so an amount counts at
    least as a millionth of the edge.
    """
    cpu, memory = (max(asked / max(there, 1), 1e-6) for asked, there in zip(size[:2], total[:2], strict=True))
    return sqrt(cpu * memory)
