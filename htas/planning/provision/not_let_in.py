"""Machines that came for a pod, have room for it, and do not let it in.

What is planned of a machine that is not there yet may be wrong: its labels and taints are what user data, kubelet and
the cloud's controllers make of it. Then the pod waits on beside an empty machine, and everything speaks for another
one: a pod of 10m that asks for a label as no machine has it had 14 bought in a minute. After each purchase in vain
nothing is bought for the pods of that controller for a while, twice as long each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.plan import UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.proposals import Launch
from htas.model.reasons import Unplaced
from htas.model.snapshot import AwaitedMachine
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand

IS_THERE = (ClaimState.READY, ClaimState.DRAINING)

Placements = Mapping[int, Sequence[Pod]]
"""Waiting pods by the row they were given."""


def came_of(context: PlanContext, placements: Placements) -> dict[str, AwaitedMachine]:
    """By owner what came of the machine that its pods wait for, as soon as it is there, and how often it was in vain.

    A node that starts with a taint which goes within the minute only delays what nobody needs: another machine.
    """
    before = context.snapshot.memory.awaited
    judge = _Judge(context, placements) if before else None
    return {
        owner: kept
        for owner, each in before.items()
        if judge is not None and (kept := judge.judged(owner, each)) is not None
    }


def leave_out(
    context: PlanContext, demands: Sequence[Demand], awaited: Mapping[str, AwaitedMachine]
) -> list[UnplacedPod]:
    """Take pods out of their demands for which a machine was bought in vain a moment ago; they are told so."""
    paused = {owner: each for owner, each in awaited.items() if each.times and context.now < _again_at(each, context)}
    told: list[UnplacedPod] = []
    for demand in demands if paused else ():
        pods = [pod for pod in demand.youngest(demand.count) if owner_of(pod) in paused]
        refusals = context.simulated.sim.diagnose(demand.cls) if pods else {}
        for pod in pods:
            message = _in_words(paused[owner_of(pod)], context)
            told.append(UnplacedPod(pod.key, Unplaced.NOT_LET_IN, message, refusals))
        if pods:
            demand.leave_out(context.simulated.sim, pods)
    return told


def pause_s(awaited: AwaitedMachine, policy: Policy) -> float:
    """For how long nothing is bought after so many purchases in vain: 1, 2, 4 … minutes, half an hour at most."""
    timeouts = policy.timeouts
    return min(timeouts.backoff_initial_s * 2.0 ** min(awaited.times - 1, 20), timeouts.backoff_max_s)


def owner_of(pod: Pod) -> str:
    """Whose pods are taken to be alike: those of a controller; a pod without one is for itself."""
    return pod.service or pod.key


def with_bought(
    awaited: Mapping[str, AwaitedMachine], launches: Iterable[Launch], waiting: Iterable[Pod]
) -> dict[str, AwaitedMachine]:
    """The same, and what is bought now."""
    found = dict(awaited)
    bought = {pod: launch.claim for launch in launches for pod in launch.pods}
    for pod in waiting if bought else ():
        if pod.key in bought:
            owner = owner_of(pod)
            found[owner] = msgspec.structs.replace(found.get(owner, AwaitedMachine()), claim=bought[pod.key])
    return found


@dataclass
class _Judge:
    """Says what came of the machines that were bought for pods which still wait."""

    context: PlanContext
    placements: Placements

    @cached_property
    def _claims(self) -> Mapping[str, NodeClaim]:
        return {claim.id: claim for claim in self.context.snapshot.claims}

    @cached_property
    def _left(self) -> Mapping[str, list[Pod]]:
        """Pods without a place on a node that is there, by owner and in the order of their names."""
        simulated = self.context.simulated
        nodes = simulated.sim.table.nodes
        is_there = {node.name for node in self.context.snapshot.cluster.nodes} - simulated.coming
        placed = {pod.key for row, pods in self.placements.items() if nodes[row].name in is_there for pod in pods}
        left: dict[str, list[Pod]] = defaultdict(list)
        for pod in sorted(simulated.waiting, key=lambda pod: pod.key):
            if pod.key not in placed:
                left[owner_of(pod)].append(pod)
        return left

    def judged(self, owner: str, awaited: AwaitedMachine) -> AwaitedMachine | None:
        """What is kept in mind of an owner; None: none of its pods waits any more, or the machine has let one in."""
        left = self._left.get(owner)
        if not left:
            return None
        claim = self._claims.get(awaited.claim)
        if claim is None:  # it never came, or is gone
            return _forgotten(awaited)
        row = self.context.simulated.sim.table.row_of.get(claim.node or "")
        if row is None or claim.state not in IS_THERE:
            return awaited
        there = [*self.context.simulated.running.get(row, ()), *self.placements.get(row, ())]
        if any(owner_of(pod) == owner for pod in there):
            return None
        if any(pod.is_work for pod in there):  # others were quicker, which says nothing of the machine
            return _forgotten(awaited)
        return self._refused(awaited, left[0], row)

    def _refused(self, awaited: AwaitedMachine, pod: Pod, row: int) -> AwaitedMachine | None:
        """In vain is what has room and refuses; one that is smaller than was planned is learned from by its size."""
        sim, cls = self.context.simulated.sim, self.context.simulated.book.class_of(pod)
        here = slice(row, row + 1)
        if not fits(sim.table.free[:, here], cls)[0]:
            return _forgotten(awaited)
        is_open = bool(sim.table.is_open[row])
        if sim.fits(cls, row) or (not is_open and sim.allowed(cls)[row]):
            return awaited
        why = ", ".join(sorted(sim.diagnose(cls, here))) if is_open else awaited.why
        return AwaitedMachine("", awaited.times + 1, self.context.now, why)


def _forgotten(awaited: AwaitedMachine) -> AwaitedMachine | None:
    """The same without the machine: it never came, is gone, or tells nothing."""
    return msgspec.structs.replace(awaited, claim="") if awaited.times else None


def _again_at(awaited: AwaitedMachine, context: PlanContext) -> float:
    return awaited.at + pause_s(awaited, context.policy)


def _in_words(awaited: AwaitedMachine, context: PlanContext) -> str:
    left_s = _again_at(awaited, context) - context.now
    why = f": {awaited.why}" if awaited.why else ""
    times = "a machine" if awaited.times == 1 else f"{awaited.times} machines"
    return f"{times} bought for it did not let it in{why}; the next is bought in {left_s:.0f} s at the earliest"
