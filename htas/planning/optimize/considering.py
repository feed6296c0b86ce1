"""Whom a search considers: what it does not touch, and, as a what-if, whom it would have if everybody let it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from htas.model.pods import MAY_MIGRATE, SAFE_TO_EVICT, Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulated import open_simulation
from htas.planning.cluster.whereabouts import is_pending
from htas.planning.optimize.optimise import problem_of

_CONSENT = {MAY_MIGRATE: "true", SAFE_TO_EVICT: "true"}


def as_if_all_may_move(snapshot: ClusterSnapshot, policy: Policy) -> ClusterSnapshot:
    """The snapshot in which every pod is HTAS's, and those that a controller makes anew have opted in to moves.

    What they promise otherwise (do-not-disrupt, data on the node) is passed over; disruption budgets hold, and so do
    constraints among pods, which the optimiser has no model of. Not to be carried out: nobody has consented.
    """

    def considered(pod: Pod) -> Pod:
        if not pod.is_work:
            return pod
        consent = pod.disruption if pod.owner is None else _CONSENT
        return msgspec.structs.replace(pod, scheduler=policy.scheduler_name, disruption=consent)

    pods = tuple(considered(pod) for pod in snapshot.cluster.pods)
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=pods))


@dataclass(frozen=True, slots=True)
class Untouched:
    """Numbers of pods; those of DaemonSets are in none."""

    stay: int
    """They run, and stay where they are whatever would be better: who they are, `problem_of` says."""
    give_way: int
    """They run, and leave for work of higher priority alone: services that have not opted in, most of all."""
    foreign: int
    """They wait for another scheduler, and get no place."""


def untouched(snapshot: ClusterSnapshot, policy: Policy, now: float) -> Untouched:
    """What `optimise` leaves out of its problem, or has constraint (5) for (docs/algorithms.md)."""
    simulated = open_simulation(snapshot, policy, now)
    problem = problem_of(simulated, snapshot, policy, now)
    return Untouched(
        stay=sum(placed for _, placed in problem.settled),
        give_way=int(problem.home[problem.yields].sum()),
        foreign=sum(
            is_pending(pod, pod.node) and pod.scheduler != policy.scheduler_name for pod in snapshot.cluster.pods
        ),
    )
