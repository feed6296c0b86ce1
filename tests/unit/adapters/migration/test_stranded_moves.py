"""Moves that the configuration has no place for any more: which are told of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.adapters.migration.documents import journalled
from htas.adapters.migration.engine import tell_stranded
from htas.adapters.migration.objects import Objects
from htas.model.migrations import MigrationState
from htas.model.moves import MigrationMethod
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request, refusal
from tests.unit.adapters.migration.pods import a_pod, a_record

CARRIED = {MigrationMethod.CHECKPOINT}


def told(answer: Answer, carried: set[MigrationMethod]) -> Sequence[Any]:
    """What is logged of the pods that the API server answers with."""

    def labelled(request: Request) -> Answer:
        assert request.query == {"labelSelector": "htas.io/moving"}
        return answer

    with FakeApiServer(labelled) as server, capture_logs() as logs:
        api = ApiServer(server.access(), RateLimit(1e9, 10**9), pause=lambda _: None)
        tell_stranded(Objects(api), carried)
    return logs


def pods(*states: MigrationState, journal: str | None = None) -> Answer:
    """A pod in each state of a move."""
    items = []
    for state in states:
        pod = a_pod()
        pod["metadata"] |= journalled(a_record(state))["metadata"]
        if journal is not None:
            pod["metadata"]["annotations"]["htas.io/migration"] = journal
        items.append(pod)
    return Answer(body={"items": items})


def test_a_move_by_a_method_that_is_gone_is_told_once() -> None:
    (line,) = told(pods(MigrationState.RESTORED, MigrationState.RESTORED), CARRIED)
    assert line["event"] == "no daemon continues a move"
    assert (line["pod"], line["method"], line["state"]) == ("default/train-x", "kubelet-checkpoint", "Restored")


@pytest.mark.parametrize(
    ("answer", "carried"),
    [
        pytest.param(pods(MigrationState.RESTORED), CARRIED | {MigrationMethod.KUBELET_CHECKPOINT}, id="carried on"),
        pytest.param(pods(MigrationState.DONE), CARRIED, id="over"),
        pytest.param(pods(MigrationState.RESTORED, journal="no journal"), CARRIED, id="somebody's own annotation"),
        pytest.param(pods(), CARRIED, id="none at all"),
    ],
)
def test_nothing_is_told_of_other_moves(answer: Answer, carried: set[MigrationMethod]) -> None:
    assert not told(answer, carried)


def test_a_server_that_does_not_answer_keeps_nobody_from_leading() -> None:
    (line,) = told(refusal(503), CARRIED)
    assert "cannot be looked for" in line["event"]
