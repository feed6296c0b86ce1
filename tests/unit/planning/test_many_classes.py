"""Many classes asked about at once are told what each is told alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.many_classes import diagnose_each, may_have_room, with_hope
from htas.planning.cluster.simulated import open_simulation
from htas.planning.cluster.simulation import Simulation
from htas.planning.place.queue import bundle
from tools.bench.digests import NOW, crowd

Crowd = tuple[Simulation, list[PodClass]]


@pytest.fixture(params=range(24))
def waiting(request: pytest.FixtureRequest) -> Iterator[Crowd]:
    simulated = open_simulation(*crowd(request.param), NOW)
    yield simulated.sim, bundle(simulated.waiting, simulated.book)


def test_each_is_refused_as_it_is_alone(waiting: Crowd) -> None:
    sim, classes = waiting
    alone = [sim.diagnose(cls) for cls in classes]
    together = diagnose_each(sim, classes)
    assert [list(told.items()) for told in together] == [list(told.items()) for told in alone]


def test_who_has_room_has_hope(waiting: Crowd) -> None:
    sim, classes = waiting
    hopes = dict(zip(map(id, classes), may_have_room(sim, classes), strict=True))
    assert all(hopes[id(cls)] for cls in classes if sim.feasible(cls).any())


def test_hope_that_is_lost_does_not_come_back_while_others_are_placed(waiting: Crowd) -> None:
    sim, classes = waiting
    for cls, has_hope in with_hope(sim, classes):
        rows = np.flatnonzero(sim.feasible(cls))
        assert has_hope or not len(rows)
        if len(rows):
            sim.place(cls, int(rows[0]))


def test_most_without_room_are_found() -> None:
    """Of 400 services that memory and cores keep out of different nodes."""
    simulated = open_simulation(*crowd(3), NOW)
    sim, classes = simulated.sim, bundle(simulated.waiting, simulated.book)
    for cls in classes:
        for row in np.flatnonzero(sim.feasible(cls)).tolist():
            sim.place(cls, row)
    left = [cls for cls in classes if not sim.feasible(cls).any()]
    hopes = may_have_room(sim, left)
    assert len(left) > 50
    assert hopes.count(True) < len(left) / 2
