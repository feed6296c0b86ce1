"""The sandbox as the configuration has it."""

from htas.config.sandbox import SandboxSetting
from htas.daemon.wiring.sandbox import new_world


def test_moves_are_tried_as_often_as_configured() -> None:
    assert new_world(SandboxSetting(), attempts=5).migration.attempts == 5
