"""What nodes offer compared with the price file: capped by it, learned where it is less, and reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from htas.model.claims import NodeClaim
from htas.model.flavours import Catalogue, Flavour, Learned
from htas.model.nodes import Node
from htas.model.resources import CPU, EPHEMERAL, PODS, Resources, amount_text
from htas.model.snapshot import ClusterView, Problem

ALIKE = 20
"""Two machines of one flavour differ by less than a twentieth: kernels and firmware keep a few MiB more or less."""
AS_GOOD_AS_NONE = 20
"""A node with less than a twentieth of its cores or memory is not there yet, or lies: then larger ones are launched."""
PLACEHOLDERS = frozenset({"", "k3s", "rke2", "kwok"})
"""What distributions without a cloud write where the flavour would stand."""
KERNEL_SHARE, KERNEL_BYTES = 0.05, 160 * 2**20
"""Of a machine's memory, what firmware and kernel keep at most before the kubelet sees it: 16 GiB show as 15.6."""
KUBELET_SHARE = 0.3
"""What kubelet and system keep besides at most, where a node tells what it offers to pods and not what it has."""


def is_as_large(flavour: Flavour, offered: Resources, machine: Resources | None = None) -> bool:
    """Whether a node could be a machine of a flavour: all its cores, nearly all its memory. `machine`: what it has."""
    has, seen = flavour.capacity, machine or offered
    least_memory = has.memory_bytes * (1 - KERNEL_SHARE) - KERNEL_BYTES
    if machine is not None:
        return seen.cpu_m == has.cpu_m and least_memory <= seen.memory_bytes <= has.memory_bytes
    least = 1 - KUBELET_SHARE
    return (
        has.cpu_m * least <= seen.cpu_m <= has.cpu_m and least_memory * least <= seen.memory_bytes <= has.memory_bytes
    )


def is_as_good_as_none(offered: Resources, flavour: Flavour) -> bool:
    """Whether cores or memory that a node offers are far too few to say anything about its flavour."""
    promised = flavour.allocatable
    return (
        offered.cpu_m * AS_GOOD_AS_NONE < promised.cpu_m
        or offered.memory_bytes * AS_GOOD_AS_NONE < promised.memory_bytes
    )


def capped(offered: Resources, flavour: Flavour, catalogue: Catalogue) -> Resources:
    """What is believed of what a node says it offers: no more than its flavour has.

    A device that the price file names for other flavours only is none of this one. How many pods a kubelet takes is
    its own setting, and a resource that the price file does not name is not known here.
    """
    most = dict(flavour.capacity.amounts())
    most.pop(PODS)
    if not most[EPHEMERAL]:
        del most[EPHEMERAL]
    if all(offered.amount(name) <= amount for name, amount in most.items()) and not offered.extended:
        return offered
    named = {name for each in catalogue.flavours for name, _ in each.capacity.extended}
    most = dict.fromkeys(named, 0) | most
    shown = offered.amounts()
    if all(amount <= most.get(name, amount) for name, amount in shown.items()):
        return offered
    return Resources.of({name: min(amount, most.get(name, amount)) for name, amount in shown.items()})


def capped_view(view: ClusterView, claims: Iterable[NodeClaim], catalogue: Catalogue) -> ClusterView:
    """The view with each node of a known flavour capped by it; a node of ours has the flavour that was launched."""
    flavour_of = {claim.id: claim.flavour for claim in claims}
    flavours = {flavour.name: flavour for flavour in catalogue.flavours}
    nodes, problems = [], []
    for node in view.nodes:
        flavour = flavours.get(flavour_of.get(node.claim or "") or node.flavour or "")
        believed = capped(node.allocatable, flavour, catalogue) if flavour is not None else node.allocatable
        if flavour is not None and believed is not node.allocatable:
            problems.append(_too_much(node, believed, flavour))
            node = msgspec.structs.replace(node, allocatable=believed)
        nodes.append(node)
    if not problems:
        return view
    return msgspec.structs.replace(view, nodes=tuple(nodes), problems=(*view.problems, *problems))


def _too_much(node: Node, believed: Resources, flavour: Flavour) -> Problem:
    shown, counted = node.allocatable.amounts(), believed.amounts()
    excess = [name for name, amount in shown.items() if amount > counted.get(name, 0)]
    told = ", ".join(
        f"{_amount(name, shown[name])}, flavour {flavour.name} has {_amount(name, counted.get(name, 0))}"
        for name in excess
    )
    return Problem(f"Node {node.name}: status.allocatable", f"says {told}; the price file counts", is_doubt=True)


def valid(learned: Mapping[str, Learned], catalogue: Catalogue) -> dict[str, Resources]:
    """What was learned of flavours that the price file has not changed since."""
    flavours = {flavour.name: flavour for flavour in catalogue.flavours}
    return {
        name: Resources(*each.parts)
        for name, each in learned.items()
        if name in flavours and each.promised == flavours[name].allocatable
    }


def learned_from(
    offered: Resources, flavour: Flavour, known: Resources | None, others: Iterable[Resources]
) -> Resources:
    """What new machines of a flavour are taken to offer, after one of them offers this.

    One machine that is smaller than others says nothing about the next one. Of like amounts the least counts. Devices
    that are missing on one machine alone count as promised: a card may be broken, a plugin may be mended, and launches
    for them back off meanwhile.
    """
    others, promised = list(others), dict(flavour.allocatable.extended)
    amounts = offered.amounts()
    for name in promised:
        amounts.setdefault(name, 0)
    for name, amount in amounts.items():
        best = max((other.amount(name) for other in others), default=0)
        before = known.amount(name) if known is not None else 0
        if best > amount and not _are_alike(best, amount):
            amount = before if _are_alike(best, before) else best
        if before and _are_alike(before, amount):
            amount = min(before, amount)
        seen_twice = any(_are_alike(amount, each.amount(name)) for each in (*others, *([known] if known else [])))
        amounts[name] = amount if amount and seen_twice else max(amount, promised.get(name, 0))
    return Resources.of(amounts)


def _are_alike(one: int, other: int) -> bool:
    return abs(one - other) * ALIKE < max(one, other) or one == other


def shortfalls(offered: Resources, promised: Resources) -> Iterator[tuple[str, int, int]]:
    """Resources of which less is offered than promised: name, offered, promised."""
    shown = offered.amounts()
    for name, amount in promised.amounts().items():
        if shown.get(name, 0) < amount and name != PODS:
            yield name, shown.get(name, 0), amount


def shortfall(offered: Resources, promised: Resources) -> str:
    """The same in words: `1.9 of 4 cores, 7 GiB of 16 GiB memory`; "": nothing is short."""
    return ", ".join(_of(name, less, amount) for name, less, amount in shortfalls(offered, promised))


def _of(name: str, less: int, amount: int) -> str:
    if name == CPU:
        return f"{less / 1000:g} of {amount_text(name, amount)}"
    return f"{amount_text(name, less)} of {_amount(name, amount)}"


def _amount(name: str, amount: int) -> str:
    return amount_text(name, amount) if name == CPU else f"{amount_text(name, amount)} {name}"
