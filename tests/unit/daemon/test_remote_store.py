"""What people are told of a store that may be away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.adapters.write_behind.store import WriteBehindStore
from htas.daemon.telemetry.metrics import Metrics
from htas.daemon.wiring.remote_store import attend, begin, behind_buffer
from tests.builders import NOW
from tests.contracts.test_store_port import claim, cycle
from tests.far_store import Line, far_store
from tests.waiting import until


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    far = far_store(tmp_path)
    yield Line(far)
    far.close()


def test_an_outage_shows_in_metrics_and_in_the_probes_body(line: Line, tmp_path: Path) -> None:
    metrics = Metrics()
    store = behind_buffer(line.opened, str(tmp_path / "buffer.db"), 1 << 20)
    assert isinstance(store, WriteBehindStore)
    remark = attend(store, metrics.store)
    begin(store)
    store.put_claim(claim())
    assert remark() == ""
    line.is_away = True
    store.add_cycle(cycle(NOW))
    until(lambda: store.state().is_away)
    assert remark().startswith("store away since 2")
    assert remark().endswith("Z, 1 entries are queued: nobody answers")
    text = metrics.render().decode()
    for each in ("htas_store_away 1.0", "htas_store_outbox_entries 1.0", "htas_store_dropped_total 0.0"):
        assert f"\n{each}\n" in text
    assert "htas_store_outbox_bytes 0.0" not in text
    assert "htas_store_write_seconds_count 0.0" not in text
    line.is_away = False
    store.close()
    assert "htas_store_outbox_entries 0.0" in metrics.render().decode()


def test_a_store_on_this_machine_is_never_away() -> None:
    metrics, store = Metrics(), SqliteStore(":memory:")
    remark = attend(store, metrics.store)
    begin(store)
    store.put_claim(claim())
    assert remark() == ""
    assert "htas_store_away 0.0" in metrics.render().decode()
    store.close()
