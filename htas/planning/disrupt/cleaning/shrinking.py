"""Shrinking: what is left on a node goes to a smaller machine, or several, once that pays for itself.

A job of seven hours had a machine of 0.0686 an hour to itself when the short jobs beside it had ended; one of 0.0198
holds it. That machine comes in two minutes and for as long both are paid: for 0.0007 it saves 0.36.
Eight CPU jobs kept a machine of 48 cores and four GPUs for two hours after its last training: no one smaller machine
held them all, two did for a third of the price. When that pays is `rental/replacing.py`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from htas.model.plan import KeptNode
from htas.model.pods import Pod, WorkKind
from htas.model.policy import NodeGroup
from htas.model.resources import NOTHING
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.run_length import remaining_s
from htas.planning.disrupt.cleaning.candidates import DrainCandidate
from htas.planning.disrupt.cleaning.consolidation import Consolidator, Replacing
from htas.planning.disrupt.cleaning.rescheduling import Rescheduler
from htas.planning.provision.limits import Allowance
from htas.planning.provision.offers import Contents, Offer, offers_of
from htas.planning.rental.replacing import pays


class Shrinker:
    """Looks for nodes that a smaller machine would replace, one by one."""

    def __init__(
        self, rescheduler: Rescheduler, consolidator: Consolidator, snapshot: ClusterSnapshot, memory: Memory
    ) -> None:
        self._rescheduler = rescheduler
        self._consolidator = consolidator
        self._snapshot = snapshot
        self._memory = memory
        policy = rescheduler.policy
        self._start_s = snapshot.machine_times.start_s(max((g.startup_s for g in policy.groups), default=0.0))

    def best(self, group: NodeGroup, candidates: Iterable[DrainCandidate], at_once: int) -> list[Replacing]:
        """The nodes to replace, with their machines, the least used first; one look is at so many nodes at most."""
        if not group.cleaning.consolidation.shrinks:
            return []
        policy, sim = self._rescheduler.policy, self._rescheduler.sim
        ripe = sorted((each for each in candidates if self._could_pay(group, each)), key=lambda each: each.rank)
        leaving = [(each, contents) for each in ripe if (contents := self._leaving(group, each))][: max(at_once, 0)]
        if not leaving:
            return []
        allowance = Allowance(policy, self._snapshot)
        offers = offers_of(sim, policy, self._snapshot, [cls for _, contents in leaving for cls, _ in contents])
        found: list[Replacing] = []
        for candidate, contents in leaving:
            smaller = self._smaller(group, candidate, contents, offers, allowance)
            if smaller:
                for offer in smaller:
                    allowance.take(offer, 1)
                saving = candidate.price - sum(offer.price for offer in smaller)
                found.append(Replacing(group, (candidate,), smaller, saving))
        return found

    def one_for(self, group: NodeGroup, node: DrainCandidate) -> list[Replacing]:
        """The cheapest machine that takes over from a node, with all that is on it, whatever that costs."""
        pods = self._rescheduler.movable(node)
        if isinstance(pods, KeptNode):
            return []
        contents = self._contents(group, pods)
        policy, sim = self._rescheduler.policy, self._rescheduler.sim
        allowance = Allowance(policy, self._snapshot)
        for offer in offers_of(sim, policy, self._snapshot, [cls for cls, _ in contents]):  # cheapest first
            is_enough = offer.group.name == group.name and offer.could_hold_all(contents)
            if is_enough and allowance.bound(offer).count > 0:
                is_possible = self._consolidator.rehearsed([node], [offer]) is not None
                return [Replacing(group, (node,), (offer,), node.price - offer.price)] if is_possible else []
        return []

    def _could_pay(self, group: NodeGroup, candidate: DrainCandidate) -> bool:
        """Whether the cheapest flavour that is large enough, or fluid machines, would pay: told without judging any."""
        asked = sum((pod.requests for pod in candidate.work), NOTHING)
        prices = [
            flavour.nanos_per_hour
            for flavour in self._rescheduler.policy.flavours_of(group)
            if asked.fits_in(flavour.allocatable)
        ]
        one = min(prices, default=candidate.price)
        return self._pays(candidate, one) or self._pays(candidate, int(self._consolidator.bound(group, [candidate])))

    def _leaving(self, group: NodeGroup, candidate: DrainCandidate) -> Contents:
        """What has to move; nothing, where somebody may not, or where it needs no machine of its own."""
        pods = self._rescheduler.movable(candidate)
        if isinstance(pods, KeptNode) or self._fits_on_others(candidate):
            return ()
        return self._contents(group, pods)

    def _fits_on_others(self, candidate: DrainCandidate) -> bool:
        """Whether nodes that are there take its pods, as of one that only waits for its paid hour's end."""
        with self._rescheduler.sim.fork():
            return not isinstance(self._rescheduler.empty(candidate), KeptNode)

    def _smaller(
        self,
        group: NodeGroup,
        candidate: DrainCandidate,
        contents: Contents,
        offers: Sequence[Offer],
        allowance: Allowance,
    ) -> tuple[Offer, ...]:
        """The cheapest machine that holds all that has to move, or those that do together, if they pay; else none."""
        for offer in offers:  # cheapest first
            if (
                offer.group.name != group.name
                or not offer.could_hold_all(contents)
                or allowance.bound(offer).count <= 0
            ):
                continue
            if self._pays(candidate, offer.price) and self._consolidator.rehearsed([candidate], [offer]) is not None:
                return (offer,)
            break
        several = self._consolidator.offers_for(group, [candidate])
        is_possible = all(allowance.bound(offer).count >= many for offer, many in Counter(several).items())
        if not several or not is_possible or not self._pays(candidate, sum(offer.price for offer in several)):
            return ()
        return several if self._consolidator.rehearsed([candidate], several) is not None else ()

    def _contents(self, group: NodeGroup, pods: Iterable[Pod]) -> list[tuple[PodClass, int]]:
        counts: dict[int, tuple[PodClass, int]] = {}
        for pod in pods:
            cls = self._rescheduler.moved(pod, group.cleaning.migration)
            counts[id(cls)] = cls, counts.get(id(cls), (cls, 0))[1] + 1
        return list(counts.values())

    def _pays(self, candidate: DrainCandidate, price: int) -> bool:
        """Whether a machine of a price an hour should take over: never from a service, which has no end."""
        if price >= candidate.price or {pod.kind for pod in candidate.work} != {WorkKind.BATCH}:
            return False
        policy, now, rules = self._rescheduler.policy, self._rescheduler.now, candidate.group.cleaning
        change_s = self._start_s + self._rescheduler.moves_s(rules, candidate.work)
        return pays(
            candidate.bill(policy),
            price,
            now,
            left_s=max(remaining_s(pod, policy, now) for pod in candidate.work),
            change_s=change_s,
            wasted_s=now - self._memory.underutilized_since.get(candidate.node.name, now),
        )
