"""How calls to the world are made: one after another (virtual time), or several at once over kept-alive connections.

What becomes of one is never an exception, always an outcome (`attempted`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.ports import HTASError, NotFoundError, TransientError

Call = Callable[[], Outcome]
"""One effect. It turns HTAS's errors into outcomes itself and raises nothing but defects."""
Question = Callable[[], Outcome | None]
"""A call that may come to no outcome: who asked has the answer."""


LEADS_NO_MORE = Outcome(Action.CALL, "", OutcomeStatus.DROPPED, "leads no more")


class Calls(Protocol):
    def all(self, calls: Iterable[Call]) -> list[Outcome]:
        """Make the calls, wait for them, and return their outcomes in the same order."""
        ...

    def later(self, call: Question) -> None:
        """Make a call that nobody waits for; its outcome, if any, comes with `done`."""
        ...

    def done(self) -> list[Outcome]:
        """Outcomes of calls made by `later` that have ended since the last time."""
        ...

    def has_done(self) -> bool:
        """Whether `done` would return any."""
        ...

    def on_done(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, by the thread that made it, when such a call has ended."""
        ...

    def close(self) -> None:
        """Wait for the calls under way; those that have not begun are dropped, and taken up by the next start."""
        ...


class DirectCalls:
    """Each call is made at once, in this thread: what the sandbox's virtual time needs to be the same every time."""

    def __init__(self) -> None:
        self._done: list[Outcome] = []

    def all(self, calls: Iterable[Call]) -> list[Outcome]:
        return [call() for call in calls]

    def later(self, call: Question) -> None:
        outcome = call()
        if outcome is not None:
            self._done.append(outcome)

    def done(self) -> list[Outcome]:
        done, self._done = self._done, []
        return done

    def has_done(self) -> bool:
        return bool(self._done)

    def on_done(self, wake: Callable[[], None]) -> None:
        pass  # they have ended when `later` returns

    def close(self) -> None:
        pass


class ParallelCalls:
    """Up to `workers` calls at one time; none is begun that `may_act` forbids (another daemon may lead by then)."""

    def __init__(self, workers: int, may_act: Callable[[], bool] = lambda: True) -> None:
        self._may_act = may_act
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="call")
        self._under_way: list[Future[Outcome | None]] = []
        self._wake: Callable[[], None] = lambda: None

    def all(self, calls: Iterable[Call]) -> list[Outcome]:
        return [future.result() for future in [self._pool.submit(self._made, call) for call in calls]]

    def later(self, call: Question) -> None:
        future = self._pool.submit(self._asked, call)
        self._under_way.append(future)
        future.add_done_callback(lambda _: self._wake())

    def done(self) -> list[Outcome]:
        ended: list[Future[Outcome | None]] = []
        under_way: list[Future[Outcome | None]] = []
        for future in self._under_way:  # asked once: one may end between two looks
            (ended if future.done() else under_way).append(future)
        self._under_way = under_way
        outcomes = (future.result() for future in ended if not future.cancelled())
        return [outcome for outcome in outcomes if outcome is not None]

    def has_done(self) -> bool:
        return any(future.done() for future in self._under_way)

    def on_done(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _made(self, call: Call) -> Outcome:
        return call() if self._may_act() else LEADS_NO_MORE

    def _asked(self, call: Question) -> Outcome | None:
        return call() if self._may_act() else LEADS_NO_MORE


def attempted(action: Action, subject: str, act: Callable[[], object], message: str = "", target: str = "") -> Outcome:
    """Make a call that the next cycle repeats where it fails; `message` is told where it succeeds."""
    try:
        act()
    except TransientError as error:
        return Outcome(action, subject, OutcomeStatus.FAILED, f"tried again next cycle: {error}", target=target)
    except HTASError as error:
        return Outcome(action, subject, OutcomeStatus.FAILED, str(error), target=target)
    return Outcome(action, subject, OutcomeStatus.DONE, message, target=target)


def attempted_once(
    action: Action, subject: str, act: Callable[[], object], message: str = "", target: str = ""
) -> Outcome:
    """Make a call that the next plan decides anew about where it fails; what is gone already is dropped."""
    try:
        act()
    except NotFoundError as error:
        return Outcome(action, subject, OutcomeStatus.DROPPED, str(error), target=target)
    except HTASError as error:
        return Outcome(action, subject, OutcomeStatus.FAILED, f"planned again next cycle: {error}", target=target)
    return Outcome(action, subject, OutcomeStatus.DONE, message, target=target)
