"""Pods that cannot be understood: where they run is read all the same, since their nodes are not empty."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from htas.adapters.kubernetes import wire
from htas.adapters.kubernetes.errors import UNREADABLE

ENDED = ("Succeeded", "Failed")


class _Parts(msgspec.Struct):
    """The parts undecoded, so that what is wrong with one does not hide the other."""

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


class _Bound(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Fate(msgspec.Struct):
    phase: str | None = None


def node_of(raw: bytes | msgspec.Raw) -> str | None:
    """The node of a pod that cannot be decoded whole; None: it has none, has ended, or does not tell."""
    try:
        parts = msgspec.json.decode(raw, type=_Parts)
        bound = msgspec.json.decode(parts.spec, type=_Bound)
    except UNREADABLE:
        return None
    try:
        phase = msgspec.json.decode(parts.status, type=_Fate).phase
    except UNREADABLE:
        phase = None  # it may be at work
    return bound.node_name or None if phase not in ENDED else None


def node_of_faulty(pod: wire.Pod) -> str | None:
    """The node of a pod that was decoded and has faults; one that has ended has none."""
    return pod.spec.node_name or None


def by_node(unread: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Of each node one pod, the first by name, from nodes by the namespace and name of their pods."""
    return {node: "/".join(key) for key, node in sorted(unread.items(), reverse=True)}
