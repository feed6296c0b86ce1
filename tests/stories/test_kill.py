"""SIGKILL for real: the daemon's process ends at random moments, the world lives on in another one."""

from tools.kill_test import play


def test_a_killed_daemon_takes_up_its_work() -> None:
    """Half an hour of the demo's day; `python -m tools.kill_test` plays the whole day with twenty kills."""
    outcome = play(hours=0.5, speed=300.0, kills=2, seed=3)
    assert outcome.faults() == []
    assert outcome.ledger.arrived > 20
