"""Algorithm 3, GA: the flavour of the highest score, again and again, until the volume asked for is covered.

The volume alone is covered: whether each pod finds a machine that holds it is never asked. Three jobs of 0.6 GiB are
1.8 GiB, for which two machines of 1 GiB are bought, and the third job waits for the next scaling cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from htas.model.resources import Resources
from htas.planning.cluster.classes import CPU_ROW, MEMORY_ROW, PodClass
from htas.planning.provision.offers import Offer
from tools.lab.baselines.as_printed.score import Score


def ga(pods: Iterable[PodClass], flavours: Sequence[Offer], score: Score) -> list[Offer]:
    """The machines to buy, in order."""
    return covering(asked_for(pods), flavours, score)


def asked_for(pods: Iterable[PodClass]) -> Resources:
    """Lines 1 and 2: the sums of CPU and of memory requests."""
    requests = [pod.requests for pod in pods]
    return Resources(sum(int(each[CPU_ROW]) for each in requests), sum(int(each[MEMORY_ROW]) for each in requests))


def covering(left: Resources, flavours: Sequence[Offer], score: Score) -> list[Offer]:
    """Lines 3 to 9; nothing where nothing is for sale."""
    combination: list[Offer] = []
    while (left.cpu_m > 0 or left.memory_bytes > 0) and flavours:  # line 3
        chosen = max(flavours, key=lambda flavour: score(flavour, left))  # line 4
        left -= chosen.allocatable  # lines 5 and 6
        combination.append(chosen)  # line 7
    return combination  # line 9
