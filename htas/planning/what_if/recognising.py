"""Which flavour a node is of that has no instance type: as its operator says, else as its size tells."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from math import log

import msgspec

from htas.model.flavours import Catalogue, Flavour
from htas.model.nodes import INSTANCE_TYPE_LABEL, Node
from htas.model.resources import Resources
from htas.planning.cluster.offered import PLACEHOLDERS, is_as_large

OLD_LABEL = "beta.kubernetes.io/instance-type"


class Recognised(msgspec.Struct, frozen=True):
    """A node and the flavour it is taken for; `others` are as large and cost something else."""

    node: str
    flavour: str
    is_stated: bool
    others: tuple[str, ...] = ()
    labelled: str = ""
    """The type its label names, which the price file does not have, nor that of any other node."""


class Unlike(msgspec.Struct, frozen=True):
    """A node whose cores or memory are not those of the flavour that its label, or --type, says; both in words."""

    node: str
    flavour: str
    has: str
    flavour_has: str


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
    sold = {flavour.name for flavour in catalogue.flavours}
    means_nothing = not any(_label(node) in sold for node in nodes)
    for node in nodes:
        found = _recognised(node, machines.get(node.name), catalogue, stated, means_nothing=means_nothing)
        if found is not None:
            node = msgspec.structs.replace(node, labels={**node.labels, INSTANCE_TYPE_LABEL: found.flavour})
            told.append(found)
        elif (old := node.labels.get(OLD_LABEL)) is not None and node.flavour is None:
            node = msgspec.structs.replace(node, labels={**node.labels, INSTANCE_TYPE_LABEL: old})
        done.append(node)
    return tuple(done), tuple(told)


def _recognised(
    node: Node,
    machine: Resources | None,
    catalogue: Catalogue,
    stated: Sequence[tuple[str, str]],
    *,
    means_nothing: bool,
) -> Recognised | None:
    """`means_nothing`: no node's label names a flavour that is sold, so that none is believed."""
    for pattern, flavour in stated:
        if fnmatchcase(node.name, pattern):
            return Recognised(node.name, flavour, is_stated=True)
    label = _label(node)
    if label not in PLACEHOLDERS and not means_nothing:
        return None
    devices = frozenset(name for each in catalogue.flavours for name, _ in each.capacity.extended)
    alike = [each for each in catalogue.flavours if _is_alike(each, node.allocatable, machine, devices)]
    if not alike:
        return None
    best = min(
        alike, key=lambda each: (each.capacity.cpu_m, each.capacity.memory_bytes, each.nanos_per_hour, each.name)
    )
    twins = (each for each in alike if _size(each) == _size(best) and each.nanos_per_hour != best.nanos_per_hour)
    others = tuple(sorted(each.name for each in twins))
    return Recognised(node.name, best.name, is_stated=False, others=others, labelled=label)


def _label(node: Node) -> str:
    return node.flavour or node.labels.get(OLD_LABEL) or ""


def unlike_their_flavour(
    nodes: Sequence[Node], machines: Mapping[str, Resources], catalogue: Catalogue
) -> tuple[Unlike, ...]:
    """Nodes whose cores or memory are not their flavour's: the price may be another machine's."""
    found = []
    for node in nodes:
        flavour = catalogue.named(node.flavour)
        machine = machines.get(node.name)
        if flavour is not None and not _is_alike(flavour, node.allocatable, machine, ()):
            found.append(
                Unlike(node.name, flavour.name, size_text(machine or node.allocatable), size_text(flavour.capacity))
            )
    return tuple(found)


def nearest(size: Resources, catalogue: Catalogue) -> Flavour:
    """The flavour whose cores and memory are least times more or fewer."""

    def apart(flavour: Flavour) -> float:
        pairs = zip(_size(flavour), (size.cpu_m, size.memory_bytes), strict=True)
        return sum(abs(log(max(1, mine) / max(1, other))) for mine, other in pairs)

    return min(catalogue.flavours, key=lambda flavour: (apart(flavour), flavour.name))


def size_text(size: Resources) -> str:
    """`8 cores and 31.3Gi`."""
    gib = size.memory_bytes / 2**30
    return f"{size.cpu_m / 1000:g} cores and " + (f"{gib / 1024:.3g}Ti" if gib >= 1024 else f"{gib:.3g}Gi")


def _is_alike(flavour: Flavour, offered: Resources, machine: Resources | None, devices: Collection[str]) -> bool:
    """Whether a node could be a machine of a flavour: as large, with the same devices.

    `devices` are those that some flavour has, such as GPUs; what else a node offers was set up on it.
    """
    has, seen = flavour.capacity, machine or offered
    if any(has.amount(name) != seen.amount(name) for name in devices):
        return False
    return is_as_large(flavour, offered, machine)


def _size(flavour: Flavour) -> tuple[int, int]:
    return flavour.capacity.cpu_m, flavour.capacity.memory_bytes
