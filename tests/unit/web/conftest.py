"""A cluster of two nodes, seen once, behind a real listener with a token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.daemon.http.app import Endpoints, HttpServer
from htas.daemon.http.authorization import Gate
from htas.daemon.http.migrate_endpoint import MigrateEndpoint
from htas.daemon.http.optimize_endpoint import OptimizeEndpoint
from htas.daemon.telemetry.health import Health
from htas.daemon.telemetry.metrics import Metrics
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Cycles, Policy
from htas.model.record import Bill, CycleRecord
from htas.planning.planner import plan
from htas.ports import StorePort
from htas.web.seat import Seat, Seen
from tests.builders import (
    NOW,
    make_flavour,
    make_job,
    make_node,
    make_pod,
    make_policy,
    make_snapshot,
    owned_node,
    running,
)

POLICY: Policy = make_policy(
    flavours=[make_flavour("small", "4", "8Gi", "0.10"), make_flavour("large", "8", "32Gi", "0.30")]
)
SNAPSHOT = make_snapshot(
    [owned_node("a", flavour="small", cpu="4", memory="8Gi", created_at=NOW - 3600), make_node("foreign", "4", "8Gi")],
    [running(make_pod("web-1", "2", "4Gi"), "a"), running(make_job("job", 600), "a"), make_pod("huge", "64", "1Gi", scheduler="htas")],
)  # fmt: skip
TOKEN = "let-me-see-0123456789"


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    made = SqliteStore(":memory:")
    decided = plan(SNAPSHOT, POLICY, NOW)
    outcomes = (Outcome(Action.DRAIN, "b", OutcomeStatus.FAILED, "a budget refused"),)
    made.put_bill(Bill("a", "any", "small", 100_000_000, NOW - 3600))
    made.add_cycle(CycleRecord(0, NOW, ("scheduling", "autoscaling", "cleaning", "edge"), SNAPSHOT, decided, outcomes))
    yield made
    made.close()


@pytest.fixture
def seat(store: SqliteStore) -> Seat:
    @contextmanager
    def reading() -> Iterator[StorePort]:
        yield store

    return Seat("live", lambda: POLICY, reading, lambda: NOW)


@pytest.fixture
def saw(seat: Seat) -> Seat:
    seat.observe(Seen(SNAPSHOT, plan(SNAPSHOT, POLICY, NOW), (), number=1))
    return seat


@pytest.fixture
def url(seat: Seat, tmp_path: Path) -> Iterator[str]:
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    desks = Endpoints(Health(Cycles()), Metrics(), MigrateEndpoint(), OptimizeEndpoint(), seat)
    server = HttpServer(("127.0.0.1", 0), desks, Gate(token_file))
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()
