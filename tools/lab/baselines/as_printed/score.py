"""Section 3.1.2 (3): Score = nc ÷ p, nc = w₁·cu + w₂·mu, both weights 0.5.

Print does not say of what cu and mu are shares. "Utilization" is taken as the word says: what is asked for over what a
machine has, and no more than all of it. A machine that is filled then has nc = 1 whatever its size, and the smallest
wins: on Table 7 t3.xsmall with 50.5, before m3.xsmall with 29.1 and m1.xlarge with 1.8.
"""

from __future__ import annotations

from collections.abc import Callable

from htas.model.resources import Resources
from htas.planning.provision.offers import Offer

W1 = W2 = 0.5


Score = Callable[[Offer, Resources], float]
"""What a flavour is worth for the CPU and memory that are left to be covered; less than 0 is more than covered."""


def own_share(flavour: Offer, left: Resources) -> float:
    """The score with usages as shares of the flavour itself. A free machine scores infinitely well."""
    capacity = flavour.allocatable
    cu = min(max(left.cpu_m, 0), capacity.cpu_m) / capacity.cpu_m
    mu = min(max(left.memory_bytes, 0), capacity.memory_bytes) / capacity.memory_bytes
    nc = W1 * cu + W2 * mu
    return nc / (flavour.price / 1e9) if flavour.price else float("inf")
