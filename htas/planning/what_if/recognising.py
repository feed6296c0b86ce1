"""Which flavour a node is of that has no instance type: as its operator says, else as its size tells."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from htas.model.flavours import Catalogue, Flavour
from htas.model.nodes import INSTANCE_TYPE_LABEL, Node
from htas.model.resources import Resources

OLD_LABEL = "beta.kubernetes.io/instance-type"
PLACEHOLDERS = frozenset({"", "k3s", "rke2", "kwok"})
"""What distributions without a cloud write where the flavour would stand."""
KERNEL_SHARE, KERNEL_BYTES = 0.05, 160 * 2**20
"""Of a machine's memory, what firmware and kernel keep at most before the kubelet sees it: 16 GiB show as 15.6."""
KUBELET_SHARE = 0.3
"""What kubelet and system keep besides at most, where a node tells what it offers to pods and not what it has."""


class Recognised(msgspec.Struct, frozen=True):
    """A node and the flavour it is taken for; `others` are as large and cost something else."""

    node: str
    flavour: str
    is_stated: bool
    others: tuple[str, ...] = ()


def recognise(
    nodes: Sequence[Node],
    machines: Mapping[str, Resources],
    catalogue: Catalogue,
    stated: Sequence[tuple[str, str]] = (),
) -> tuple[tuple[Node, ...], tuple[Recognised, ...]]:
    """The nodes with the flavours they are taken for, and which those are.

    `stated` are (pattern of names, flavour), the first that matches counts, also where a node has a type. `machines` is
    what the nodes have in all, where it is known.
    """
    done, told = [], []
    for node in nodes:
        found = _recognised(node, machines.get(node.name), catalogue, stated)
        if found is not None:
            node = msgspec.structs.replace(node, labels={**node.labels, INSTANCE_TYPE_LABEL: found.flavour})
            told.append(found)
        elif (old := node.labels.get(OLD_LABEL)) is not None and node.flavour is None:
            node = msgspec.structs.replace(node, labels={**node.labels, INSTANCE_TYPE_LABEL: old})
        done.append(node)
    return tuple(done), tuple(told)


def _recognised(
    node: Node, machine: Resources | None, catalogue: Catalogue, stated: Sequence[tuple[str, str]]
) -> Recognised | None:
    for pattern, flavour in stated:
        if fnmatchcase(node.name, pattern):
            return Recognised(node.name, flavour, is_stated=True)
    if (node.flavour or node.labels.get(OLD_LABEL) or "") not in PLACEHOLDERS:
        return None
    devices = frozenset(name for each in catalogue.flavours for name, _ in each.capacity.extended)
    alike = [each for each in catalogue.flavours if _is_alike(each, node.allocatable, machine, devices)]
    if not alike:
        return None
    best = min(
        alike, key=lambda each: (each.capacity.cpu_m, each.capacity.memory_bytes, each.nanos_per_hour, each.name)
    )
    twins = (each for each in alike if _size(each) == _size(best) and each.nanos_per_hour != best.nanos_per_hour)
    return Recognised(node.name, best.name, is_stated=False, others=tuple(sorted(each.name for each in twins)))


def _is_alike(flavour: Flavour, offered: Resources, machine: Resources | None, devices: Collection[str]) -> bool:
    """Whether a node could be a machine of a flavour: all its cores, nearly all its memory, the same devices.

    `devices` are those that some flavour has, such as GPUs; what else a node offers was set up on it.
    """
    has, seen = flavour.capacity, machine or offered
    if any(has.amount(name) != seen.amount(name) for name in devices):
        return False
    least_memory = has.memory_bytes * (1 - KERNEL_SHARE) - KERNEL_BYTES
    if machine is not None:
        return seen.cpu_m == has.cpu_m and least_memory <= seen.memory_bytes <= has.memory_bytes
    least = 1 - KUBELET_SHARE
    return (
        has.cpu_m * least <= seen.cpu_m <= has.cpu_m and least_memory * least <= seen.memory_bytes <= has.memory_bytes
    )


def _size(flavour: Flavour) -> tuple[int, int]:
    return flavour.capacity.cpu_m, flavour.capacity.memory_bytes
