"""What becomes of a call: how an error is told, and whether the next cycle or the next plan takes it up."""

from __future__ import annotations

import pytest

from htas.execution.calls import attempted, attempted_once
from htas.model.outcomes import Action, OutcomeStatus
from htas.ports import HTASError, NotFoundError, PermanentError, TransientError

DONE, FAILED, DROPPED = OutcomeStatus.DONE, OutcomeStatus.FAILED, OutcomeStatus.DROPPED


@pytest.mark.parametrize(
    ("error", "repeated", "decided_anew"),
    [
        pytest.param(None, (DONE, "to n"), (DONE, "to n"), id="it worked"),
        pytest.param(
            TransientError("busy"),
            (FAILED, "tried again next cycle: busy"),
            (FAILED, "planned again next cycle: busy"),
            id="it may work later",
        ),
        pytest.param(
            PermanentError("no"), (FAILED, "no"), (FAILED, "planned again next cycle: no"), id="it will not work so"
        ),
        pytest.param(NotFoundError("gone"), (FAILED, "gone"), (DROPPED, "gone"), id="the object is gone"),
    ],
)
def test_what_becomes_of_a_call(
    error: HTASError | None, repeated: tuple[OutcomeStatus, str], decided_anew: tuple[OutcomeStatus, str]
) -> None:
    def act() -> None:
        if error is not None:
            raise error

    for attempt, told in ((attempted, repeated), (attempted_once, decided_anew)):
        outcome = attempt(Action.BIND, "default/p", act, "to n", "n")
        assert (outcome.action, outcome.subject, outcome.target) == (Action.BIND, "default/p", "n")
        assert (outcome.status, outcome.message) == told


def test_a_defect_of_ours_is_no_outcome_of_a_call() -> None:
    def act() -> None:
        raise KeyError("p")

    with pytest.raises(KeyError):
        attempted(Action.BIND, "default/p", act)
