"""A daemon that is killed in an outage, and started again on the same disk."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path

from htas.adapters.write_behind.shipping import ShippingTiming
from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.disruptions import Drain, drains_of
from tests.builders import NOW
from tests.contracts.test_store_port import claim, cycle, row
from tests.far_store import FarStore, Line, far_store
from tests.unit.adapters.write_behind.conftest import Start

OUTAGE_AT = 10


def write_for_ever(folder: Path, told: Connection) -> None:
    """Tell of each number once all its writes have returned; from some number on nobody answers."""
    line = Line(far_store(folder))
    store = WriteBehindStore(str(folder / "mine.db"), line.opened, timing=ShippingTiming(first_pause_s=0.01))
    store.catch_up(30.0)
    number = 0
    while True:
        number += 1
        line.is_away = number > OUTAGE_AT
        store.put_claim(claim(f"c{number}"))
        store.put_disruption(Drain(f"n{number}", f"c{number}", "Empty", NOW))
        store.add_profile([row(f"n{number}", NOW + number)])
        store.add_cycle(cycle(NOW + number))
        told.send(number)


def test_what_was_acknowledged_in_an_outage_survives_a_kill(tmp_path: Path, start: Start, far: FarStore) -> None:
    context = multiprocessing.get_context("spawn")
    told, tell = context.Pipe(duplex=False)
    writer = context.Process(target=write_for_ever, args=(tmp_path, tell))
    writer.start()
    tell.close()
    acknowledged = 0
    while acknowledged < 4 * OUTAGE_AT:
        acknowledged = told.recv()
    writer.kill()
    writer.join(30)
    told.close()
    assert len(far.claims()) <= OUTAGE_AT
    store = start()
    assert store.flush(10.0)
    wanted = set(range(1, acknowledged + 1))
    assert wanted <= {int(found.id[1:]) for found in far.claims()}
    assert wanted <= {int(found.node[1:]) for found in drains_of(far.disruptions())}
    assert wanted <= {int(found.event_time - NOW) for found in far.profile()}
    assert wanted <= {int(found.at - NOW) for found in far.cycles(limit=10**6)}
    assert list(store.claims()) == list(far.claims())
    assert {found.version for found in far.claims()} == {1}
