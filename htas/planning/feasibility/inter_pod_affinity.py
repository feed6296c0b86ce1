"""InterPodAffinity: required affinity and anti-affinity between pods, in both directions.

Source: kube-scheduler, plugins/interpodaffinity/filtering.go. In its order: the pod's affinity (all terms; a pod that
matches its own terms may be the first of its kind anywhere), its anti-affinity, and the anti-affinity of pods that
already run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.model.constraints import PodAffinityTerm
from htas.planning.classes import Bools, Ints, PodClass
from htas.planning.feasibility.world import Refusal, World
from htas.planning.table import NO_VALUE

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


def refuse(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    refused = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for reason, where in (
        (AFFINITY, _far_from_friends(world, cls, rows)),
        (ANTI_AFFINITY, _near_unwanted(world, cls, rows)),
        (EXISTING_ANTI_AFFINITY, _near_unwilling(world, cls, rows)),
    ):
        fresh = where & ~refused
        if fresh.any():
            refused |= fresh
            yield Refusal(reason, fresh)


def _far_from_friends(world: World, cls: PodClass, rows: slice) -> Bools:
    """Rows where some affinity term finds no matching pod in its domain."""
    terms = cls.constraints.affinity
    far = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    if not terms:
        return far
    watch = world.tallies.watches[world.tallies.affinity_watch(cls.namespace, terms)]
    counts = world.tallies.watched[watch][: len(world.table)]
    is_first = watch in cls.watches and not any(_domain_counts(world, term, counts).any() for term in terms)
    for term in terms:
        codes = world.table.label(term.topology_key).codes[rows]
        missing = codes == NO_VALUE
        far |= missing if is_first else missing | (_in_domains(world, term, counts, rows) == 0)
    return far


def _near_unwanted(world: World, cls: PodClass, rows: slice) -> Bools:
    """Rows whose domain holds a pod that one of the class's anti-affinity terms matches."""
    near = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for term in cls.constraints.anti_affinity:
        watch = world.tallies.watches[world.tallies.anti_affinity_watch(cls.namespace, term)]
        near |= _in_domains(world, term, world.tallies.watched[watch][: len(world.table)], rows) > 0
    return near


def _near_unwilling(world: World, cls: PodClass, rows: slice) -> Bools:
    """Rows whose domain holds a pod with an anti-affinity term that matches the class."""
    near = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    if not cls.repelled_by:
        return near
    keys = {number: repulsion.topology_key for repulsion, number in world.tallies.repulsions.items()}
    for number in cls.repelled_by:
        term = PodAffinityTerm(keys[number], None)
        near |= _in_domains(world, term, world.tallies.held[number][: len(world.table)], rows) > 0
    return near


def _domain_counts(world: World, term: PodAffinityTerm, counts: Ints) -> Ints:
    """Pods counted by domain of a term's topology key."""
    column = world.table.label(term.topology_key)
    codes = column.codes[: len(world.table)]
    has = codes != NO_VALUE
    totals = np.bincount(codes[has], weights=counts[has], minlength=len(column.values))
    return np.asarray(totals.astype(np.int64))


def _in_domains(world: World, term: PodAffinityTerm, counts: Ints, rows: slice) -> Ints:
    """For each row the pods counted in its domain; 0 for rows without the topology key."""
    by_domain = np.append(_domain_counts(world, term, counts), 0)
    return np.asarray(by_domain[world.table.label(term.topology_key).codes[rows]])  # NO_VALUE is -1: the 0 at the end
