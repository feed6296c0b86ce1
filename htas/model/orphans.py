"""Orphans: machines of ours that the configuration has no place for any more."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class OrphanReason(StrEnum):
    """What the configuration lacks."""

    OTHER_CLUSTER = "OtherCluster"
    """Its metadata name another cluster of HTAS, while our journal or our Kubernetes cluster knows it."""
    UNKNOWN_GROUP = "UnknownGroup"
    """Its group is not configured."""
    UNKNOWN_FLAVOUR = "UnknownFlavour"
    """Its flavour is not in the price file."""


class Orphan(msgspec.Struct, frozen=True, omit_defaults=True):
    """One machine, by its id in the cloud. `node` is empty where none is known."""

    machine: str
    reason: OrphanReason
    claim: str = ""
    node: str = ""
    group: str = ""
    flavour: str = ""
    cluster: str = ""
    """The cluster of HTAS that its metadata name."""

    @property
    def says(self) -> str:
        """What is wrong, and what to do."""
        match self.reason:
            case OrphanReason.OTHER_CLUSTER:
                what, remedy = f"belongs to cluster {self.cluster} of HTAS", f"htas adopt --cluster {self.cluster} …"
            case OrphanReason.UNKNOWN_GROUP:
                what, remedy = f"is of group {self.group or '(none)'}, which is not configured", "htas adopt …"
            case OrphanReason.UNKNOWN_FLAVOUR:
                name = self.flavour or "(unknown)"
                return f"{self._what} is of flavour {name}, which is not in the price file: add it, or drain the node"
        return f"{self._what} {what}: {remedy}, or htas handback --orphans"

    @property
    def _what(self) -> str:
        return f"machine {self.machine}{f' (node {self.node})' if self.node else ''}"
