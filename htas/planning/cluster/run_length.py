"""How long a batch pod runs, and how much of it is left."""

from __future__ import annotations

import math

import msgspec

from htas.model.moves import MigrationMethod
from htas.model.pods import KIND_OF_OWNER, Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import Policy

LEAST_CONFIDENCE = 0.5
"""The share of runs near an estimate from which it says how long the next one takes."""

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
    """A pod as it is where it is moved to: with what is left of its run, or with all of it where it begins again.

    All of it is no less than it has run already and what is left: one that has outrun its estimate does so again.
    """
    if pod.kind is not WorkKind.BATCH or not (method.keeps_progress or has_outrun(pod, policy, now)):
        return pod
    elapsed = 0.0 if method.keeps_progress or pod.started_at is None else now - pod.started_at
    source = pod.run_length.source if pod.run_length is not None else RunLengthSource.DEFAULT
    return msgspec.structs.replace(pod, run_length=RunLength(elapsed + remaining_s(pod, policy, now), source))


def has_outrun(pod: Pod, policy: Policy, now: float) -> bool:
    """Whether a pod runs for longer than it was expected to."""
    return pod.started_at is not None and now - pod.started_at >= run_length_s(pod, policy)


def may_begin_again(pod: Pod, policy: Policy, now: float) -> bool:
    """Whether so much is known of a pod's end that what it loses by beginning again can be weighed.

    What is left must be told by itself or by most runs of its own template or image, and it must not have outrun that.
    An executor known by its kind of owner alone, 574 s, was evicted after 55 minutes, again after six, and ran for four
    hours in all where it takes one. A service has no end, and who has not begun loses nothing.
    """
    if pod.kind is WorkKind.SERVICE or pod.started_at is None:
        return True
    known = pod.run_length
    if known is None or has_outrun(pod, policy, now):
        return False
    if known.source is RunLengthSource.LEARNED:
        return known.basis != KIND_OF_OWNER and known.confidence >= LEAST_CONFIDENCE
    return known.source is RunLengthSource.ANNOTATION
