"""Algorithm 4, batch node group autoscaling: Algorithm 3 for what the nodes of bin 0 do not cover.

The whole *capacity* of those nodes is deducted, as printed, not what is free of it: by the end of the scaling cycle
their work is to have ended. Jobs of up to five minutes lie in bin 0 from their start, and so do nodes without work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from htas.model.nodes import Node
from htas.planning.cluster.classes import PodClass
from htas.planning.provision.offers import Offer
from tools.lab.baselines.as_printed.ga import asked_for, covering
from tools.lab.baselines.as_printed.score import Score


def batch_autoscaling(
    pods: Iterable[PodClass], zero_bin: Iterable[Node], flavours: Sequence[Offer], score: Score
) -> list[Offer]:
    """The machines to buy, in order; `zero_bin` are the nodes whose work ends within the scaling cycle."""
    left = asked_for(pods)  # lines 1 and 2
    for node in zero_bin:  # lines 3 and 6
        left -= node.allocatable  # lines 4 and 5
    return covering(left, flavours, score)  # lines 7 to 16
