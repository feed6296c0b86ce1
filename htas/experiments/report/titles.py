"""What policies and patterns are called in figures and tables."""

from __future__ import annotations

from collections.abc import Mapping

POLICIES: Mapping[str, str] = {
    "htas": "HTAS (paper's cycles)",
    "htas-default": "HTAS (default)",
    "default-kubernetes": "default Kubernetes",
    "cluster-autoscaler": "Cluster Autoscaler",
    "coca": "COCA",
    "stratus": "Stratus",
    "karpenter": "Karpenter-like",
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
    "no-cheapest-mix": "greedy purchase instead of the cheapest mix",
    "no-consolidation": "no consolidation",
}
"""What an ablation leaves out: `htas/no-bundling`."""


def policy_title(name: str) -> str:
    """Its title; of a policy with a part left out, what is left out."""
    whole, _, part = name.partition("/")
    return PARTS.get(part, part.replace("-", " ")) if part else POLICIES.get(whole, whole)


def pattern_title(name: str) -> str:
    return PATTERNS.get(name, name.replace("-", " ").capitalize())
