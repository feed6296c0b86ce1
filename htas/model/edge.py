"""The edge tier: which nodes are near the users, and what the operator wants kept on them.

Source: KubeDSM 4 and 5. A service's target Q is the share of its pods that should run on the edge.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

TIER_LABEL = "htas.io/tier"
"""On a node; it wins over the tier of the node's group."""
QOS = "htas.io/qos"
"""On a pod, annotation or label: the target of its service as a share from 0 to 1, such as "0.5"."""
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
    period_s: float = 60.0
    """Seconds between suggestions."""
    subset_limit: int = 2000
    """Subsets of pods looked at in one search; beyond it the integer program decides."""
    tidy_gain: float = 0.1
    """Pods change their edge node without bringing any pod nearer only where each move makes at least so much of a
    node usable again. Infinite: never."""
    search_s: float = 0.015
    """What one use of the integer program may take, in CP-SAT's measure of work: about seconds of one core."""


LEAST_GAMMA = 10.0
"""γ is at least so many α: then one service that meets its target outweighs ten that lose everything."""


def problems(policy: EdgePolicy) -> tuple[str, ...]:
    """What is wrong with the constants, one sentence each, none where all is well: 0 ≤ β < α ≪ γ (equation 5)."""
    found = []
    if policy.beta < 0:
        found.append(f"beta is {policy.beta:g}: it must be 0 or more")
    if policy.beta >= policy.alpha:
        found.append(f"beta is {policy.beta:g} and alpha {policy.alpha:g}: beta must be less than alpha")
    if policy.gamma < LEAST_GAMMA * policy.alpha:
        least = LEAST_GAMMA * policy.alpha
        found.append(f"gamma is {policy.gamma:g}: it must be at least ten times alpha, {least:g}")
    if policy.cloud_to_edge_moves < 0:
        found.append(f"cloudToEdgeMoves is {policy.cloud_to_edge_moves}: it must be 0 or more")
    if policy.reorder_moves < 0:
        found.append(f"reorderMoves is {policy.reorder_moves}: it must be 0 or more")
    if policy.period_s <= 0:
        found.append(f"period is {policy.period_s:g} s: it must be more than 0")
    return tuple(found)
