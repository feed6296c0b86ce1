"""Document 000's flow end to end: kube-scheduler leaves pods pending, HTAS moves what runs and places what it can."""

from __future__ import annotations

from time import monotonic

import pytest

from htas.model.policy import Engine
from tests.real.conftest import Tell
from tools.bench.priority_clusters import play
from tools.bench.priority_document import Document
from tools.bench.priority_instances import Cell, instances

pytestmark = pytest.mark.timeout(180)


def test_what_kube_scheduler_leaves_pending_is_placed_as_the_documents_own_model_proves_best(tell: Tell) -> None:
    """Four nodes of four pods at 95 %; kube-scheduler as it is, then HTAS with nothing to buy."""
    told: list[str] = []
    flow = play(next(instances(Cell(4, 4, 4, 0.95), 1)), Engine.DECOMPOSITION, told.append)
    tell("\n".join(told))
    began = monotonic()
    best = Document(flow.instance, 20.0, 1, elapsed=lambda: monotonic() - began, pace=1.0).run()
    assert best.is_placing_proven, "else there is nothing to compare with"
    assert flow.after == best.placed, "pods placed by priority, from the highest"
    assert flow.after >= flow.before
    assert flow.over_full == (), "no node ever had more promised than it has"
