"""Machines that came for a pod, have room for it, and do not let it in.

What is planned of a machine that is not there yet may be wrong: its labels are what user data, kubelet and the cloud's
controllers make of it. Then the pod waits on beside an empty machine, and everything speaks for another one: a pod of
10m that asks for a label as no machine has it had 14 bought in a minute. If an initialized machine refuses the pods it
was launched for, nothing is launched for them for a pause that is twice as long each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from zlib import crc32

import msgspec

from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import UNCONSTRAINED, Constraints
from htas.model.plan import UnplacedPod
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.reasons import Unplaced
from htas.model.snapshot import AwaitedMachine
from htas.planning.cluster.feasibility.resources import fits
from htas.planning.cluster.simulation import Placements
from htas.planning.place.context import PlanContext
from htas.planning.place.demand import Demand

LEAST_PAUSE_S = 60.0
MOST_CLAIMS = 20
"""So many machines on their way are followed for one owner, the first of them."""


@dataclass(frozen=True, slots=True)
class CameOf:
    """What came of the machines that were bought for those who wait, by owner."""

    awaited: Mapping[str, AwaitedMachine] = field(default_factory=dict)


def came_of(context: PlanContext, placements: Placements) -> CameOf:
    """What came of the machines bought earlier, by the placements of this plan on what is there."""
    before = context.snapshot.memory.awaited
    if not before:
        return CameOf()
    judge = _Judge(context, placements, Owners(context.policy))
    awaited = {owner: kept for owner, each in before.items() if (kept := judge.judged(owner, each)) is not None}
    return CameOf(awaited)


def leave_out(context: PlanContext, demands: Sequence[Demand], came: CameOf) -> list[UnplacedPod]:
    """Take pods out of their demands that a machine came for in vain; they are told so."""
    told_of = {owner: text for owner, each in came.awaited.items() if (text := _in_words(each, context))}
    told: list[UnplacedPod] = []
    owner_of = Owners(context.policy).of
    for demand in demands if told_of else ():
        pods = [pod for pod in demand.youngest(demand.count) if owner_of(pod) in told_of]
        refusals = context.simulated.sim.diagnose(demand.cls) if pods else {}
        told += [UnplacedPod(pod.key, Unplaced.NOT_LET_IN, told_of[owner_of(pod)], refusals) for pod in pods]
        if pods:
            demand.leave_out(context.simulated.sim, pods)
    return told


def with_bought(
    came: CameOf, bought: Iterable[tuple[str, Iterable[Pod]]], waiting: Iterable[Pod], policy: Policy
) -> dict[str, AwaitedMachine]:
    """What came of machines, and what is bought now (claims, each with its pods): for the next plan."""
    found, owner_of = dict(came.awaited), Owners(policy).of
    machines = [(AwaitedMachine((claim,)), pods) for claim, pods in bought]
    awaits = {pod.key: machine for machine, pods in machines for pod in pods}
    for pod in waiting if awaits else ():
        if (machine := awaits.get(pod.key)) is None:
            continue
        owner = owner_of(pod)
        known = found.setdefault(owner, machine)
        if known is not machine and len(known.claims) < MOST_CLAIMS and machine.claims[0] not in known.claims:
            found[owner] = msgspec.structs.replace(known, claims=known.claims + machine.claims)
    return found


def pause_s(awaited: AwaitedMachine, policy: Policy) -> float:
    """For how long nothing is bought after so many purchases in vain: 1, 2, 4 … minutes, half an hour at most.

    Longer where `backoffInitial` is.
    """
    first_s, longest_s = max(LEAST_PAUSE_S, policy.timeouts.backoff_initial_s), policy.timeouts.backoff_max_s
    return min(first_s * 2.0 ** min(awaited.times - 1, 20), longest_s)


class Owners:
    """Tells whose pods are taken to be alike: those of a controller with the same demands on nodes.

    What nodes are to be like counts too: once either is mended, what was in vain before says nothing.
    """

    def __init__(self, policy: Policy) -> None:
        groups = [(group.name, sorted(group.labels.items()), group.taints) for group in policy.groups]
        self._groups = crc32(repr(groups).encode())
        self._of_any = f"{self._groups:08x}"

    def of(self, pod: Pod) -> str:
        """Its controller, or itself where it has none, and a mark of what else counts."""
        return f"{pod.service or pod.key} {self._mark(pod.constraints)}"

    def _mark(self, constraints: Constraints) -> str:
        if constraints is UNCONSTRAINED or constraints == UNCONSTRAINED:
            return self._of_any
        return f"{crc32(msgspec.json.encode(constraints), self._groups):08x}"


@dataclass
class _Judge:
    """Says what came of the machines that were bought for pods which still wait."""

    context: PlanContext
    placements: Placements
    owners: Owners

    @cached_property
    def _claims(self) -> Mapping[str, NodeClaim]:
        return {claim.id: claim for claim in self.context.snapshot.claims}

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        """Rows of nodes that are there and Ready, by claim."""
        simulated = self.context.simulated
        nodes = enumerate(simulated.sim.table.nodes)
        return {node.claim: row for row, node in nodes if node.claim is not None and node.name not in simulated.coming}

    @cached_property
    def _left(self) -> Mapping[str, Pod]:
        """By owner the first by name of its pods that have no place on a node that is there."""
        simulated = self.context.simulated
        nodes = simulated.sim.table.nodes
        is_there = {node.name for node in self.context.snapshot.cluster.nodes} - simulated.coming
        placed = {pod.key for row, pods in self.placements.items() if nodes[row].name in is_there for pod in pods}
        left: dict[str, Pod] = {}
        for pod in sorted(simulated.waiting, key=lambda pod: pod.key):
            if pod.key not in placed:
                left.setdefault(self.owners.of(pod), pod)
        return left

    def judged(self, owner: str, awaited: AwaitedMachine) -> AwaitedMachine | None:
        """What is kept in mind of an owner; None: nothing, since none of its pods waits any more, or all is well."""
        left = self._left.get(owner)
        if left is None:
            return None
        times, at, why = awaited.times, min(awaited.at, self.context.now), awaited.why
        kept, refused = [], list(awaited.refused)
        for claim in awaited.claims:
            row = self._row(claim)
            if claim not in self._claims:
                continue  # it never came, or is gone
            if row is None:
                kept.append(claim)
                continue
            there = [*self.context.simulated.running.get(row, ()), *self.placements.get(row, ())]
            if any(self.owners.of(pod) == owner for pod in there):
                times, refused = 0, []
            elif not any(pod.is_work for pod in there):  # else others were quicker, which says nothing of the machine
                kept.append(claim)
                found = None if claim in refused else self._refusal(left, row)
                if found is not None:
                    refused.append(claim)
                    times, at, why = (times + (at < self.context.now or not times), self.context.now, found)
        refused = [claim for claim in refused if claim in kept]
        if not kept and not times:
            return None
        return AwaitedMachine(tuple(kept), tuple(refused), times, at, why)

    def _row(self, claim: str) -> int | None:
        known = self._claims.get(claim)
        return self._rows.get(claim) if known is not None and known.state is ClaimState.READY else None

    def _refusal(self, pod: Pod, row: int) -> str | None:
        """Why an open node with room refuses a pod; None: it does not, or is closed, or smaller than was planned."""
        sim, cls = self.context.simulated.sim, self.context.simulated.book.class_of(pod)
        here = slice(row, row + 1)
        node = sim.table.nodes[row]
        if not sim.table.is_open[row] or not node.takes_pods or sim.fits(cls, row):
            return None
        if not fits(sim.table.free[:, here], cls)[0]:
            return None
        return ", ".join(sorted(sim.diagnose(cls, here)))


def _in_words(awaited: AwaitedMachine, context: PlanContext) -> str:
    """Why nothing is bought for an owner now; "": something is. The same in each plan, until something changes."""
    pause = pause_s(awaited, context.policy)
    if not awaited.times or context.now >= awaited.at + pause:
        return ""
    why = f": {awaited.why}" if awaited.why else ""
    times = "a machine" if awaited.times == 1 else f"{awaited.times} machines"
    return f"{times} bought for it did not let it in{why}; the next is bought {pause:g} s after the last"
