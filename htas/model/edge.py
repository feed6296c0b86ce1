"""The edge tier: which nodes are near the users, and what the operator wants kept on them.

Source: KubeDSM 4 and 5. A service's target Q is the share of its pods that should run on the edge.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

TIER_LABEL = "htas.io/tier"
"""The label of a node with its tier, `edge` or `cloud`; it wins over the tier of the node's group."""
QOS = "htas.io/qos"
"""The annotation or label of a pod with its service's target: the share of its pods on edge nodes, such as "0.5"."""
DEFAULT_TARGET = 1.0


class Tier(StrEnum):
    """Edge nodes are near and few; cloud nodes are far, and there are always more."""

    EDGE = "edge"
    CLOUD = "cloud"


class EdgePolicy(msgspec.Struct, frozen=True):
    """What a service near its users is worth, and how much may be moved for it.

    A service x above its target gives βx + γ, one x below it gives αx (equation 3); x is a share of its pods. γ is what
    makes one service that meets its target worth more than a few pods of many that do not.
    """

    alpha: float = 1.0
    beta: float = 0.5
    gamma: float = 10.0
    cloud_to_edge_moves: int = 5
    """M_C2E: pods moved from the cloud to the edge in one suggestion, at most. 0: none ever."""
    reorder_moves: int = 3
    """M_ER: pods moved from one edge node to another in one suggestion, at most. 0: none ever."""
    edge_to_cloud_moves: int = 5
    """M_E2C: pods that leave the edge for others in one suggestion, at most: 30 of half a core would have to for one of
    15 cores. 0: none ever."""
    period_s: float = 60.0
    """Seconds between suggestions."""
    settle_s: float = 300.0
    """A pod is moved once it has been Ready for so long, and to nodes that have been."""
    nanos_per_hour: int | None = None
    """What an hour of an edge node costs that HTAS did not buy. None: what the catalogue says; 0: it is paid for."""
    subset_limit: int = 2000
    """Subsets of pods looked at in one search; beyond it the integer program decides."""
    work_limit: int = 300_000
    """Pods and nodes looked at in one search, counted in what looking at one takes: 0.3 to 3 microseconds of a core."""
    tidy_gain: float = 0.1
    """Pods change their edge node without bringing any pod nearer only where each move makes at least so much of a
    node usable again. Infinite: never."""
    search_s: float = 0.01
    """What one use of the integer program may take, in CP-SAT's measure of work: about seconds of one core."""


LEAST_GAMMA = 10.0
"""γ is at least so many α: then one service that meets its target outweighs ten that lose everything."""
