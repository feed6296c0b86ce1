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


def policy_title(name: str) -> str:
    return POLICIES.get(name, name)


def pattern_title(name: str) -> str:
    return PATTERNS.get(name, name.replace("-", " ").capitalize())
