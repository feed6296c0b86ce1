"""Every point at which a daemon can be made to die is one at which some test lets it die.

The kills themselves are in tests/real, and take an hour with all that is there: this tells at once of one that is missing.
"""

from __future__ import annotations

from htas.execution.crash_points import POINTS
from tests.real import test_kill, test_migration_kill, test_openstack_kill, test_rearranging, test_replace

IN_STORIES = ("rearrange.detour-journalled", "rearrange.eviction-journalled")
"""The optimiser finds no placement that needs a detour where its own would do; tests/stories plays a circle, and moves
that come to nothing."""
KILLS = (
    *test_kill.PURCHASE,
    *test_kill.RELEASE,
    *test_kill.MIGRATION,
    *test_kill.EVICTION,
    *test_kill.UNDOING,
    *test_kill.PREEMPTION,
    *test_migration_kill.MOVES,
    *test_openstack_kill.STEPS,
    *test_rearranging.REARRANGING,
    *test_rearranging.CHECKPOINTED,
    *test_rearranging.CANCELLED,
    *test_replace.STEPS,
)


def test_every_step_has_its_kill() -> None:
    assert {*KILLS, *IN_STORIES} == set(POINTS)
