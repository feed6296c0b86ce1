"""Offers: the machines that could be bought, as the nodes they would become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from htas.model.billing import Price
from htas.model.flavours import Flavour
from htas.model.nodes import Node
from htas.model.policy import NodeGroup, Policy
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.attaching import Attaching, AttachLimits
from htas.planning.cluster.classes import Ints, PodClass
from htas.planning.cluster.feasibility.resources import exceeds, fits
from htas.planning.cluster.machines import learned_allocatable, machine_node
from htas.planning.cluster.simulation import Simulation

Contents = Sequence[tuple[PodClass, int]]
"""Pods of classes: how many of each."""
Kind = tuple[str, str, int]
"""A group, a flavour and a price an hour."""
MOST_OF_NAMES = 52
"""Letters of cluster and group in a claim's id: with a hyphen and ten digits 63, as many as a label may have."""


def claim_id(policy: Policy, snapshot: ClusterSnapshot, group: str, ordinal: int) -> str:
    """An id no other claim has: made from the snapshot, so that the same snapshot gives the same plan."""
    text = f"{policy.cluster}/{snapshot.taken_at!r}/{snapshot.generation}/{group}/{ordinal}"
    return f"{claim_prefix(policy.cluster, group)}-{blake2b(text.encode(), digest_size=5).hexdigest()}"


def claim_prefix(cluster: str, group: str) -> str:
    """What the ids of a group's claims begin with; a hyphen and ten digits follow."""
    return f"{cluster}-{group}"[:MOST_OF_NAMES].rstrip("-")


@dataclass(slots=True, eq=False)
class Offer:
    """A flavour in a group and a zone, at its price there. `free` is what its DaemonSet pods leave of it (a column of
    the axis).
    """

    group: NodeGroup
    flavour: Flavour
    zone: str | None
    allocatable: Resources
    attach_limits: AttachLimits
    topology: Mapping[str, str]
    """Labels that CSI drivers will give it."""
    free: Ints
    takes: dict[object, bool] = field(default_factory=dict)
    """By a class's static key: whether the node would take it, resources and other pods aside."""

    @property
    def price(self) -> int:
        return self.flavour.nanos_in(self.zone)

    @property
    def kind(self) -> Kind:
        """What offers have in common that differ in their zone alone, and cost the same there."""
        return self.group.name, self.flavour.name, self.price

    @property
    def whole_price(self) -> Price:
        """The price with its monthly cap."""
        return self.flavour.price_in(self.zone) or Price(self.price)

    def node(self, policy: Policy, claim: str) -> Node:
        return machine_node(
            policy, self.group, self.flavour, self.zone, claim, self.allocatable, self.attach_limits, self.topology
        )

    def would_take(self, cls: PodClass) -> bool:
        """Whether a machine of this offer is for pods of a class, room and other pods' wishes aside."""
        return self.flavour.name not in cls.pauses and self.admits(cls)

    def admits(self, cls: PodClass) -> bool:
        """`would_take`, whatever became of earlier launches of its flavour."""
        return self.takes[cls.static_key] and (cls.is_ours or self.group.workload.takes(cls.kind))

    def could_hold(self, cls: PodClass) -> bool:
        """Whether an empty machine of this offer would hold one pod of a class, other pods' wishes aside."""
        return self.would_take(cls) and bool(fits(self.free, cls))

    def used_by(self, contents: Contents) -> Ints:
        """What pods ask for together, of all that such a machine offers."""
        used: Ints = np.zeros(len(self.free), dtype=np.int64)
        for cls, count in contents:
            used += cls.requests * count
        return used

    def would_take_all(self, contents: Contents) -> bool:
        """Whether a machine of this offer is for all of these pods, room and other pods' wishes aside."""
        return all(self.would_take(cls) for cls, _ in contents)

    def could_hold_all(self, contents: Contents, used: Ints | None = None) -> bool:
        """Whether an empty machine would hold all of these pods together, other pods' wishes aside.

        `used`: what they ask for together, where it is known already.
        """
        asked = used if used is not None else self.used_by(contents)
        return not exceeds(asked, self.free) and self.would_take_all(contents)


def offers_of(sim: Simulation, policy: Policy, snapshot: ClusterSnapshot, classes: Iterable[PodClass]) -> list[Offer]:
    """Every offer of every group, cheapest first, judged for the classes; the simulation is left as it was."""
    learned, attaching = learned_allocatable(snapshot, policy.catalogue), Attaching(policy, snapshot)
    kinds = [
        (group, flavour, zone)
        for group in policy.groups
        if group.is_elastic
        for flavour in policy.flavours_of(group)
        if snapshot.headroom.sold is None or flavour.name in snapshot.headroom.sold
        for zone in (flavour.zones or (None,))
    ]
    kinds.sort(key=lambda kind: (kind[1].nanos_in(kind[2]), kind[1].name, kind[0].name, kind[2] or ""))
    topologies = [attaching.labels(group, zone, flavour.name) for group, flavour, zone in kinds]
    examples = {cls.static_key: cls for cls in classes}
    with sim.fork():
        nodes = [
            machine_node(
                policy,
                group,
                flavour,
                zone,
                f"offer-{i}",
                learned.get(flavour.name),
                attaching.limits(flavour.name),
                topologies[i],
            )
            for i, (group, flavour, zone) in enumerate(kinds)
        ]
        rows = sim.add_nodes(nodes)
        free = sim.table.free[:, rows.start : rows.stop].copy()
        allowed = {key: sim.would_take(cls)[rows.start : rows.stop].copy() for key, cls in examples.items()}
    return [
        Offer(
            group,
            flavour,
            zone,
            nodes[i].allocatable,
            nodes[i].attach_limits,
            topologies[i],
            np.ascontiguousarray(free[:, i]),
            {key: bool(mask[i]) for key, mask in allowed.items()},
        )
        for i, (group, flavour, zone) in enumerate(kinds)
    ]
