"""InterPodAffinity: required affinity and anti-affinity between pods, in both directions.

Source: kube-scheduler v1.36, plugins/interpodaffinity/filtering.go. In its order: the pod's affinity (all terms; a pod
that matches its own terms may be the first of its kind anywhere), its anti-affinity, and the anti-affinity of pods
that already run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.model.nodes import ZONE_LABEL
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal
from htas.planning.cluster.table import NO_VALUE

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


def refuse(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """A node is named once, by the first of the three that refuses it."""
    left = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for reason, judge in (
        (AFFINITY, _far_from_friends),
        (ANTI_AFFINITY, _near_unwanted),
        (EXISTING_ANTI_AFFINITY, _near_unwilling),
    ):
        where = judge(context, cls, rows)
        if where is not None:
            where &= left
            if where.any():
                left &= ~where
                yield FilterRefusal(reason, where)
                if not left.any():
                    return


def _far_from_friends(context: FilterContext, cls: PodClass, rows: slice) -> Bools | None:
    """Rows where some affinity term finds no matching pod in its domain."""
    terms = cls.constraints.affinity
    if not terms:
        return None
    watch = context.counts.watches[context.counts.affinity_watch(cls.namespace, terms)]
    counts = context.counts.watched[watch][: len(context.table)]
    by_domain = {key: _by_domain(context, key, counts) for key in {term.topology_key for term in terms}}
    is_first = watch in cls.watches and not any(domains.any() for domains in by_domain.values())
    far = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for key, domains in by_domain.items():
        codes = context.table.label(key).codes[rows]
        far |= codes == NO_VALUE if is_first else domains[codes] == 0
    return far


def _near_unwanted(context: FilterContext, cls: PodClass, rows: slice) -> Bools | None:
    """Rows whose domain holds a pod that one of the class's anti-affinity terms matches."""
    near = None
    for term in cls.constraints.anti_affinity:
        watch = context.counts.watches[context.counts.anti_affinity_watch(cls.namespace, term)]
        near = _or(near, _shares_domain(context, term.topology_key, context.counts.watched[watch], rows))
    return near


def _near_unwilling(context: FilterContext, cls: PodClass, rows: slice) -> Bools | None:
    """Rows whose domain holds a pod with an anti-affinity term that matches the class."""
    near = None
    for key, counts in context.counts.carriers(cls.repelled_by):
        near = _or(near, _shares_domain(context, key, counts, rows))
    return near


def _or(one: Bools | None, other: Bools | None) -> Bools | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _shares_domain(context: FilterContext, key: str, counts: Ints, rows: slice) -> Bools | None:
    """Rows in a domain with a pod counted; None where no pod is counted at all, as is often so."""
    counts = counts[: len(context.table)]
    if not counts.any():
        return None
    codes = context.table.label(key).codes[rows]
    beside: Bools = (counts[rows] > 0) & (codes != NO_VALUE)
    if beside.all():
        return beside  # as mostly on the machine bought last: who is on the node itself is in its domain
    shared: Bools = _by_domain(context, key, counts)[codes] > 0
    return shared if key != ZONE_LABEL else shared | _may_share_zone(context, counts, rows)


def _may_share_zone(context: FilterContext, counts: Ints, rows: slice) -> Bools:
    """Machines that may come up in any zone, where some zone has a pod counted, or another such machine.

    kube-scheduler sees such a machine once it has its zone: three replicas kept apart by zones, one in each of three,
    had a fourth bought for that no zone would take. Where no node has a zone, machines will have none either.
    """
    of_any = context.table.is_of_any_zone
    if not of_any[rows].any():
        return of_any[rows]
    column = context.table.label(ZONE_LABEL)
    placed = (column.codes[: len(counts)] != NO_VALUE) | of_any[: len(counts)]
    return of_any[rows] & bool(column.values and counts[placed].any())


def _by_domain(context: FilterContext, key: str, counts: Ints) -> Ints:
    """Pods counted by domain of a topology key, and 0 at the end for rows without it (NO_VALUE is -1)."""
    column = context.table.label(key)
    occupied = np.flatnonzero(counts)
    codes = column.codes[occupied]
    has = codes != NO_VALUE
    totals = np.bincount(codes[has], weights=counts[occupied][has], minlength=len(column.values) + 1)
    return np.asarray(totals.astype(np.int64))
