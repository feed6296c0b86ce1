"""A world that refuses, times out, answers too late or lies: each kind of call with each kind of answer.

For an hour every call of one kind is answered so, in the middle of ten jobs; then all is well again. In the end every
job has ended once, no machine and no entry of the journal is left, and whatever was up to, nothing is over-committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from htas.model.migrations import Refusal
from htas.ports import (
    CapacityError,
    ConflictError,
    HTASError,
    MoveRefusedError,
    NotFoundError,
    NotYetError,
    PermanentError,
    RefusedError,
    TransientError,
)
from tools.adversary.attack import Attack, Verdict, verdict
from tools.adversary.scene import DAY_S, HOUR_S, Scene, jobs

Answer = Callable[[Callable[..., Any], tuple[Any, ...]], Any]
"""What a call is answered with, given what would answer it truly and its arguments."""

BEGINS_S, ENDS_S = 400.0, 400.0 + HOUR_S
"""When answers are crooked: the first machines are up by then, and half of the jobs are still to come."""


class Between:
    """Stands in front of a port; calls of one name are answered by `answer`, as long as there is one."""

    def __init__(self, real: Any, call: str) -> None:
        self._real = real
        self._call = call
        self.answer: Answer | None = None
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if name != self._call or self.answer is None:
            return real
        return partial(self._answered, self.answer, real)

    def _answered(self, answer: Answer, real: Callable[..., Any], *arguments: Any) -> Any:
        self.asked += 1
        return answer(real, arguments)


def _refused(error: HTASError) -> Answer:
    def answer(_: Callable[..., Any], __: tuple[Any, ...]) -> Any:
        raise error

    return answer


def _lost(error: HTASError) -> Answer:
    """It is done, and the answer is lost."""

    def answer(real: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        real(*arguments)
        raise error

    return answer


def _now_and_then(error: HTASError, every: int) -> Answer:
    """All but each so-many-th call fail."""
    numbers = count(1)

    def answer(real: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if next(numbers) % every:
            raise error
        return real(*arguments)

    return answer


def _twice(real: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A proxy that repeats what it forwards, and hands on the first answer."""
    first = real(*arguments)
    with suppress(HTASError):
        real(*arguments)
    return first


AWAY = TransientError("it is away")


def answers() -> dict[str, Answer]:
    """Twenty kinds of answers. Made anew for each attack: some count."""
    return {
        "away": _refused(AWAY),
        "try in an hour": _refused(TransientError("slow down", retry_after_s=3600.0)),
        "try an hour ago": _refused(TransientError("slow down", retry_after_s=-3600.0)),
        "try never": _refused(TransientError("slow down", retry_after_s=float("inf"))),
        "no words": _refused(TransientError("")),
        "20,000 words": _refused(TransientError("word " * 20_000)),
        "control characters": _refused(PermanentError("\x00\x1b[2J\r\n\ud800")),
        "not yet": _refused(NotYetError("it has begun")),
        "never": _refused(PermanentError("you may not")),
        "refused": _refused(RefusedError("no such image")),
        "out of stock": _refused(CapacityError("no valid host was found")),
        "over quota": _refused(CapacityError("quota exceeded", is_quota=True)),
        "gone": _refused(NotFoundError("it is gone")),
        "conflict": _refused(ConflictError("somebody else was first")),
        "not movable": _refused(MoveRefusedError(next(iter(Refusal)), "not now")),
        "done, but timed out": _lost(AWAY),
        "done, but called a conflict": _lost(ConflictError("somebody else was first")),
        "done, but called gone": _lost(NotFoundError("it is gone")),
        "one call in three works": _now_and_then(AWAY, 3),
        "done twice": _twice,
    }


CALLS = {
    "provider": ("create", "delete", "instances", "headroom"),
    "cluster": ("observe", "bind", "evict", "nominate", "preempt", "set_draining", "set_up_node", "delete_node"),
    "store": (
        "claims",
        "put_claim",
        "put_claims",
        "disruptions",
        "put_disruption",
        "put_bill",
        "add_runs",
        "add_cycle",
    ),
}
"""Twenty kinds of calls, by the port they belong to."""


def crooked(port: str, call: str, name: str, answer: Answer) -> Verdict:
    """An hour of one call answered so."""
    scene = Scene(jobs(10, every_s=90.0))
    real = {"provider": scene.world.cloud, "cluster": scene.world.cluster, "store": scene.store}[port]
    between = Between(real, call)
    scene.between[port] = between
    scene.begin()
    scene.play(BEGINS_S)
    between.answer = answer
    scene.play(ENDS_S)
    between.answer = None
    scene.play_to_its_end(DAY_S)
    return verdict(f"asked {between.asked} times; {scene.told()}", scene.unfinished() | scene.broken())


@dataclass(frozen=True, slots=True)
class _Pair:
    port: str
    call: str
    answer: str

    def run(self) -> Verdict:
        return crooked(self.port, self.call, self.answer, answers()[self.answer])

    @property
    def name(self) -> str:
        return f"cloud: {self.call} is answered: {self.answer}"


def _pairs() -> Iterator[_Pair]:
    for port, calls in CALLS.items():
        for call in calls:
            for answer in answers():
                yield _Pair(port, call, answer)


def attacks() -> list[Attack]:
    """Each call with each answer; one answer for each call is quick."""
    each = list(_pairs())
    kinds = len(answers())
    quick = {number * kinds + (7 * number) % kinds for number in range(len(each) // kinds)}
    return [Attack(pair.name, pair.run, is_long=number not in quick) for number, pair in enumerate(each)]
