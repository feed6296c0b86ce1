"""The printed algorithms read otherwise, one place at a time: which reading reaches the paper's own figures?

docs/paper/as-printed.md has what each came to. They play only where they are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from htas.model.flavours import Catalogue
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.resources import Resources
from htas.planning.planner import Planner
from htas.planning.provision.offers import Offer
from tools.lab.baselines.as_printed import cycle
from tools.lab.baselines.as_printed.cycle import Reading, scaled_services
from tools.lab.baselines.as_printed.ga import asked_for
from tools.lab.baselines.as_printed.score import W1, W2, Score
from tools.lab.baselines.draft import Draft, fits_together

FIVE_MINUTES_S = 300.0
"""Section 4 (5): "a configurable period (e.g., 5 minutes)"."""


def cores_and_gib(flavour: Offer, left: Resources) -> float:
    """The score with usages in one unit for all flavours, which is 3.1.2's "cost per resource used"."""
    capacity = flavour.allocatable
    cores = min(max(left.cpu_m, 0), capacity.cpu_m) / 1000
    gib = min(max(left.memory_bytes, 0), capacity.memory_bytes) / 2**30
    return (W1 * cores + W2 * gib) / (flavour.price / 1e9) if flavour.price else float("inf")


def bought_pod_by_pod(
    draft: Draft, pods: Sequence[Pod], zero_bin: Sequence[Node], flavours: Sequence[Offer], score: Score
) -> list[Offer]:
    """Algorithm 3 over pods, not volumes: each machine is scored and counted by the pods it would hold together."""
    left, combination = list(pods), list[Offer]()
    while left and flavours:
        filled = [(flavour, fits_together(draft, flavour, left)) for flavour in flavours]
        chosen, held = max(filled, key=lambda each: score(each[0], asked_for(map(draft.book.class_of, each[1]))))
        if not held:
            return combination
        combination.append(chosen)
        keys = {pod.key for pod in held}
        left = [pod for pod in left if pod.key not in keys]
    return combination


def bought_beyond_zero_bin(
    draft: Draft, pods: Sequence[Pod], zero_bin: Sequence[Node], flavours: Sequence[Offer], score: Score
) -> list[Offer]:
    """Algorithm 4 over pods: those wait that the nodes of bin 0 would hold, were they empty."""
    return bought_pod_by_pod(draft, _beyond(draft, pods, zero_bin), (), flavours, score)


def _beyond(draft: Draft, pods: Sequence[Pod], zero_bin: Sequence[Node]) -> list[Pod]:
    rooms = [[node.allocatable.cpu_m, node.allocatable.memory_bytes] for node in zero_bin]
    left = []
    for pod in pods:
        cpu, memory = pod.requests.cpu_m, pod.requests.memory_bytes
        room = next((room for room in rooms if room[0] >= cpu and room[1] >= memory), None)
        if room is None:
            left.append(pod)
        else:
            room[0] -= cpu
            room[1] -= memory
    return left


def readings(catalogue: Catalogue) -> Mapping[str, tuple[str, Policy, Planner]]:
    """Each reading by name: its title, its policy for a price list, and what plans by it."""
    by_pods = Reading(scale_services=bought_pod_by_pod, scale_batch=bought_beyond_zero_bin)
    both = replace(by_pods, score=cores_and_gib)
    read = {
        "cores-and-gib": ("usages in cores and GiB", Reading(score=cores_and_gib)),
        "no-zero-bin": ("nothing waits for bin 0", Reading(scale_batch=scaled_services)),
        "pod-by-pod": ("bought for pods", by_pods),
        "small-workers": ("the first workers are of the cheapest flavour", Reading(first_workers=cheapest)),
        "pod-by-pod-cores-and-gib": ("bought for pods, usages in cores and GiB", both),
        "pod-by-pod-cores-and-gib-small-workers": (
            "bought for pods, usages in cores and GiB, the first workers of the cheapest flavour",
            replace(both, first_workers=cheapest),
        ),
    }
    settings = cycle.settings(catalogue)
    made: dict[str, tuple[str, Policy, Planner]] = {
        name: (title, settings, partial(cycle.plan, reading=reading)) for name, (title, reading) in read.items()
    }
    patient = cycle.settings(catalogue, queue_empty_for_s=FIVE_MINUTES_S)
    return {**made, "five-minutes": ("cleaned once the queue has been empty for five minutes", patient, cycle.plan)}


def cheapest(catalogue: Catalogue) -> str:
    return min(catalogue.flavours, key=lambda flavour: (flavour.nanos_per_hour, flavour.name)).name
