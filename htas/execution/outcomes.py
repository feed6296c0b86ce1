"""What becomes of a call: never an exception, always an outcome."""

from __future__ import annotations

from collections.abc import Callable

from htas.model.record import Outcome, OutcomeStatus
from htas.ports import HTASError, TransientError


def attempted(verb: str, subject: str, act: Callable[[], object], message: str = "") -> Outcome:
    """Make a call that the next cycle repeats where it fails; `message` is told where it succeeds."""
    try:
        act()
    except TransientError as error:
        return Outcome(verb, subject, OutcomeStatus.FAILED, f"tried again next cycle: {error}")
    except HTASError as error:
        return Outcome(verb, subject, OutcomeStatus.FAILED, str(error))
    return Outcome(verb, subject, OutcomeStatus.DONE, message)
