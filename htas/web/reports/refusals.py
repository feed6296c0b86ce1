"""Which flavours would not take a waiting pod, and why: each as the node it would become, judged by the planner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from htas.model.money import price_text
from htas.model.pods import Pod
from htas.planning.cluster.machines import machine_node
from htas.planning.cluster.simulated import open_simulation
from htas.web.seat import Picture


class Refusal(msgspec.Struct, frozen=True):
    """A flavour of a node group. `why` is in kube-scheduler's words; empty: it would take the pod."""

    group: str
    flavour: str
    price_per_hour: str
    why: str


def refusals(pod: Pod, picture: Picture) -> Sequence[Refusal]:
    """Every flavour that some group may buy; those that would take the pod first, then by price."""
    return sorted(_judged(pod, picture), key=lambda each: (bool(each.why), float(each.price_per_hour), each.flavour))


def _judged(pod: Pod, picture: Picture) -> Iterator[Refusal]:
    snapshot, policy = picture.snapshot, picture.policy
    opening = open_simulation(snapshot, policy, snapshot.taken_at)
    pod_class = opening.book.class_of(pod)
    pairs = [(group, flavour) for group in policy.groups for flavour in policy.flavours_of(group)]
    takers = [group.name for group in policy.groups if group.workload.takes(pod.kind)]
    nodes = [
        machine_node(policy, group, flavour, next(iter(flavour.zones), None), f"offer-{i}")
        for i, (group, flavour) in enumerate(pairs)
    ]
    with opening.sim.fork():
        added = opening.sim.add_nodes(nodes)
        for (group, flavour), row in zip(pairs, range(added.start, added.stop), strict=True):
            told = ""
            if group.name not in takers:
                told = f"its group takes {group.workload.value} work alone"
            elif not opening.sim.feasible(pod_class, slice(row, row + 1)).any():
                told = ", ".join(sorted(opening.sim.diagnose(pod_class, slice(row, row + 1))))
            yield Refusal(group.name, flavour.name, price_text(flavour.nanos_per_hour), told)
