"""InterPodAffinity: required affinity and anti-affinity between pods, in both directions.

Source: kube-scheduler v1.36, plugins/interpodaffinity/filtering.go. In its order: the pod's affinity (all terms; a pod
that matches its own terms may be the first of its kind anywhere), its anti-affinity, and the anti-affinity of pods
that already run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.feasibility.world import Refusal, World
from htas.planning.cluster.table import NO_VALUE

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


def refuse(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    """A node is named once, by the first of the three that refuses it."""
    left = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for reason, judge in (
        (AFFINITY, _far_from_friends),
        (ANTI_AFFINITY, _near_unwanted),
        (EXISTING_ANTI_AFFINITY, _near_unwilling),
    ):
        where = judge(world, cls, rows)
        if where is not None:
            where &= left
            if where.any():
                left &= ~where
                yield Refusal(reason, where)
                if not left.any():
                    return


def _far_from_friends(world: World, cls: PodClass, rows: slice) -> Bools | None:
    """Rows where some affinity term finds no matching pod in its domain."""
    terms = cls.constraints.affinity
    if not terms:
        return None
    watch = world.tallies.watches[world.tallies.affinity_watch(cls.namespace, terms)]
    counts = world.tallies.watched[watch][: len(world.table)]
    by_domain = {key: _by_domain(world, key, counts) for key in {term.topology_key for term in terms}}
    is_first = watch in cls.watches and not any(domains.any() for domains in by_domain.values())
    far = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for key, domains in by_domain.items():
        codes = world.table.label(key).codes[rows]
        far |= codes == NO_VALUE if is_first else domains[codes] == 0
    return far


def _near_unwanted(world: World, cls: PodClass, rows: slice) -> Bools | None:
    """Rows whose domain holds a pod that one of the class's anti-affinity terms matches."""
    near = None
    for term in cls.constraints.anti_affinity:
        watch = world.tallies.watches[world.tallies.anti_affinity_watch(cls.namespace, term)]
        near = _or(near, _shares_domain(world, term.topology_key, world.tallies.watched[watch], rows))
    return near


def _near_unwilling(world: World, cls: PodClass, rows: slice) -> Bools | None:
    """Rows whose domain holds a pod with an anti-affinity term that matches the class."""
    near = None
    for key, counts in world.tallies.carriers(cls.repelled_by):
        near = _or(near, _shares_domain(world, key, counts, rows))
    return near


def _or(one: Bools | None, other: Bools | None) -> Bools | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _shares_domain(world: World, key: str, counts: Ints, rows: slice) -> Bools | None:
    """Rows in a domain with a pod counted; None where no pod is counted at all, as is often so."""
    counts = counts[: len(world.table)]
    if not counts.any():
        return None
    codes = world.table.label(key).codes[rows]
    beside: Bools = (counts[rows] > 0) & (codes != NO_VALUE)
    if beside.all():
        return beside  # as mostly on the machine bought last: who is on the node itself is in its domain
    return np.asarray(_by_domain(world, key, counts)[codes] > 0)


def _by_domain(world: World, key: str, counts: Ints) -> Ints:
    """Pods counted by domain of a topology key, and 0 at the end for rows without it (NO_VALUE is -1)."""
    column = world.table.label(key)
    occupied = np.flatnonzero(counts)
    codes = column.codes[occupied]
    has = codes != NO_VALUE
    totals = np.bincount(codes[has], weights=counts[occupied][has], minlength=len(column.values) + 1)
    return np.asarray(totals.astype(np.int64))
