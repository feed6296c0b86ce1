"""The sentence kube-scheduler writes when a pod fits nowhere."""

from __future__ import annotations

from collections.abc import Mapping

OF_A_POD = ("pod ", "PVC ", "persistentvolumeclaim ", "persistentvolume ", "storageclass ")
"""How reasons begin that lie in the pod, whatever the node: kube-scheduler finds them before it looks at nodes."""


def summary(counts: Mapping[str, int], nodes: int) -> str:
    """As in "0/4 nodes are available: 1 Too many pods, 3 Insufficient cpu." — sorted as text, counts included.

    A reason that lies in the pod stands without a count and alone: "0/4 nodes are available: pod has unbound
    immediate PersistentVolumeClaims." Source: kube-scheduler v1.36, framework/types.go, FitError.Error.
    """
    if not counts:
        return f"0/{nodes} nodes are available"
    of_the_pod = sorted(reason for reason in counts if reason.startswith(OF_A_POD))
    reasons = of_the_pod or sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{nodes} nodes are available: {', '.join(reasons)}."
