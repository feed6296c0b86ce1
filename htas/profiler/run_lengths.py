"""Run lengths learned from pods that ended well: what the last runs of a template took, the next one takes.

A history is kept of each template (namespace, owner's template, image, requests), each image and each kind of owner.
Of a pod the first of the three that has enough runs speaks. Newer runs weigh more: one counts half as much as one
`half_life` runs newer. Not safe from several threads: it belongs to the thread that runs the cycles.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import fsum
from operator import is_

import msgspec

from htas.model.pods import IMAGE, KIND_OF_OWNER, TEMPLATE, Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import MOST_RUNS, RunLengths
from htas.model.record import Run

MOST_HISTORIES = 4096
"""Full ones of 64 runs, none of them shared, hold 60 MB; the least recently used go first."""
CLOSE = 0.25
"""A run that ended within this share of the estimate bears it out."""

Key = tuple[str | int, ...]
"""What runs have in common: its basis first, as `RunLength.basis` has it."""
Lapse = tuple[float, float, str]
"""A run as it is remembered: when it ended, how long it took, its pod's uid."""


class LearnedRunLengths:
    """Learns from runs and puts estimates into pods."""

    def __init__(self, settings: RunLengths, most_histories: int = MOST_HISTORIES) -> None:
        self._settings = settings
        self._most = most_histories
        self._weights = _weights(settings)
        self._histories: OrderedDict[Key, _History] = OrderedDict()
        self._given = _Given()
        self.revision = 0
        """Grows when any estimate may have changed."""

    def adopt(self, settings: RunLengths) -> None:
        """Go on with new settings; what has been learned stays, estimates in use are made anew."""
        if settings == self._settings:
            return
        self._settings = settings
        self._weights = _weights(settings)
        for history in self._histories.values():
            history.estimate = None
        self._given = _Given()
        self.revision += 1

    def learn(self, runs: Iterable[Run]) -> None:
        """Take in runs in any order; those that are no batch work or did not end well teach nothing.

        A run told twice counts once, so that what is read back from a store may overlap with what was seen.
        """
        for run in runs:
            seconds = run.ended_at - run.began_at
            if run.succeeded is not True or run.kind is not WorkKind.BATCH or seconds < 0:
                continue
            lapse = (run.ended_at, seconds, run.uid)
            keys = _keys(run.namespace, run.owner, run.image, run.cpu_m, run.memory_bytes)
            news = [self._history(key).add(lapse) for key in keys]
            self.revision += any(news)

    def estimate(self, pod: Pod) -> RunLength | None:
        """What was learned of a pod's like; None for services, and where too little was learned."""
        if pod.kind is not WorkKind.BATCH or not self._settings.learn:
            return None
        return self._look_up(_likeness(pod))

    def applied(self, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """Pods with what was learned in its place: after an annotation, before a deadline and the default.

        A deadline sooner than the estimate stays. A pod that has a node keeps the estimate with which it came there:
        were it to change, its node would go from one time bin to another, and what was placed beside it for ending at
        the same time would not any more. One that waits has the newest. Returns the very tuple of last time where
        nothing has changed since: 100,000 pods are compared in about 10 ms.
        """
        if not self._settings.learn:
            return pods
        given = self._given
        if given.revision == self.revision and _are_same(pods, given.pods):
            return given.applied
        if given.revision != self.revision:
            self._ask_again()
        # Two passes of C: of 100,000 pods all but a few are found.
        result = list(map(given.results.get, map(id, pods)))
        told = tuple(self._tell(pods[at]) if found is None else found for at, found in enumerate(result))
        given.remember(pods, told, self.revision)
        return given.applied

    def _history(self, key: Key) -> _History:
        found = self._histories.get(key)
        if found is None:
            found = self._histories[key] = _History()
            if len(self._histories) > self._most:
                self._histories.popitem(last=False)
        else:
            self._histories.move_to_end(key)
        return found

    def _look_up(self, likeness: Likeness) -> RunLength | None:
        for key in _keys(*likeness):
            history = self._histories.get(key)
            if history is not None and len(history.lapses) >= self._settings.min_runs:
                self._histories.move_to_end(key)
                if history.estimate is None:
                    history.estimate = _estimate(history.lapses, self._weights, self._settings.quantile, str(key[0]))
                return history.estimate
        return None

    def _ask_again(self) -> None:
        """Forget what was given to pods whose like has another estimate now."""
        for likeness, answer in self._given.answers.items():
            found = self._look_up(likeness)
            if found != answer.estimate:
                answer.estimate = found
                for number in answer.followers:
                    self._given.results.pop(number, None)
                answer.followers.clear()

    def _tell(self, pod: Pod) -> Pod:
        """A pod that is new, or whose like has another estimate now, with what it is given."""
        length, result = pod.run_length, pod
        if pod.kind is WorkKind.BATCH and (length is None or length.source is not RunLengthSource.ANNOTATION):
            estimate = self._estimate_for(pod)
            if estimate is not None:
                self._given.last[_identity(pod)] = estimate
            result = _with(pod, estimate)
        self._given.pods_by_number[id(pod)] = pod
        self._given.results[id(pod)] = result
        return result

    def _estimate_for(self, pod: Pod) -> RunLength | None:
        """What it came with to its node, else what is known of its like by now."""
        given = self._given
        kept = given.last.get(_identity(pod)) if pod.node is not None else None
        if kept is not None:
            return kept
        likeness = _likeness(pod)
        answer = given.answers.get(likeness)
        if answer is None:
            answer = given.answers[likeness] = _Answer(self._look_up(likeness))
        if pod.node is None or answer.estimate is None:
            answer.followers.append(id(pod))
        return answer.estimate


Likeness = tuple[str, str, str, int, int]
"""Namespace, template, image, CPU and memory: pods alike in these have one estimate."""


def _likeness(pod: Pod) -> Likeness:
    return pod.namespace, pod.template, pod.image, pod.requests.cpu_m, pod.requests.memory_bytes


def _keys(namespace: str, template: str, image: str, cpu_m: int, memory_bytes: int) -> Iterator[Key]:
    """Best first. A pod without a template is known by its image alone."""
    if template:
        yield TEMPLATE, namespace, template, image, cpu_m, memory_bytes
    if image:
        yield IMAGE, namespace, image  # one team's busybox ends in a second, another's runs for hours
    if template:
        yield KIND_OF_OWNER, namespace, template.partition("/")[0]


class _History:
    """The newest runs of one key, oldest first, and the estimate made of them (None: not made yet)."""

    __slots__ = ("estimate", "lapses")

    def __init__(self) -> None:
        self.lapses: list[Lapse] = []
        self.estimate: RunLength | None = None

    def add(self, lapse: Lapse) -> bool:
        """Whether it was news: neither known nor older than all that a full history holds."""
        at = bisect_left(self.lapses, lapse)
        if (at < len(self.lapses) and self.lapses[at] == lapse) or (at == 0 and len(self.lapses) == MOST_RUNS):
            return False
        self.lapses.insert(at, lapse)
        if len(self.lapses) > MOST_RUNS:
            del self.lapses[0]
        self.estimate = None
        return True


def _weights(settings: RunLengths) -> list[float]:
    """Those of a run by its age in runs: 1, then less; half of that `half_life` runs later."""
    return [0.5 ** (age / settings.half_life) for age in range(MOST_RUNS)]


def _estimate(lapses: list[Lapse], weights: list[float], quantile: float, basis: str) -> RunLength:
    """The shortest of the runs such that it and those shorter carry at least the quantile of all weight."""
    lengths = sorted((seconds, weights[age]) for age, (_, seconds, _) in enumerate(reversed(lapses)))
    total = fsum(weights[: len(lapses)])
    seconds, carried = lengths[-1][0], 0.0
    for length, weight in lengths:
        carried += weight
        if carried >= quantile * total:
            seconds = length
            break
    close = fsum(weight for length, weight in lengths if abs(length - seconds) <= CLOSE * seconds)
    return RunLength(seconds, RunLengthSource.LEARNED, basis, len(lapses), close / total)


@dataclass(slots=True)
class _Answer:
    """The estimate of pods alike, and which pods (by `id`) are to have another one once there is another."""

    estimate: RunLength | None
    followers: list[int] = field(default_factory=list)


class _Given:
    """What pods were given: by the object they came as (most come again unchanged), and last of all by their uid."""

    def __init__(self) -> None:
        self.revision = -1
        self.pods: tuple[Pod, ...] = ()
        self.applied: tuple[Pod, ...] = ()
        self.results: dict[int, Pod] = {}
        self.pods_by_number: dict[int, Pod] = {}
        """Those whose `id` is in use here: as long as they live, no other pod has it."""
        self.answers: dict[Likeness, _Answer] = {}
        self.last: dict[str, RunLength] = {}

    def remember(self, pods: tuple[Pod, ...], applied: tuple[Pod, ...], revision: int) -> None:
        if not _are_same(applied, self.applied):
            self.applied = pods if _are_same(applied, pods) else applied
        self.pods, self.revision = pods, revision
        if len(self.pods_by_number) > 2 * len(pods) + 1000:
            self._forget(pods)

    def _forget(self, pods: tuple[Pod, ...]) -> None:
        """Keep what present pods need: more than half of everything goes, so that it costs little a pod."""
        self.pods_by_number = {id(pod): pod for pod in pods}
        self.results = {number: self.results[number] for number in self.pods_by_number}
        kept = {_likeness(pod) for pod in pods}
        self.answers = {likeness: answer for likeness, answer in self.answers.items() if likeness in kept}
        for answer in self.answers.values():
            answer.followers = [number for number in answer.followers if number in self.results]
        present = {_identity(pod) for pod in pods}
        self.last = {uid: estimate for uid, estimate in self.last.items() if uid in present}


def _identity(pod: Pod) -> str:
    return pod.uid or pod.key


def _with(pod: Pod, estimate: RunLength | None) -> Pod:
    """Only a deadline can stand there already: where it comes sooner it ends the pod, whatever was learned."""
    deadline = pod.run_length
    if estimate is None or (deadline is not None and deadline.seconds <= estimate.seconds):
        return pod
    return msgspec.structs.replace(pod, run_length=estimate)


def _are_same(some: tuple[Pod, ...], others: tuple[Pod, ...]) -> bool:
    """Whether they hold the same objects in the same order; equality would compare every field."""
    return some is others or (len(some) == len(others) and all(map(is_, some, others)))
