"""The sentence kube-scheduler writes when a pod fits nowhere."""

from __future__ import annotations

from collections.abc import Mapping


def summary(counts: Mapping[str, int], nodes: int) -> str:
    """As in "0/4 nodes are available: 1 Too many pods, 3 Insufficient cpu." — sorted as text, counts included.

    Source: kube-scheduler, framework/types.go, FitError.Error.
    """
    if not counts:
        return f"0/{nodes} nodes are available"
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {reasons}."
