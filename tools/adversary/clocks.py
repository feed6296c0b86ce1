"""The daemon's clock is stepped while machines work: bills stay right, and no machine in use is given back for it.

The world's own time, and with it the cloud's invoice, goes on evenly. The step is taken back an hour later, as NTP
does it once it has found its servers, or stays: a bill that is ended by a wrong clock is wrong by the step.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from htas.model.stages import ALL_STAGES
from htas.ports import HTASError
from htas.sandbox.clock import VirtualClock
from tools.adversary.attack import Attack, Verdict, verdict
from tools.adversary.scene import DAY_S, HOUR_S, Scene, jobs

STEPS = {"5 minutes": 300.0, "3 hours": 3 * HOUR_S, "3 days": 3 * DAY_S}
STEPPED_AT_S, MENDED_AT_S = 900.0, 900.0 + HOUR_S
LONG_S = 2.5 * HOUR_S
"""How long each job runs: before the step, all through it and beyond."""
CYCLE_S = 30.0


class SteppedClock:
    """A clock beside the world's."""

    speed = 1.0

    def __init__(self, world: VirtualClock) -> None:
        self._world = world
        self.offset_s = 0.0

    def now(self) -> float:
        return self._world.now() + self.offset_s


@dataclass(frozen=True, slots=True)
class _Step:
    seconds: float
    is_mended: bool

    def run(self) -> Verdict:
        scene = Scene(jobs(8, every_s=60.0, runs_s=LONG_S))
        clock = SteppedClock(scene.world.clock)
        scene.between["clock"] = clock
        scene.begin()
        self._cycles(scene, STEPPED_AT_S)
        clock.offset_s = self.seconds
        before = scene.world.ledger.running_machines()
        self._cycles(scene, MENDED_AT_S)
        during = scene.world.ledger.running_machines()
        if self.is_mended:
            clock.offset_s = 0.0
        self._cycles(scene, 6 * HOUR_S)
        off, rented_s = scene.bills_off_by(), HOUR_S * scene.world.ledger.machine_hours(scene.world.clock.now())
        most = 0.01 if self.is_mended else 0.01 + abs(self.seconds) * before / rented_s
        return verdict(
            f"{during} of {before} machines an hour later; {scene.told()}",
            scene.unfinished()
            | scene.broken()
            | {
                f"{before - during} of {before} machines in use were given back": during < before,
                f"{len(scene.world.ledger.rentals)} machines for {before}": len(scene.world.ledger.rentals) > before,
                f"bills are off by {off:+.1%}": abs(off) > most,
            },
        )

    def _cycles(self, scene: Scene, until_s: float) -> None:
        """Evenly, by the world's time: a timer of the kernel does not follow the wall clock either."""
        while scene.at_s < until_s:
            with suppress(HTASError):  # the next cycle is as good
                scene.daemon.run_cycle(ALL_STAGES)
            scene.world.advance_to(scene.start + scene.at_s + CYCLE_S)


def attacks() -> list[Attack]:
    return [
        Attack(f"clock: {words} {way}, {end}", _Step(sign * seconds, is_mended).run, is_long=is_mended != (sign > 0))
        for words, seconds in STEPS.items()
        for way, sign in (("forward", 1.0), ("back", -1.0))
        for end, is_mended in (("mended after an hour", True), ("for good", False))
    ]
