"""Today's Kubernetes: kube-scheduler's defaults and Cluster Autoscaler 1.37 with one node group for each flavour.

Source: Cluster Autoscaler, estimator/binpacking_estimator.go, expander/waste/waste.go and the defaults of its FAQ.
Every ten seconds, for what finds no room and no machine on its way: for each flavour, as many machines as first-fit
decreasing opens for it; the flavour that wastes least of CPU and memory is bought, all of its machines at once, and
what it cannot hold waits for the next loop. Flavours are never mixed in one decision. Every group may shrink to
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htas.model.flavours import Catalogue
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Cycles, NodeGroup, Policy
from htas.model.snapshot import ClusterSnapshot
from htas.model.stages import Stage
from htas.planning.provision.offers import Offer
from tools.lab.baselines.draft import Draft, fits_together
from tools.lab.baselines.orders import FirstFit
from tools.lab.baselines.scale_down import AS_SHIPPED, ScaleDown, scale_down


def settings(catalogue: Catalogue) -> Policy:
    """Pods are placed as they come; the loop has its default scan interval of ten seconds."""
    cycles = Cycles(scheduling_s=10.0, autoscaling_s=10.0, cleaning_s=10.0)
    return Policy("cluster-autoscaler", catalogue, (NodeGroup("workers"),), cycles=cycles)


def plan(snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]) -> Plan:
    return plan_with(AS_SHIPPED, snapshot, policy, now, stages)


def plan_with(
    flags: ScaleDown, snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage]
) -> Plan:
    """The same loop with other flags; pods are placed in the order by which nodes are judged for scaling down."""
    draft = Draft(snapshot, policy, now)
    left = draft.place(draft.waiting, draft.there, flags.order)
    short = draft.place(left, draft.coming, FirstFit())
    option = _least_waste(draft, short) if short and Stage.AUTOSCALING in stages else None
    if option is not None:
        for pods in option.machines:
            draft.buy(option.offer, pods)
        held = {pod.key for pods in option.machines for pod in pods}
        short = [pod for pod in short if pod.key not in held]
    draft.leave(short)
    memory = scale_down(draft, is_due=Stage.CLEANING in stages and option is None, flags=flags)
    return draft.written(memory)


@dataclass(frozen=True, slots=True)
class Option:
    """What one flavour would come to: its machines, each with its pods."""

    offer: Offer
    machines: list[list[Pod]]

    @property
    def pods(self) -> int:
        return sum(map(len, self.machines))

    @property
    def waste(self) -> float:
        """Shares of CPU and of memory that would stay unused, added up."""
        capacity, count = self.offer.allocatable, len(self.machines)
        cpu_m = sum(pod.requests.cpu_m for pods in self.machines for pod in pods)
        memory = sum(pod.requests.memory_bytes for pods in self.machines for pod in pods)
        return 2 - cpu_m / (capacity.cpu_m * count) - memory / (capacity.memory_bytes * count)


def _least_waste(draft: Draft, pods: Sequence[Pod]) -> Option | None:
    """The option that wastes least; of equals the one that holds more pods, then the cheaper."""
    options = [option for offer in draft.offers if (option := estimate(draft, offer, pods)) is not None]
    return min(options, key=lambda option: (option.waste, -option.pods, option.offer.price), default=None)


def estimate(draft: Draft, offer: Offer, pods: Sequence[Pod]) -> Option | None:
    """Machines that first-fit decreasing opens for pods, within the limits; None: the flavour holds none of them.

    Decreasing by the sum of the shares of a machine's CPU and memory. Filling machine after machine with all that fits,
    in that order, opens the machines that first fit opens.
    """
    capacity = offer.allocatable

    def size(pod: Pod) -> float:
        return pod.requests.cpu_m / capacity.cpu_m + pod.requests.memory_bytes / capacity.memory_bytes

    left, machines = sorted(pods, key=lambda pod: (-size(pod), pod.key)), list[list[Pod]]()
    while left and draft.may_buy(offer, len(machines) + 1):
        taken = fits_together(draft, offer, left)
        if not taken:
            break
        machines.append(taken)
        keys = {pod.key for pod in taken}
        left = [pod for pod in left if pod.key not in keys]
    return Option(offer, machines) if machines else None
