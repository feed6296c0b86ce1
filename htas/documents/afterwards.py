"""A cluster once what a plan places and buys is there. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Phase, Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.cluster.attaching import Attaching
from htas.planning.cluster.machines import learned_allocatable, machine_node
from htas.planning.cluster.simulated import open_simulation


def carried_out(view: ClusterView, made: Plan, policy: Policy) -> ClusterView:
    """The view once what the plan places and buys is there. Nothing is emptied yet: that is the next figure."""
    place = {item.pod: item.node for item in made.bind} | {item.pod: item.node for item in made.nominate}
    place |= {pod: item.claim for item in made.launches for pod in item.pods}
    machines = _machines(view, made, policy)
    there = {node.name for node in (*view.nodes, *machines)}
    pods = tuple(
        _runs(pod, place[pod.key], made.taken_at) if pod.node is None and place.get(pod.key) in there else pod
        for pod in view.pods
    )
    daemons = _daemons_on(machines, view, policy, made.taken_at)
    return msgspec.structs.replace(view, nodes=(*view.nodes, *machines), pods=(*pods, *daemons))


def _runs(pod: Pod, node: str, now: float) -> Pod:
    return msgspec.structs.replace(pod, node=node, started_at=now, phase=Phase.RUNNING)


def _machines(view: ClusterView, made: Plan, policy: Policy) -> list[Node]:
    """What is bought, each with what nodes of its flavour are known to offer: no more was counted on for its pods."""
    snapshot = ClusterSnapshot(made.taken_at, view)
    learned, attaching = learned_allocatable(snapshot, policy.catalogue), Attaching(policy, snapshot)
    found = []
    for item in made.launches:
        group, flavour = policy.group(item.group), policy.catalogue.named(item.flavour)
        if group is not None and flavour is not None:
            offered, limits = learned.get(flavour.name), attaching.limits(flavour.name)
            drivers = attaching.labels(group, item.zone, flavour.name)
            found.append(machine_node(policy, group, flavour, item.zone, item.claim, offered, limits, drivers))
    return found


def _daemons_on(machines: Sequence[Node], view: ClusterView, policy: Policy, now: float) -> Iterator[Pod]:
    """The DaemonSet pods of machines that are bought: without them each would seem to have room for more work."""
    if not machines:
        return
    sim = open_simulation(ClusterSnapshot(now, view), policy, now).sim
    with sim.fork():
        rows = sim.add_nodes(machines)
        running = [(cls.example, sim.allowed(cls)[rows.start : rows.stop]) for cls in sim.daemons]
    for i, node in enumerate(machines):
        left = node.allocatable
        for example, takes in running:
            if takes[i] and example.requests.fits_in(left):  # one that does not fit will not run there either
                left -= example.requests
                name = f"{example.name}-{node.name}"
                pod = msgspec.structs.replace(example, name=name, uid=name, created_at=now, is_mirror=False)
                yield _runs(pod, node.name, now)
