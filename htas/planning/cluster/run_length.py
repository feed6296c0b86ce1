"""How long a batch pod runs, and how much of it is left."""

from __future__ import annotations

import math

import msgspec

from htas.model.moves import MigrationMethod
from htas.model.pods import Pod, RunLength, RunLengthSource, WorkKind
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


def as_moved(pod: Pod, method: MigrationMethod, policy: Policy, now: float) -> Pod:
    """A pod as it is where it is moved to: with what is left of its run, or with all of it where it begins again."""
    if pod.kind is not WorkKind.BATCH or not method.keeps_progress:
        return pod
    source = pod.run_length.source if pod.run_length is not None else RunLengthSource.DEFAULT
    return msgspec.structs.replace(pod, run_length=RunLength(remaining_s(pod, policy, now), source))
