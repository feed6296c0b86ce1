"""Arrivals: batch work by when it came, which tells of work to come. Told apart once for all rules that ask."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot

DEFAULT_WINDOW_S = 120.0
"""Arrivals are counted over so long where `lookAhead` is 0."""
_QUARTERS = 4


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The pods of a snapshot that more may come like: `pods`, of these the `batch` work, of that the `recent`.

    None of a dump or a what-if, after which nothing comes. Copies of pods that are being moved have not come. Nor is
    work expected of a namespace whose limit is in reach: nothing is launched ahead for it, or chosen because of it.
    """

    pods: tuple[Pod, ...]
    batch: tuple[Pod, ...]
    recent: tuple[Pod, ...]
    """What came in the last `window_s` before `now`."""
    window_s: float
    now: float

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, policy: Policy, now: float, limited: Collection[str] = ()) -> Arrivals:
        """`limited`: namespaces whose limits are in reach."""
        pods = snapshot.cluster.pods if snapshot.expects_more else ()
        pods = tuple(pod for pod in pods if pod.namespace not in limited) if limited else pods
        batch = tuple(pod for pod in pods if pod.kind is WorkKind.BATCH and not pod.twin_of and not pod.is_daemon)
        window_s = policy.look_ahead_s or DEFAULT_WINDOW_S
        since = now - window_s
        return cls(pods, batch, tuple(pod for pod in batch if pod.created_at > since), window_s, now)

    def steady_count(self, recent: Sequence[Pod]) -> int:
        """How many of some recent pods come steadily in a window: four times the second smallest of its quarters.

        Of 3, 2, 0 and 4 these are 8; of 0, 0, 0 and 1,000 none.
        """
        ages_s = self.now - np.array([pod.created_at for pod in recent], dtype=np.float64)
        quarters = np.clip(ages_s / self.window_s * _QUARTERS, 0, _QUARTERS - 1).astype(np.int64)
        counts: list[int] = np.bincount(quarters, minlength=_QUARTERS).tolist()
        return _QUARTERS * sorted(counts)[1]
