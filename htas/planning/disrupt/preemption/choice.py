"""The choice of node among those where preemption would help: kube-scheduler's rules, and the first of equals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from htas.model.pods import Pod

_OFFSET = 2**31
"""Added to each priority in their sum, so that three victims of priority -1 weigh more than two."""


@dataclass(frozen=True, slots=True)
class PreemptionCandidate:
    """A row, and who must leave it. `victims` are the most important first; `violations` break a disruption budget."""

    row: int
    victims: tuple[Pod, ...]
    violations: int = 0
    promised: int = 0
    """Pods of lower priority that are nominated to it: others have left for them already."""


def best(candidates: Iterable[PreemptionCandidate], now: float) -> PreemptionCandidate | None:
    """The candidate that costs least; the first of those that cost the same, None where there is none."""
    return min(candidates, key=lambda candidate: cost(candidate, now), default=None)


def cost(candidate: PreemptionCandidate, now: float) -> tuple[float, ...]:
    """By the rules in their order (pickOneNodeForPreemption).

    Fewest budgets broken; the lowest of the highest victims' priorities; the lowest sum of priorities; the fewest
    victims; the latest start among the earliest-started victims of the highest priority. Where what ends anyway is
    enough, nobody has to leave, and nothing costs less. Of equals, the one that is promised to the fewest.
    """
    victims, promised = candidate.victims, candidate.promised
    if not victims:
        return (0, -math.inf, 0, 0, -math.inf, promised)
    highest = max(pod.priority for pod in victims)
    began = min(start_of(pod, now) for pod in victims if pod.priority == highest)
    weight = sum(pod.priority + _OFFSET for pod in victims)
    return candidate.violations, highest, weight, len(victims), -began, promised


def by_importance(pod: Pod, now: float) -> tuple[object, ...]:
    """A sorting key, the most important first: higher priority, then the earlier start, then the name."""
    return -pod.priority, start_of(pod, now), pod.key


def start_of(pod: Pod, now: float) -> float:
    """When a pod began to run; one that has not yet begins now."""
    return now if pod.started_at is None else pod.started_at
