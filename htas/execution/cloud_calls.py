"""Calls to the cloud: made beside the cycle, one at a time for each machine, and not again at once when one fails."""

from __future__ import annotations

from collections.abc import Callable

from htas.execution.backoff import NO_PAUSE, Pause
from htas.execution.calls import Call, Calls, Question
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.ports import Clock

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0
"""Between calls about one machine that fail: doubling."""
LONGEST_DELETE_PAUSE_S = 300.0
"""The same for deletes: one that is refused for days costs twelve calls an hour. Once the cloud answers again after it
was away, all are made at once (`resume`)."""


def _guarded(subject: str, call: Call) -> Outcome:
    """A defect of ours is one call's outcome: it must not swallow the answers of others."""
    try:
        return call()
    except Exception as error:
        return Outcome(Action.CALL, subject, OutcomeStatus.FAILED, f"a defect of htas: {error!r}")


class CloudCalls:
    """Begins calls and hands out their answers. Their subjects are claims, or machines that no claim knows."""

    def __init__(self, calls: Calls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._under_way: set[str] = set()
        self._pauses: dict[str, Pause] = {}

    @property
    def under_way(self) -> frozenset[str]:
        """Whom the cloud is being asked about at this moment."""
        return frozenset(self._under_way)

    def begin(self, subject: str, call: Call, longest_pause_s: float = LONGEST_PAUSE_S) -> None:
        """Make a call; not, where one about the same subject failed a moment ago.

        Without that pause a call refused at once would bring its answer, which brings a cycle, which would make the
        call again.
        """
        pause = self._pauses.get(subject, NO_PAUSE)
        if self._clock.now() < pause.until:
            return
        self._under_way.add(subject)

        def made() -> Outcome:
            try:
                outcome = _guarded(subject, call)
                if outcome.status is OutcomeStatus.FAILED:
                    self._pauses[subject] = pause.after(self._clock.now(), FIRST_PAUSE_S, longest_pause_s)
                else:
                    self._pauses.pop(subject, None)
                return outcome
            finally:
                self._under_way.discard(subject)

        self._calls.later(made)

    def ask(self, question: Question) -> None:
        """Ask the cloud something that is about no machine."""

        def made() -> Outcome | None:
            try:
                return question()
            except Exception as error:
                return Outcome(Action.CALL, "", OutcomeStatus.FAILED, f"a defect of htas: {error!r}")

        self._calls.later(made)

    def resume(self) -> None:
        """The cloud answers again: what failed while it did not may be asked for at once."""
        self._pauses.clear()

    def forget(self, subject: str) -> None:
        """Nothing will be asked about it any more."""
        self._pauses.pop(subject, None)

    def answers(self) -> list[Outcome]:
        """What has come of calls since the last time."""
        return self._calls.done()

    def has_answers(self) -> bool:
        """Whether `answers` would return any."""
        return self._calls.has_done()

    def on_answer(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, by the thread that made it, when a call has ended."""
        self._calls.on_done(wake)
