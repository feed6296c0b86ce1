"""Why no machine on offer would reach a pod's volumes: told by volume and label, with what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from htas.model.constraints import NodeSelectorTerm
from htas.model.nodes import HOSTNAME_LABEL
from htas.model.selectors import Operator
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.filter_context import VolumeIndex
from htas.planning.cluster.feasibility.volumes import Reach, reaches

_NAMES = (HOSTNAME_LABEL, "metadata.name")
MOST_TOLD = 4
"""Values of a label: a volume of ten zones is told by its first four."""


class OutOfReach(NamedTuple):
    """A volume and what it asks for, and what to do about it where that is known."""

    what: str
    advice: str = ""


def out_of_reach(volumes: VolumeIndex, cls: PodClass, machines: Sequence[Mapping[str, str]]) -> OutOfReach | None:
    """The first of a class's volumes that none of the machines (by their labels) would reach; None: all are."""
    borne: dict[str, set[str]] = {}
    for labels in machines:
        for key, value in labels.items():
            borne.setdefault(key, set()).add(value)
    for reach in reaches(volumes, cls.namespace, cls.constraints.claims):
        # A term that names nodes holds for no machine that is still to be bought.
        terms = [term for term in reach.terms if not term.fields and _may_hold(term, borne)]
        if not any(term.holds_for(labels, "") for term in terms for labels in machines):
            return _told(reach, machines)
    return None


def _may_hold(term: NodeSelectorTerm, borne: Mapping[str, set[str]]) -> bool:
    """Whether every value that a term asks for is borne by some machine, if not by the same: mostly none is."""
    asked = (each for each in term.expressions if each.operator is Operator.IN)
    return all(any(value in borne.get(each.key, ()) for value in each.values) for each in asked)


def _told(reach: Reach, machines: Sequence[Mapping[str, str]]) -> OutOfReach:
    asked = [each for term in reach.terms for each in term.expressions]
    fields = [each for term in reach.terms for each in term.fields]
    named = [each for each in (*fields, *asked) if each.key in _NAMES and each.operator is Operator.IN]
    names = [name for each in named for name in each.values]
    if fields or any(each.key == HOSTNAME_LABEL for each in asked):
        where = f"from {_listed(names)} alone" if names else "from nodes that are there alone"
        return OutOfReach(f"{reach.what} can be reached {where}: no new machine can help")
    for each in asked:
        borne = sorted({labels[each.key] for labels in machines if each.key in labels})
        if any(each.holds_for(value) for value in (*borne, None)):
            continue
        wanted = f"{each.key} {each.operator.value} ({_listed(each.values)})"
        if borne:
            return OutOfReach(f"{reach.what} asks for {wanted}; machines on offer would have {_listed(borne)}")
        advice = "; write which it will be under volumes.topology, or under labels of the node group"
        unknown = f"{reach.what} asks for {wanted}, and no machine on offer is known to get that label"
        return OutOfReach(unknown, advice)
    return OutOfReach(f"{reach.what} asks for labels that no one machine on offer has all of")


def _listed(values: Sequence[str]) -> str:
    more = [f"and {len(values) - MOST_TOLD} more"] if len(values) > MOST_TOLD else []
    return ", ".join([*values[:MOST_TOLD], *more])
