"""PodTopologySpread, DoNotSchedule constraints.

Source: kube-scheduler, plugins/podtopologyspread/filtering.go. For a constraint over domains (values of a topology key
on eligible nodes): pods in the node's domain, plus one if the pod selects itself, less the smallest domain's, must not
exceed maxSkew. Fewer domains than minDomains: the smallest counts as 0. Nodes lack eligibility that miss any of the
pod's topology keys, or that its node affinity (policy Honor, the default) or taints (policy Honor) exclude.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.model.constraints import SpreadConstraint
from htas.planning.classes import Bools, PodClass
from htas.planning.feasibility import node_affinity, taints
from htas.planning.feasibility.world import Refusal, World, accepted
from htas.planning.table import NO_VALUE

REASON = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = REASON + " (missing required label)"


def refuse(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    for constraint in cls.constraints.spread:
        codes = world.table.label(constraint.topology_key).codes[rows]
        missing = codes == NO_VALUE
        if missing.any():
            yield Refusal(MISSING_LABEL, missing)
        skewed = ~missing & ~_within_skew(world, cls, constraint, rows)
        if skewed.any():
            yield Refusal(REASON, skewed)


def _within_skew(world: World, cls: PodClass, constraint: SpreadConstraint, rows: slice) -> Bools:
    column = world.table.label(constraint.topology_key)
    every = slice(0, len(world.table))
    eligible = _eligible(world, cls, constraint)
    watch = world.tallies.watches[world.tallies.spread_watch(cls.namespace, constraint)]
    counts = world.tallies.watched[watch][every]
    codes = column.codes[every]
    domains = len(column.values)
    if not domains:
        return np.zeros(rows.stop - rows.start, dtype=np.bool_)
    in_domain = np.bincount(codes[eligible], weights=counts[eligible], minlength=domains).astype(np.int64)
    is_domain = np.zeros(domains, dtype=np.bool_)
    is_domain[codes[eligible]] = True
    least = int(in_domain[is_domain].min()) if is_domain.any() else 0
    if constraint.min_domains is not None and int(is_domain.sum()) < constraint.min_domains:
        least = 0
    own = int(watch in cls.watches)
    # A node outside every eligible domain counts as a domain without pods, as kube-scheduler's map look-up has it.
    return np.asarray(in_domain[codes[rows]] + own - least <= constraint.max_skew)


def _eligible(world: World, cls: PodClass, constraint: SpreadConstraint) -> Bools:
    """Rows whose pods and domains count, by the constraint's policies."""
    policies = constraint.honors_node_affinity, constraint.honors_node_taints

    def compute(rows: slice) -> Bools:
        ok = np.ones(rows.stop - rows.start, dtype=np.bool_)
        for other in cls.constraints.spread:
            ok &= world.table.label(other.topology_key).codes[rows] != NO_VALUE
        if constraint.honors_node_affinity:
            ok &= node_affinity.matching(world.table, cls, rows)
        if constraint.honors_node_taints:
            ok &= accepted(world, (taints.refuse,), cls, rows)
        return ok

    return world.column(("spread", cls.static_key, policies), compute)
