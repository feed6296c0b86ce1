"""Tallies: what placed pods change on nodes besides resources.

Per node row and per thing watched, a count: pods that match a selector some pod spreads or has affinity by, pods that
carry an anti-affinity term, host ports taken, volumes attached. Placing adds, unplacing subtracts; nothing else
moves, so that a what-if is undone exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htas.model.constraints import PodAffinityTerm, SpreadConstraint
from htas.model.pods import Pod
from htas.model.selectors import LabelSelector, Operator
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.namespace_index import NamespaceIndex
from htas.planning.cluster.ports_taken import PortsTaken

Counts = NDArray[np.int64]
Ids = tuple[int, ...]

EVERY_NAMESPACE = None

FEW_REPULSIONS = 8
"""So many are looked at one by one. Of more the carriers are kept summed up, for an array and each placement."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Pods of these namespaces (None: of all) that a selector matches; a selector None matches no pod."""

    namespaces: frozenset[str] | None
    selector: LabelSelector | None

    def takes(self, pod: Pod) -> bool:
        if self.namespaces is not None and pod.namespace not in self.namespaces:
            return False
        return self.selector is not None and self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class Watch:
    """Pods that all scopes take. Spread constraints do not count terminating pods, affinity does."""

    scopes: tuple[Scope, ...]
    counts_terminating: bool

    def takes(self, pod: Pod) -> bool:
        return (self.counts_terminating or not pod.is_terminating) and all(scope.takes(pod) for scope in self.scopes)


@dataclass(frozen=True, slots=True)
class Repulsion:
    """An anti-affinity term that some pod carries: pods in its scope stay out of the carrier's domain."""

    scope: Scope
    topology_key: str


class _Lookup:
    """Which of many scopes may take a pod, found by one label each asks for (those that ask for none: always tried)."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self._always: list[int] = []

    def add(self, number: int, scope: Scope) -> None:
        for requirement in scope.selector.requirements if scope.selector is not None else ():
            if requirement.operator is Operator.IN:
                for value in requirement.values:
                    self._by_label.setdefault((requirement.key, value), []).append(number)
                return
        self._always.append(number)

    def candidates(self, labels: Mapping[str, str]) -> Iterable[int]:
        found = set(self._always)
        for item in labels.items():
            found.update(self._by_label.get(item, ()))
        return sorted(found)


class Tallies:
    """Counts by node row; rows grow with the node table. Watches are registered first, then pods are counted."""

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._namespaces = NamespaceIndex(namespaces)
        self.watches: dict[Watch, int] = {}
        self.repulsions: dict[Repulsion, int] = {}
        self._watches: list[Watch] = []
        self._repulsions: list[Repulsion] = []
        self._watch_lookup = _Lookup()
        self._repulsion_lookup = _Lookup()
        self.watched: list[Counts] = []
        self.held: list[Counts] = []
        self._sums: list[Counts] = []
        """Carriers of many repulsions of one topology key."""
        self._sums_of: dict[Ids, tuple[tuple[str, int], ...]] = {}
        self._sums_with: dict[int, list[int]] = {}
        self.ports = PortsTaken()
        self.claims_on: dict[int, Counter[str]] = {}
        """Users by claim on rows that have any; entries that fall to zero go away."""
        self.claims_per_row: Counts = np.zeros(0, dtype=np.int64)
        self.claim_users: Counter[str] = Counter()
        self._rows = 0
        self._matching: dict[tuple[object, ...], tuple[Ids, Ids]] = {}

    # Registration: every constraint of every pod, before the first match is asked for.

    def register(self, pod: Pod) -> None:
        """Watch what a pod's constraints select by."""
        constraints = pod.constraints
        for spread in constraints.spread:
            self._watch(self.spread_watch(pod.namespace, spread))
        if constraints.affinity:
            self._watch(self.affinity_watch(pod.namespace, constraints.affinity))
        for term in constraints.anti_affinity:
            self._watch(self.anti_affinity_watch(pod.namespace, term))
            repulsion = Repulsion(self.scope(pod.namespace, term), term.topology_key)
            if repulsion not in self.repulsions:
                number = self.repulsions[repulsion] = len(self.repulsions)
                self._repulsions.append(repulsion)
                self._repulsion_lookup.add(number, repulsion.scope)
                self.held.append(np.zeros(self._rows, dtype=np.int64))

    def _watch(self, watch: Watch) -> None:
        if watch not in self.watches:
            number = self.watches[watch] = len(self.watches)
            self._watches.append(watch)
            self._watch_lookup.add(number, watch.scopes[0])
            self.watched.append(np.zeros(self._rows, dtype=np.int64))

    def scope(self, namespace: str, term: PodAffinityTerm) -> Scope:
        """Where an affinity term looks: its namespaces and those its selector takes; neither: the pod's own."""
        if term.namespace_selector is None and not term.namespaces:
            return Scope(frozenset({namespace}), term.selector)
        if term.namespace_selector is None:
            return Scope(frozenset(term.namespaces), term.selector)
        if not term.namespace_selector.requirements:
            return Scope(EVERY_NAMESPACE, term.selector)
        chosen = self._namespaces.chosen(term.namespace_selector)
        return Scope(chosen.union(term.namespaces) if term.namespaces else chosen, term.selector)

    def spread_watch(self, namespace: str, spread: SpreadConstraint) -> Watch:
        return Watch((Scope(frozenset({namespace}), spread.selector),), counts_terminating=False)

    def affinity_watch(self, namespace: str, terms: tuple[PodAffinityTerm, ...]) -> Watch:
        """kube-scheduler counts for affinity only pods that match all of the incoming pod's terms."""
        return Watch(tuple(self.scope(namespace, term) for term in terms), counts_terminating=True)

    def anti_affinity_watch(self, namespace: str, term: PodAffinityTerm) -> Watch:
        return Watch((self.scope(namespace, term),), counts_terminating=True)

    # Matching: which counts a pod moves.

    def matching(self, pod: Pod) -> tuple[Ids, Ids]:
        """Ids of the watches that take a pod, and of the repulsions that keep it out."""
        if not self.watches:
            return (), ()
        key = (pod.namespace, pod.is_terminating, *pod.labels.items())
        found = self._matching.get(key)
        if found is None:
            watches, repulsions = self._watches, self._repulsions
            found = self._matching[key] = (
                tuple(i for i in self._watch_lookup.candidates(pod.labels) if watches[i].takes(pod)),
                tuple(i for i in self._repulsion_lookup.candidates(pod.labels) if repulsions[i].scope.takes(pod)),
            )
        return found

    def held_by(self, pod: Pod) -> Ids:
        """Ids of the repulsions a pod carries."""
        return tuple(
            self.repulsions[Repulsion(self.scope(pod.namespace, term), term.topology_key)]
            for term in pod.constraints.anti_affinity
        )

    def topology_key(self, repulsion: int) -> str:
        """The domains a repulsion keeps others out of."""
        return self._repulsions[repulsion].topology_key

    # Counting.

    def carriers(self, repulsions: Ids) -> Iterator[tuple[str, Counts]]:
        """Who keeps away those that repulsions match: (topology key, pods by row), together all that carry any of them.

        Of 200 pods that each stay away from all others, every one asks about 199 repulsions for every machine bought.
        """
        if len(repulsions) <= FEW_REPULSIONS:
            yield from ((self.topology_key(number), self.held[number]) for number in repulsions)
            return
        if repulsions not in self._sums_of:
            self._sums_of[repulsions] = tuple(self._sum_up(repulsions))
        yield from ((key, self._sums[number]) for key, number in self._sums_of[repulsions])

    def _sum_up(self, repulsions: Ids) -> Iterator[tuple[str, int]]:
        """Keep a sum from now on for each topology key of the repulsions."""
        by_key: dict[str, list[int]] = {}
        for repulsion in repulsions:
            by_key.setdefault(self.topology_key(repulsion), []).append(repulsion)
        for key, together in by_key.items():
            total = np.zeros(self._rows, dtype=np.int64)
            for repulsion in together:
                total += self.held[repulsion]
                self._sums_with.setdefault(repulsion, []).append(len(self._sums))
            yield key, len(self._sums)
            self._sums.append(total)

    def grow(self, rows: int) -> None:
        """Make room for `rows` node rows (never shrinks)."""
        if rows <= self._rows:
            return
        self.watched = [_grown(counts, rows) for counts in self.watched]
        self.held = [_grown(counts, rows) for counts in self.held]
        self._sums = [_grown(counts, rows) for counts in self._sums]
        self.ports.grow(rows)
        self.claims_per_row = _grown(self.claims_per_row, rows)
        self._rows = rows

    def add(self, cls: PodClass, row: int, count: int) -> None:
        """Count `count` pods of a class on a row (negative: take them away)."""
        for watch in cls.watches:
            self.watched[watch][row] += count
        for repulsion in cls.holds:
            self.held[repulsion][row] += count
            for number in self._sums_with.get(repulsion, ()):
                self._sums[number][row] += count
        constraints = cls.constraints
        for port in constraints.host_ports:
            self.ports.add(port, row, count)
        if constraints.claims:
            self._use_claims([f"{cls.namespace}/{name}" for name in constraints.claims], row, count)

    def _use_claims(self, keys: Iterable[str], row: int, count: int) -> None:
        on_row = self.claims_on.setdefault(row, Counter())
        for key in keys:
            _count(on_row, key, count)
            _count(self.claim_users, key, count)
        self.claims_per_row[row] = len(on_row)
        if not on_row:
            del self.claims_on[row]


def _count(counter: Counter[str], key: str, count: int) -> None:
    """Add to a count; what comes to zero goes."""
    counter[key] += count
    if not counter[key]:
        del counter[key]


def _grown(counts: Counts, rows: int) -> Counts:
    grown = np.zeros(rows, dtype=np.int64)
    grown[: len(counts)] = counts
    return grown
