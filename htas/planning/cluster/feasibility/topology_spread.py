"""PodTopologySpread, DoNotSchedule constraints.

Source: kube-scheduler v1.36, plugins/podtopologyspread. For a constraint over domains (values of a topology key on
eligible nodes): pods in the node's domain, plus one if the pod selects itself, less the smallest domain's, must not
exceed maxSkew. Fewer domains than minDomains: the smallest counts as 0. Not eligible are nodes that miss any of the
pod's topology keys, or that its node affinity (policy Honor, the default) or taints (policy Honor) exclude, such as the
taint of a node being emptied. With taints ignored, nodes that take no pods now stay eligible, as they do there. Default
constraints of a cluster are ScheduleAnyway, so they filter nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.model.constraints import SpreadConstraint, untolerated
from htas.model.nodes import DRAINING_TAINT
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.feasibility import node_affinity, node_groups, taints
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal, accepted
from htas.planning.cluster.table import NO_VALUE

REASON = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = REASON + " (missing required label)"


def refuse(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """A node is named once, by the first constraint it fails."""
    left = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for constraint in cls.constraints.spread:
        missing = left & (context.table.label(constraint.topology_key).codes[rows] == NO_VALUE)
        if missing.any():
            left &= ~missing
            yield FilterRefusal(MISSING_LABEL, missing)
        skewed = left & ~_within_skew(context, cls, constraint, rows)
        if skewed.any():
            left &= ~skewed
            yield FilterRefusal(REASON, skewed)


def _within_skew(context: FilterContext, cls: PodClass, constraint: SpreadConstraint, rows: slice) -> Bools:
    """Where one more pod keeps the skew; rows without the topology key get any answer."""
    if constraint.selector is not None and not constraint.selector.requirements:
        # kube-scheduler counts no pods for an empty selector, although the pod itself matches it: the skew is 1.
        return np.ones(rows.stop - rows.start, dtype=np.bool_)
    column = context.table.label(constraint.topology_key)
    every = slice(0, len(context.table))
    watch = context.counts.watches[context.counts.spread_watch(cls.namespace, constraint)]
    eligible = _eligible(context, cls, constraint) & context.table.is_domain[every]
    codes = column.codes[every][eligible]
    counts = context.counts.watched[watch][every][eligible]
    in_domain = np.bincount(codes, weights=counts, minlength=len(column.values) + 1)
    is_domain = np.bincount(codes, minlength=len(column.values) + 1) > 0
    domains = int(np.count_nonzero(is_domain))
    is_enough = domains >= max(constraint.min_domains or 1, 1)
    least = in_domain[is_domain].min() if is_enough else 0
    own = int(watch in cls.watches)
    # A node outside every eligible domain counts as a domain without pods, as kube-scheduler's map look-up has it.
    return np.asarray(in_domain[column.codes[rows]] + own - least <= constraint.max_skew)


def _eligible(context: FilterContext, cls: PodClass, constraint: SpreadConstraint) -> Bools:
    """Rows whose pods and domains count, by the constraint's policies.

    For pods that HTAS binds, Honor takes in that their node groups are closed to them: else a service that spreads by
    hostname could never grow beyond maxSkew a node while a batch group's nodes stand empty of it.
    """
    policies = constraint.honors_node_affinity, constraint.honors_node_taints

    def compute(rows: slice) -> Bools:
        ok = np.ones(rows.stop - rows.start, dtype=np.bool_)
        for other in cls.constraints.spread:
            ok &= context.table.label(other.topology_key).codes[rows] != NO_VALUE
        if constraint.honors_node_affinity:
            ok &= node_affinity.matching(context.table, cls, rows)
            ok &= accepted(context, (node_groups.refuse,), cls, rows)
        if constraint.honors_node_taints:
            ok &= accepted(context, (taints.refuse,), cls, rows)
        return ok

    eligible = context.column(("spread", cls.static_key, policies), compute)
    if constraint.honors_node_taints and untolerated((DRAINING_TAINT,), cls.constraints.tolerations) is not None:
        eligible = eligible & ~context.table.is_leaving[: len(context.table)]
    return eligible
