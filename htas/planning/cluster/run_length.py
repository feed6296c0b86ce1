"""How long a batch pod runs, and how much of it is left."""

from __future__ import annotations

import math

from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy

LONGEST_S = 10 * 365 * 86_400.0
"""Ten years: what anybody may write into an annotation must stay a number that plans can be made with."""


def run_length_s(pod: Pod, policy: Policy) -> float:
    """The estimated run length in seconds; services run for ever (inf)."""
    if pod.kind is WorkKind.SERVICE:
        return math.inf
    seconds = pod.run_length.seconds if pod.run_length is not None else policy.run_lengths.default_s
    return min(seconds, LONGEST_S)


def remaining_s(pod: Pod, policy: Policy, now: float) -> float:
    """What is left of a pod's run: all of it before it starts, inf for services.

    A pod that has outrun its estimate is not believed any more: what is left is taken to be as long as it has run
    already, so that a node under a wrong estimate never looks as if it were about to be free.
    """
    length = run_length_s(pod, policy)
    if pod.started_at is None or math.isinf(length):
        return length
    elapsed = max(0.0, now - pod.started_at)
    return length - elapsed if elapsed < length else elapsed
