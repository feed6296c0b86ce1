"""What becomes of a call: never an exception, always an outcome."""

from __future__ import annotations

from collections.abc import Callable

from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.ports import HTASError, TransientError


def attempted(action: Action, subject: str, act: Callable[[], object], message: str = "", target: str = "") -> Outcome:
    """Make a call that the next cycle repeats where it fails; `message` is told where it succeeds."""
    try:
        act()
    except TransientError as error:
        return Outcome(action, subject, OutcomeStatus.FAILED, f"tried again next cycle: {error}", target=target)
    except HTASError as error:
        return Outcome(action, subject, OutcomeStatus.FAILED, str(error), target=target)
    return Outcome(action, subject, OutcomeStatus.DONE, message, target=target)
