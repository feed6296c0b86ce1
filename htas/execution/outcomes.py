"""What becomes of a call: never an exception, always an outcome."""

from __future__ import annotations

from collections.abc import Callable

from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.ports import HTASError, NotFoundError, TransientError


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
        return Outcome(action, subject, OutcomeStatus.FAILED, f"planned anew next cycle: {error}", target=target)
    return Outcome(action, subject, OutcomeStatus.DONE, message, target=target)
