from tests.contracts.conftest import Universe


def test_time_moves_as_far_as_it_is_moved(universe: Universe) -> None:
    before = universe.clock.now()
    universe.wait(12.5)
    assert universe.clock.now() == before + 12.5


def test_time_never_moves_back(universe: Universe) -> None:
    before = universe.clock.now()
    universe.advance_to(before - 100)
    assert universe.clock.now() == before


def test_its_speed_is_stated(universe: Universe) -> None:
    assert universe.clock.speed == 1.0


def test_what_happens_is_dated_by_it(universe: Universe) -> None:
    pod = next(pod for pod in universe.cluster.observe().pods if pod.name == "job-1")
    universe.cluster.bind(pod, "a")
    bound = universe.clock.now()
    universe.wait(5)
    started = next(pod for pod in universe.cluster.observe().pods if pod.name == "job-1").started_at
    assert started is not None
    assert bound < started <= universe.clock.now()
