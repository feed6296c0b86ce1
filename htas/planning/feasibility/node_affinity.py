"""NodeAffinity: nodeSelector, and required node affinity terms (any term; all of a term).

Source: kube-scheduler, plugins/nodeaffinity. Each requirement is judged once per distinct label value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from htas.model.constraints import NodeSelectorTerm
from htas.model.selectors import Operator, Requirement
from htas.planning.classes import Bools, PodClass
from htas.planning.feasibility.world import Refusal, World
from htas.planning.table import NO_VALUE, NodeTable

REASON = "node(s) didn't match Pod's node affinity/selector"


def refuse(world: World, cls: PodClass, rows: slice) -> Iterator[Refusal]:
    refused = ~matching(world.table, cls, rows)
    if refused.any():
        yield Refusal(REASON, refused)


def matching(table: NodeTable, cls: PodClass, rows: slice) -> Bools:
    """Rows that a class's nodeSelector and required affinity accept."""
    ok = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for key, value in cls.constraints.node_selector:
        ok &= label_meets(table, Requirement(key, Operator.IN, (value,)), rows)
    if cls.constraints.node_affinity is not None:
        ok &= any_term(table, cls.constraints.node_affinity, rows)
    return ok


def any_term(table: NodeTable, terms: Iterable[NodeSelectorTerm], rows: slice) -> Bools:
    """Rows that some term accepts; an empty term accepts none."""
    ok = np.zeros(rows.stop - rows.start, dtype=np.bool_)
    for term in terms:
        if not term.expressions and not term.fields:
            continue
        met = np.ones_like(ok)
        for requirement in term.expressions:
            met &= label_meets(table, requirement, rows)
        for requirement in term.fields:
            met &= _field_meets(table, requirement, rows)
        ok |= met
    return ok


def label_meets(table: NodeTable, requirement: Requirement, rows: slice) -> Bools:
    """Rows whose label meets a requirement."""
    column = table.label(requirement.key)
    verdicts = np.array([requirement.holds_for(value) for value in column.values] + [requirement.holds_for(None)])
    return np.asarray(verdicts[column.codes[rows]])  # NO_VALUE is -1: the last verdict, the missing label's


assert NO_VALUE == -1, "label_meets looks up missing labels at the end"


def _field_meets(table: NodeTable, requirement: Requirement, rows: slice) -> Bools:
    """metadata.name is the only field Kubernetes knows here; anything else matches nothing."""
    if requirement.key != "metadata.name":
        return np.zeros(rows.stop - rows.start, dtype=np.bool_)
    return np.array([requirement.holds_for(node.name) for node in table.nodes[rows]], dtype=np.bool_)
