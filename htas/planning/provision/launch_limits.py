"""How often machines are launched for the same pods.

At most `limits.maxLaunchesPerPod` machines are launched for a pod within an hour, and as often for pods of its owner
without one of them running; and as often for a group's `minNodes` without one of them initialized. A launch in use
forgives those before it. Since its machine may fail as well, an owner has as many unused launches more for each machine
in use, and no more than that. After an unused launch its flavour pauses for these pods, twice as long each time
(`timeouts.backoffInitial` to `timeouts.backoffMax`). Other flavours may be launched at once; each launch counts.

Requests that grow with each retry, and makers with random names, have another owner each time. So the launches for
owners of a namespace that are gone are bounded as well, whatever they were called (`OWNERS_OF_A_NAMESPACE`). An owner
that has pending pods has its own bound. One whose machines are in use, or whose pods run, may go on; so may the next
pods of makers that are at work or have succeeded, and that made none of those that are gone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from htas.model.launches import OpenLaunch, UnusedLaunches
from htas.model.pauses import doubled_s, is_on
from htas.model.plan import UnplacedPod
from htas.model.plan_document import instant_text
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.owners import Owners, maker_of, maker_of_mark, namespace_of
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand
from htas.planning.provision.launch_record import HOUR_S, minimum_of, pod_of_owner
from htas.planning.provision.offers import offers_of
from htas.planning.provision.unused_launches import LaunchesSoFar

OWNERS_OF_A_NAMESPACE = 4
"""So many owners of a namespace may each use up `limits.maxLaunchesPerPod` before nothing is launched for the others.

Fewer would let two broken workloads stop a third one. More would let a maker of ever new names launch a machine every
few minutes.
"""


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
    limits = _Limits.of(context, so_far)
    names = (group.name for group in context.policy.groups if group.min_nodes)
    return frozenset(name for name in names if limits.reason_of_owner(minimum_of(name)) is None)


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


@dataclass(frozen=True)
class _Limits:
    context: PlanContext
    so_far: LaunchesSoFar
    owners: Owners

    @property
    def policy(self) -> Policy:
        return self.context.policy

    @property
    def now(self) -> float:
        return self.context.now

    @classmethod
    def of(cls, context: PlanContext, so_far: LaunchesSoFar) -> _Limits:
        return cls(context, so_far, Owners(context.policy))

    @cached_property
    def by_pod(self) -> Mapping[str, list[float]]:
        """When machines were launched for a pod (`pod_of_owner`) within the last hour that do not run it."""
        record = self.so_far.record
        by_pod = {key: list(each) for key, each in record.tries.items()}
        for launch in record.open.values():
            for owner, uids in launch.owners.items() if launch.at > self.now - HOUR_S else ():
                for uid in uids or ("",):
                    by_pod.setdefault(pod_of_owner(owner, uid), []).append(launch.at)
        return by_pod

    @cached_property
    def counted(self) -> Mapping[str, UnusedLaunches]:
        return self.so_far.record.counted()

    @cached_property
    def serving(self) -> Mapping[str, list[OpenLaunch]]:
        return self.so_far.record.serving()

    @cached_property
    def in_doubt(self) -> Mapping[str, list[OpenLaunch]]:
        return self.so_far.record.in_doubt()

    @cached_property
    def of_nobody(self) -> Mapping[str, list[float]]:
        """When launches were made within the last hour that nobody came to use, oldest first: by namespace, of those
        that have too many."""
        most = self._most_of_namespace
        pods = self.context.snapshot.cluster.pods if self._suspects else ()
        present = {self.owners.of(pod) for pod in pods if pod.node is None and pod.namespace in self._suspects}
        innocent = present | self.at_work
        found = {
            namespace: sorted(at for owner, at in each if owner not in innocent)
            for namespace, each in self._suspects.items()
        }
        return {namespace: launched_at for namespace, launched_at in found.items() if len(launched_at) >= most}

    @cached_property
    def at_work(self) -> frozenset[str]:
        """Owners that have used a launch of late, or whose pods run, in namespaces that may have too many others."""
        if not self._suspects:
            return frozenset()
        pods = self.context.snapshot.cluster.pods
        running = (
            pod for pod in pods if pod.namespace in self._suspects and pod.started_at is not None and pod.is_work
        )
        return frozenset((*self.so_far.record.used, *self.serving, *map(self.owners.of, running)))

    @cached_property
    def _makers_at_work(self) -> frozenset[str]:
        """Makers whose pods have used a launch, run or have succeeded, and that have made none of the gone owners.

        Their next pods may ask for something else, as those of a new revision do.
        """
        if not self._suspects:
            return frozenset()
        succeeded = (end.maker for end in self.context.snapshot.cluster.ended if end.succeeded)
        gone = (owner for each in self._suspects.values() for owner, _ in each)
        return frozenset((*map(maker_of_mark, self.at_work), *succeeded)).difference(map(maker_of_mark, gone))

    @cached_property
    def _suspects(self) -> Mapping[str, set[tuple[str, float]]]:
        """Of namespaces with many such launches each one's owner and instant, without those of groups since changed."""
        found: dict[str, set[tuple[str, float]]] = {}
        for each in (self.so_far.record.of_nobody, self.so_far.of_nobody):
            for owner, instants in each.items():
                if self.owners.is_of_these_groups(owner):
                    found.setdefault(namespace_of(owner), set()).update((owner, at) for at in instants)
        return {namespace: each for namespace, each in found.items() if len(each) >= self._most_of_namespace}

    @property
    def _most_of_namespace(self) -> int:
        return OWNERS_OF_A_NAMESPACE * self.policy.max_launches_per_pod

    @property
    def has_pauses(self) -> bool:
        return bool(self.counted)

    def reason(self, pod: Pod) -> tuple[Unplaced, str] | None:
        """Why nothing is launched for a pod, and a sentence for people; None: something may be."""
        age = self.now - pod.created_at
        if pod.launch_delay_s and age < pod.launch_delay_s:
            until = instant_text(pod.created_at + pod.launch_delay_s)
            return (
                Unplaced.SCALE_UP_DELAYED,
                f"no machine is launched before {until} (annotation pod-scale-up-delay)",
            )
        so_far = self.so_far
        if not (self.by_pod or so_far.record.unused or so_far.left_behind or self.in_doubt or self.of_nobody):
            return None
        owner = self.owners.of(pod)
        of_pod = [
            *self.by_pod.get(pod_of_owner(owner, pod.uid), ()),
            # Of some pods of its owner: by the journal alone nobody knows of which.
            *(at for at in self.by_pod.get(pod_of_owner(owner, ""), ()) if at >= pod.created_at),
        ]
        known = self.so_far.record.unused.get(owner)
        why = known.why if known is not None else ""
        return self._too_many(of_pod, why) or self.reason_of_owner(owner) or self._of_namespace(pod, owner)

    def reason_of_owner(self, owner: str) -> tuple[Unplaced, str] | None:
        """Why nothing is launched for pods of an owner, whichever they are."""
        known, serving = self.so_far.record.unused.get(owner, UnusedLaunches()), self.serving.get(owner, [])
        in_doubt, left_behind = self.in_doubt.get(owner, ()), self.so_far.left_behind.get(owner, ())
        launched_at = {*known.launched_at, *(launch.at for launch in in_doubt)}
        forgiven_to = max((launch.at for launch in serving), default=-math.inf)
        newer = {at for at in launched_at if at > forgiven_to}
        return self._too_many(newer.union(left_behind), known.why) or self._too_many(
            launched_at.union(left_behind), known.why, 1 + len(serving)
        )

    def _too_many(self, launched_at: Collection[float], why: str, times: int = 1) -> tuple[Unplaced, str] | None:
        most = times * self.policy.max_launches_per_pod
        if len(launched_at) < most:
            return None
        machines = "a machine was" if most == 1 else f"{most} machines were"
        because = f" (the last: {why})" if why else ""
        again = self._again(sorted(launched_at), most)
        told = f"{machines} launched for it within an hour and it runs on none{because}; the next not before {again}"
        return Unplaced.TOO_MANY_LAUNCHES, told

    def _of_namespace(self, pod: Pod, owner: str) -> tuple[Unplaced, str] | None:
        launched_at, most = self.of_nobody.get(pod.namespace, []), self._most_of_namespace
        if not launched_at or owner in self.at_work or maker_of(pod) in self._makers_at_work:
            return None
        machines, again = f"{most} machines were launched", self._again(launched_at, most)
        told = f"{machines} for pods of namespace {pod.namespace} within an hour and none was used; the next not before"
        return Unplaced.TOO_MANY_LAUNCHES, f"{told} {again}"

    def _again(self, launched_at: Sequence[float], most: int) -> str:
        """When the next machine may be launched: instants are in order."""
        return instant_text(launched_at[len(launched_at) - most] + HOUR_S)

    def pauses(self, pod: Pod) -> Mapping[str, str]:
        """Flavours that are not launched for a pod now, each with the reason."""
        known = self.counted.get(self.owners.of(pod))
        if known is None:
            return {}
        timeouts, found = self.policy.timeouts, dict[str, str]()
        for flavour, pause in known.flavours.items():
            length_s = doubled_s(pause.times, timeouts.backoff_initial_s, timeouts.backoff_max_s)
            if is_on(pause.at + length_s, length_s, self.now):
                until = instant_text(pause.at + length_s)
                found[flavour] = f"a machine launched for it was not used ({known.why}); {flavour} again from {until}"
        return found
