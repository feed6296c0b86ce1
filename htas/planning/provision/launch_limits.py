"""How often machines are launched for the same pods.

At most `limits.maxLaunchesPerPod` machines are launched for a pod within an hour, and as often for pods of its owner
without one of them running; and as often for a group's `minNodes` without one of them initialized. After an unused
launch its flavour pauses for these pods, twice as long each time (`timeouts.backoffInitial` to `timeouts.backoffMax`).
Other flavours may be launched at once; each launch counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from htas.model.pauses import doubled_s, is_on
from htas.model.plan import UnplacedPod
from htas.model.plan_document import instant_text
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.owners import Owners
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.provision.offers import offers_of
from htas.planning.provision.unused_launches import HOUR_S, LaunchesSoFar, minimum_of, pod_of_owner


def limit_launches(
    context: PlanContext, demands: Sequence[Demand], so_far: LaunchesSoFar
) -> tuple[list[Demand], list[UnplacedPod]]:
    """(what may be launched for, pods with paused flavours apart; what is held back, with the reason)."""
    limits = _Limits.of(context, so_far)
    left: list[Demand] = []
    told: list[UnplacedPod] = []
    for demand in demands:
        told += _hold_back(context, demand, limits)
        left.append(demand)
        if limits.has_pauses:
            apart, paused = _apart(context, demand, limits)
            left += apart
            told += paused
    return left, told


def small_groups(context: PlanContext, so_far: LaunchesSoFar) -> frozenset[str]:
    """Groups that machines may be launched for up to `minNodes`, by the same bound as for a pod."""
    unused, most = so_far.record.unused, context.policy.max_launches_per_pod
    held = {owner for owner, known in unused.items() if len(known.launched_at) >= most}
    return frozenset(g.name for g in context.policy.groups if g.min_nodes and minimum_of(g.name) not in held)


def _hold_back(context: PlanContext, demand: Demand, limits: _Limits) -> list[UnplacedPod]:
    """Take pods out of a demand that nothing is launched for now."""
    found = [(pod, reason) for pod in demand.youngest(demand.count) if (reason := limits.reason(pod)) is not None]
    if not found:
        return []
    refusals = context.simulated.sim.diagnose(demand.cls)
    demand.leave_out(context.simulated.sim, [pod for pod, _ in found])
    return [UnplacedPod(pod.key, reason, message, refusals) for pod, (reason, message) in found]


def _apart(context: PlanContext, demand: Demand, limits: _Limits) -> tuple[list[Demand], list[UnplacedPod]]:
    """Take pods with paused flavours out of a demand: (demands of their own; those whose every flavour pauses)."""
    by_pauses: dict[tuple[tuple[str, str], ...], list[Pod]] = {}
    for pod in demand.youngest(demand.count):
        if paused := limits.pauses(pod):
            by_pauses.setdefault(tuple(sorted(paused.items())), []).append(pod)
    apart: list[Demand] = []
    told: list[UnplacedPod] = []
    for pauses, pods in by_pauses.items():
        cls = context.simulated.book.twin(demand.cls, pods, dict(pauses))
        refusals = context.simulated.sim.diagnose(demand.cls)
        demand.leave_out(context.simulated.sim, pods)
        if reason := _pause_of_all(context, cls):
            told += [UnplacedPod(pod.key, Unplaced.BACKING_OFF, reason, refusals) for pod in pods]
        else:
            apart.append(Demand(cls, len(pods)))
    return apart, told


def _pause_of_all(context: PlanContext, cls: PodClass) -> str:
    """Why no flavour is launched for a class, where all that would hold it pause; empty: they do not."""
    sim = context.simulated.sim
    with sim.defaults.counted(sim.table):  # as where machines are chosen
        offers = offers_of(sim, context.policy, context.snapshot, [cls])
        would_hold = [offer for offer in offers if offer.admits(cls) and fits(offer.free, cls)]
        if any(offer.could_hold(cls) for offer in would_hold):
            return ""
    return "; ".join(dict.fromkeys(cls.pauses[offer.flavour.name] for offer in would_hold))


@dataclass(frozen=True, slots=True)
class _Limits:
    policy: Policy
    now: float
    so_far: LaunchesSoFar
    owners: Owners
    by_pod: Mapping[str, list[float]]
    """When machines were launched for a pod (`pod_of_owner`) within the last hour that do not run it."""

    @classmethod
    def of(cls, context: PlanContext, so_far: LaunchesSoFar) -> _Limits:
        record, now = so_far.record, context.now
        by_pod = {key: list(each) for key, each in record.tries.items()}
        for launch in record.open.values():
            for owner, uids in launch.owners.items() if launch.at > now - HOUR_S else ():
                for uid in uids:
                    by_pod.setdefault(pod_of_owner(owner, uid), []).append(launch.at)
        return cls(context.policy, now, so_far, Owners(context.policy), by_pod)

    @property
    def has_pauses(self) -> bool:
        return bool(self.so_far.record.unused)

    def reason(self, pod: Pod) -> tuple[Unplaced, str] | None:
        """Why nothing is launched for a pod, and a sentence for people; None: something may be."""
        so_far, age = self.so_far, self.now - pod.created_at
        if pod.launch_delay_s and age < pod.launch_delay_s:
            until = instant_text(pod.created_at + pod.launch_delay_s)
            return (
                Unplaced.SCALE_UP_DELAYED,
                f"no machine is launched before {until} (annotation pod-scale-up-delay)",
            )
        if not (self.by_pod or so_far.record.unused or so_far.left_behind):
            return None
        owner = self.owners.of(pod)
        known = so_far.record.unused.get(owner)
        of_owner = {*(known.launched_at if known is not None else ()), *so_far.left_behind.get(owner, ())}
        why = known.why if known is not None else ""
        of_pod = self.by_pod.get(pod_of_owner(owner, pod.uid), ())
        return self._too_many(of_pod, why) or self._too_many(of_owner, why)

    def _too_many(self, launched_at: Collection[float], why: str) -> tuple[Unplaced, str] | None:
        most = self.policy.max_launches_per_pod
        if len(launched_at) < most:
            return None
        again = instant_text(sorted(launched_at)[len(launched_at) - most] + HOUR_S)
        machines = "a machine was" if most == 1 else f"{most} machines were"
        because = f" (the last: {why})" if why else ""
        told = f"{machines} launched for it within an hour and it runs on none{because}; the next not before {again}"
        return Unplaced.TOO_MANY_LAUNCHES, told

    def pauses(self, pod: Pod) -> Mapping[str, str]:
        """Flavours that are not launched for a pod now, each with the reason."""
        known = self.so_far.record.unused.get(self.owners.of(pod))
        if known is None:
            return {}
        timeouts, found = self.policy.timeouts, dict[str, str]()
        for flavour, pause in known.flavours.items():
            length_s = doubled_s(pause.times, timeouts.backoff_initial_s, timeouts.backoff_max_s)
            if is_on(pause.at + length_s, length_s, self.now):
                until = instant_text(pause.at + length_s)
                found[flavour] = f"a machine launched for it was not used ({known.why}); {flavour} again from {until}"
        return found
