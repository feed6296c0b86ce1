"""A simulated machine: what is kept of it, what becomes of it, and the Node it will be."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any

import msgspec

from htas.adapters.kubernetes.cluster import taint_manifest
from htas.model.flavours import Flavour
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.resources import Resources

MARK = "htas.io/simulated-machine"
"""The label of a ConfigMap that records a machine which KWOK plays."""
FAKE = {"kwok.x-k8s.io/node": "fake"}
"""The annotation by which KWOK knows which nodes to play."""


class Fate(StrEnum):
    WELL = "well"
    OUT_OF_STOCK = "out of stock"
    NEVER_REGISTERS = "never registers"
    REGISTERS_LATE = "registers late"


class Faults(msgspec.Struct, frozen=True):
    """Shares of purchases that go wrong (0 to 1); the same seed and claim have the same fate."""

    seed: int = 1
    out_of_stock: float = 0.0
    never_registers: float = 0.0
    registers_late: float = 0.0
    late_s: float = 300.0


class Machine(msgspec.Struct, frozen=True):
    """`boots_at` None: no node ever registers."""

    id: str
    claim: str
    group: str
    flavour: str
    zone: str | None
    created_at: float
    active_at: float
    boots_at: float | None
    node: dict[str, Any]


def fate_of(claim: str, faults: Faults) -> Fate:
    """One draw for each claim, in [0, 1), from a digest: no state is needed to draw the same again."""
    digest = hashlib.sha256(f"{faults.seed}/{claim}".encode()).digest()
    draw = int.from_bytes(digest[:7], "big") / 2**56
    for fate, share in (
        (Fate.OUT_OF_STOCK, faults.out_of_stock),
        (Fate.NEVER_REGISTERS, faults.never_registers),
        (Fate.REGISTERS_LATE, faults.registers_late),
    ):
        if draw < share:
            return fate
        draw -= share
    return Fate.WELL


def node_manifest(node: Node, flavour: Flavour, instance_id: str) -> dict[str, Any]:
    """The Node as a kubelet on a machine of that flavour would register it."""
    labels = {
        HOSTNAME_LABEL: node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **node.labels,
    }
    taints = [taint_manifest(taint) for taint in node.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels, "annotations": dict(FAKE)},
        "spec": {"providerID": f"kwok://{instance_id}", **({"taints": taints} if taints else {})},
        "status": {"capacity": _amounts(flavour.capacity), "allocatable": _amounts(flavour.allocatable)},
    }


def _amounts(resources: Resources) -> dict[str, str]:
    amounts = {
        "cpu": f"{resources.cpu_m}m",
        "memory": str(resources.memory_bytes),
        "ephemeral-storage": str(resources.ephemeral_bytes),
        "pods": str(resources.pods),
    }
    amounts |= {name: str(amount) for name, amount in resources.extended}
    return amounts
