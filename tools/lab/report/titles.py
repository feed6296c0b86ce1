"""What policies and patterns are called in figures and tables."""

from __future__ import annotations

from collections.abc import Mapping

POLICIES: Mapping[str, str] = {
    "htas": "HTAS (paper's cycles)",
    "htas-default": "HTAS (default)",
    "htas-mix": "HTAS (paper's cycles, cheapest mix)",
    "htas-default-mix": "HTAS (default, cheapest mix)",
    "default-kubernetes": "default Kubernetes",
    "cluster-autoscaler": "Cluster Autoscaler",
    "coca": "COCA",
    "stratus": "Stratus",
    "karpenter": "Karpenter-like",
    "paper-as-printed": "the paper as printed",
}
PATTERNS: Mapping[str, str] = {
    "stable": "Stable",
    "growing": "Growing",
    "cycle": "Cycle",
    "on-off": "On-and-off",
}


PARTS: Mapping[str, str] = {
    "no-bundling": "one group for all work",
    "no-time-bins": "no time bins",
    "no-zero-bin": "no 0-bin",
    "no-rescheduling": "no rescheduling",
    "no-cleaner": "no cleaner",
    "no-look-ahead": "no headroom",
    "cheapest-mix": "the cheapest mix instead of the greedy launches",
    "consolidation": "consolidation as well",
}
"""What an ablation leaves out or adds: `htas/no-bundling`, `htas/cheapest-mix`."""


def policy_title(name: str) -> str:
    """Its title; of a policy with a part left out, what is left out."""
    whole, _, part = name.partition("/")
    return PARTS.get(part, part.replace("-", " ")) if part else POLICIES.get(whole, whole)


def pattern_title(name: str) -> str:
    return PATTERNS.get(name, name.replace("-", " ").capitalize())
