"""NodeAffinity: nodeSelector, and required node affinity terms (any term; all of a term).

Source: kube-scheduler v1.36, plugins/nodeaffinity, and component-helpers, scheduling/corev1/nodeaffinity. Each
requirement is judged once per distinct label value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from htas.model.constraints import NodeSelectorTerm
from htas.model.selectors import Operator, Requirement
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal
from htas.planning.cluster.table import NO_VALUE, LabelColumn, NodeTable

REASON = "node(s) didn't match Pod's node affinity/selector"
OTHER_NODE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
CONFLICT = "pod affinity terms conflict"
_NAME = "metadata.name"


def refuse_names(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """Nodes that a pod pinned to nodes by name leaves out, before any other filter sees them (NodeAffinity.PreFilter).

    It holds where every required term names nodes; such are the pods of DaemonSets.
    """
    names = _pinned_to(cls.constraints.node_affinity or ())
    if names is None:
        return
    wanted = {row for row in (context.table.row_of.get(name) for name in names) if row is not None}
    elsewhere = np.array([row not in wanted for row in range(rows.start, rows.stop)], dtype=np.bool_)
    if elsewhere.any():
        yield FilterRefusal(OTHER_NODE if names else CONFLICT, elsewhere)


def _pinned_to(terms: Iterable[NodeSelectorTerm]) -> set[str] | None:
    """The nodes that terms name among them; None where some term, or the lack of terms, leaves nodes open."""
    names: set[str] | None = None
    for term in terms:
        named = [set(f.values) for f in term.fields if f.key == _NAME and f.operator is Operator.IN]
        if not named:
            return None
        names = (names or set()) | set.intersection(*named)
    return names


def refuse(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    refused = ~matching(context.table, cls, rows)
    if refused.any():
        yield FilterRefusal(REASON, refused)


def matching(table: NodeTable, cls: PodClass, rows: slice) -> Bools:
    """Rows that a class's nodeSelector and required affinity accept."""
    ok = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for key, value in cls.constraints.node_selector:
        if not ok.any():
            return ok  # mostly after the first one: 500 labels that no node has are no dearer than one
        ok &= label_meets(table, Requirement(key, Operator.IN, (value,)), rows)
    if cls.constraints.node_affinity is not None:
        ok &= any_term(table, cls.constraints.node_affinity, rows)
    return ok


def any_term(table: NodeTable, terms: Iterable[NodeSelectorTerm], rows: slice) -> Bools:
    """Rows that some term accepts; an empty term accepts none, nor one with an expression that cannot be read."""
    ok = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for term in terms:
        if not (term.expressions or term.fields) or _is_dead(table, term):
            continue
        if not all(each.is_valid for each in term.expressions):
            continue
        met = np.ones_like(ok)
        for requirement in term.expressions:
            met &= label_meets(table, requirement, rows)
        for requirement in term.fields:
            met &= _field_meets(table, requirement, rows)
        ok |= met
    return ok


def _is_dead(table: NodeTable, term: NodeSelectorTerm) -> bool:
    """Whether no node has one of the values that a term asks for: of 500 such terms none is worth an array."""
    for requirement in term.expressions:
        if requirement.operator is Operator.IN:
            there = table.label(requirement.key).index
            for value in requirement.values:
                if value in there:
                    break
            else:
                return True
    return False


def label_meets(table: NodeTable, requirement: Requirement, rows: slice) -> Bools:
    """Rows whose label meets a requirement."""
    column = table.label(requirement.key)
    codes = column.codes[rows]
    match requirement.operator:
        case Operator.EXISTS:
            return np.asarray(codes != NO_VALUE)
        case Operator.DOES_NOT_EXIST:
            return np.asarray(codes == NO_VALUE)
        case Operator.IN:
            return _is_one_of(column, requirement.values)[codes]
        case Operator.NOT_IN:
            return ~_is_one_of(column, requirement.values)[codes]
    verdicts = np.array([requirement.holds_for(value) for value in column.values] + [requirement.holds_for(None)])
    return np.asarray(verdicts[codes])


def _is_one_of(column: LabelColumn, values: Iterable[str]) -> Bools:
    """A verdict by label code, the missing label's (NO_VALUE, -1) at the end: no loop over 5,000 hostnames."""
    verdicts = np.zeros(len(column.values) + 1, dtype=np.bool_)
    verdicts[[column.index[value] for value in values if value in column.index]] = True
    return verdicts


def _field_meets(table: NodeTable, requirement: Requirement, rows: slice) -> Bools:
    """metadata.name, in or not in one name, is all that Kubernetes knows here; anything else matches nothing."""
    nothing = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    is_known = requirement.operator in (Operator.IN, Operator.NOT_IN) and len(requirement.values) == 1
    if requirement.key != _NAME or not is_known:
        return nothing
    row = table.row_of.get(requirement.values[0], -1)
    if rows.start <= row < rows.stop:
        nothing[row - rows.start] = True
    return nothing if requirement.operator is Operator.IN else ~nothing
