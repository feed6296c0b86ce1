"""What a search does not touch: its answer is the best, or proven, for the rest alone, and that is told beside it."""

from __future__ import annotations

from dataclasses import dataclass

from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulated import open_simulation
from htas.planning.cluster.whereabouts import is_pending
from htas.planning.optimize.build import build


@dataclass(frozen=True, slots=True)
class Untouched:
    """Numbers of pods; those of DaemonSets are in none."""

    stay: int
    """They run, and stay where they are whatever would be better: who they are, `build` says."""
    give_way: int
    """They run, and leave for work of higher priority alone: services that have not opted in, most of all."""
    foreign: int
    """They wait for another scheduler, and get no place."""


def untouched(snapshot: ClusterSnapshot, policy: Policy, now: float) -> Untouched:
    """What `optimise` leaves out of its problem, or has constraint (5) for (docs/algorithms.md)."""
    simulated = open_simulation(snapshot, policy, now)
    problem = build(simulated, snapshot, policy, now)
    return Untouched(
        stay=sum(placed for _, placed in problem.settled),
        give_way=int(problem.home[problem.yields].sum()),
        foreign=sum(
            is_pending(pod, pod.node) and pod.scheduler != policy.scheduler_name for pod in snapshot.cluster.pods
        ),
    )
