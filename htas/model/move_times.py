"""How long moves take: T = C ÷ B + K (HTAS paper 5.3), fitted to those that were measured."""

from __future__ import annotations

import msgspec

from htas.model.migrations import MigrationRecord, MigrationState

GIB = 2**30
HALF_LIFE = 20
"""A move counts half as much as one so many moves newer: networks and disks change."""
ENOUGH = 2.0
"""More moves than these, as they count now, must have been seen: two may have been odd, as with run lengths."""
PRIOR_CONSTANT_S = 4.0
PRIOR_S_PER_GIB = 34.0
"""Before anything was measured: a process without data took 3.0 to 5.4 s, one of 500 MB 18 to 22 s (docs/migration.md).

They stand for two moves, of nothing and of 1 GiB, so that forty moves of 1 MB each say nothing of one of 10 GiB.
"""


class MoveTimes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of the moves of one method, as sums over them; newer moves count more. C is in GiB."""

    moves: float = 0.0
    gib: float = 0.0
    seconds: float = 0.0
    gib_squared: float = 0.0
    gib_seconds: float = 0.0
    asked_gib: float = 0.0
    """The memory that their pods had asked for."""

    def learned(self, move: MigrationRecord) -> MoveTimes:
        """With one more move, if it is Done: the time of its last attempt and the size of its archive.

        One that was taken up teaches nothing: it took as long as no daemon ran. A pod that asked for no memory says
        nothing of what share of it an archive is.
        """
        took = move.took(MigrationState.PREPARED, MigrationState.DONE)
        if took is None or move.is_taken_up:
            return self
        gib, fade = move.archive_bytes / GIB, 0.5 ** (1 / HALF_LIFE)
        return MoveTimes(
            self.moves * fade + 1,
            self.gib * fade + gib,
            self.seconds * fade + took,
            self.gib_squared * fade + gib * gib,
            self.gib_seconds * fade + gib * took,
            self.asked_gib * fade + (move.memory_bytes / GIB or gib / self._share),
        )

    @property
    def are_known(self) -> bool:
        return self.moves > ENOUGH

    @property
    def line(self) -> tuple[float, float]:
        """K in seconds and 1 ÷ B in seconds for each GiB: the line of least squares, neither of them negative."""
        n, gib = self.moves + 2, self.gib + 1
        seconds = self.seconds + 2 * PRIOR_CONSTANT_S + PRIOR_S_PER_GIB
        squared = self.gib_squared + 1
        product = self.gib_seconds + PRIOR_CONSTANT_S + PRIOR_S_PER_GIB
        slope = max(0.0, (n * product - gib * seconds) / (n * squared - gib * gib))
        return max(0.0, (seconds - slope * gib) / n), slope

    def expected_s(self, memory_bytes: int) -> float:
        """T of a pod that asks for so much memory: its archive is taken to be the share of it that others' were."""
        constant, slope = self.line
        return constant + slope * self._share * memory_bytes / GIB

    @property
    def _share(self) -> float:
        return self.gib / self.asked_gib if self.asked_gib > 0 and self.gib > 0 else 1.0
