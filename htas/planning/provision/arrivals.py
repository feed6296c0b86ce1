"""Arrivals: batch work by when it came, which tells of work to come. Told apart once for all rules that ask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot

LATE_S = 120.0
"""What came in so long came of late, where `lookAhead` is 0."""
PARTS = 4


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The pods of a snapshot that more may come like: `pods`, of these the `batch` work, of that what came of `late`.

    None of a dump or a what-if, after which nothing comes. Copies of pods that are being moved have not come.
    """

    pods: tuple[Pod, ...]
    batch: tuple[Pod, ...]
    late: tuple[Pod, ...]
    late_s: float
    """So long before `now` is late."""
    now: float

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, policy: Policy, now: float) -> Arrivals:
        pods, late_s = snapshot.cluster.pods if snapshot.expects_more else (), policy.look_ahead_s or LATE_S
        batch = tuple(pod for pod in pods if pod.kind is WorkKind.BATCH and not pod.twin_of and not pod.is_daemon)
        since = now - late_s
        return cls(pods, batch, tuple(pod for pod in batch if pod.created_at > since), late_s, now)

    def steady_part(self, late: Iterable[Pod]) -> int:
        """How many pods count for each part of the time: as many as came in the last but one of four by their number.

        Of 3, 2, 0 and 4 it is 2; of 0, 0, 0 and 1,000 none.
        """
        ages = self.now - np.fromiter((pod.created_at for pod in late), dtype=np.float64)
        parts = np.clip(ages / self.late_s * PARTS, 0, PARTS - 1).astype(np.int64)
        counts: list[int] = np.bincount(parts, minlength=PARTS).tolist()
        return sorted(counts)[1]

    @property
    def a_second(self) -> float:
        """How many jobs are expected a second, by those that came of late but the last, for which it is asked.

        `n` arrivals in `T` seconds make `(n + 1/2) / T` a second: Jeffreys' prior of a Poisson rate, since nobody seen
        in two minutes does not mean that nobody comes. Billed by the hour, seeds 11 to 15, `n / T` cost 5 % more.
        """
        return (max(0, len(self.late) - 1) + 0.5) / self.late_s
