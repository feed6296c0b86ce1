"""Selectors, taints, affinity and spread constraints, from the wire into the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from htas.adapters.kubernetes import wire
from htas.adapters.kubernetes.errors import Fault, Faults
from htas.model.constraints import Effect, NodeSelectorTerm, PodAffinityTerm, SpreadConstraint, Taint
from htas.model.selectors import LabelSelector, Operator, Requirement

OF_NODES = frozenset(Operator)
OF_LABELS = OF_NODES - {Operator.GT, Operator.LT}
"""Label selectors cannot compare (meta/v1 LabelSelectorOperator); node selectors can."""


def requirements(
    items: Iterable[wire.Requirement] | None,
    path: str,
    faults: Faults,
    allowed: frozenset[Operator] = OF_NODES,
) -> tuple[Requirement, ...]:
    """Those with an operator that is known; each other one is a fault."""
    known = []
    for i, item in enumerate(items or ()):
        if item.operator in allowed:
            known.append(Requirement(item.key, Operator(item.operator), tuple(item.values or ())))
        else:
            listed = ", ".join(sorted(allowed))
            faults.append(Fault(f"{path}[{i}].operator", f"{item.operator!r} is not one of {listed}"))
    return tuple(known)


def selector(item: wire.Selector | None, path: str, faults: Faults) -> LabelSelector | None:
    """A label selector; None stays None: it selects nothing."""
    if item is None:
        return None
    labels = sorted((item.match_labels or {}).items())
    exact = tuple(Requirement(key, Operator.IN, (value,)) for key, value in labels)
    return LabelSelector(
        exact + requirements(item.match_expressions, f"{path}.matchExpressions", faults, allowed=OF_LABELS)
    )


def taints(items: Iterable[wire.Taint] | None, path: str, faults: Faults) -> tuple[Taint, ...]:
    known = []
    for i, item in enumerate(items or ()):
        if item.effect in tuple(Effect):
            known.append(Taint(item.key, Effect(item.effect), item.value))
        else:
            faults.append(Fault(f"{path}[{i}].effect", f"{item.effect!r} is not one of {', '.join(Effect)}"))
    return tuple(known)


def node_terms(item: wire.NodeSelector, path: str, faults: Faults) -> tuple[NodeSelectorTerm, ...]:
    place = f"{path}.nodeSelectorTerms"
    return tuple(
        NodeSelectorTerm(
            requirements(term.match_expressions, f"{place}[{i}].matchExpressions", faults),
            requirements(term.match_fields, f"{place}[{i}].matchFields", faults),
        )
        for i, term in enumerate(item.node_selector_terms)
    )


def affinity_terms(
    item: wire.PodAffinity | None, labels: Mapping[str, str], path: str, faults: Faults
) -> tuple[PodAffinityTerm, ...]:
    """Required terms, with matchLabelKeys and mismatchLabelKeys folded in as the API server does."""
    terms = (item.required_during_scheduling_ignored_during_execution if item is not None else None) or ()
    place = f"{path}.requiredDuringSchedulingIgnoredDuringExecution"
    return tuple(
        PodAffinityTerm(
            term.topology_key,
            _with_keys(
                selector(term.label_selector, f"{place}[{i}].labelSelector", faults),
                labels,
                term.match_label_keys,
                term.mismatch_label_keys,
            ),
            tuple(sorted(term.namespaces or ())),
            selector(term.namespace_selector, f"{place}[{i}].namespaceSelector", faults),
        )
        for i, term in enumerate(terms)
    )


def _with_keys(
    base: LabelSelector | None,
    labels: Mapping[str, str],
    match: Iterable[str] | None,
    mismatch: Iterable[str] | None = None,
) -> LabelSelector | None:
    """The selector narrowed to pods with the same (or other) values of some labels; keys the pod lacks are skipped.

    An API server that has folded them in already leaves the keys in place: what is there is not added again.
    """
    if base is None:
        return None
    extra = [
        Requirement(key, operator, (labels[key],))
        for keys, operator in ((match, Operator.IN), (mismatch, Operator.NOT_IN))
        for key in sorted(keys or ())
        if key in labels
    ]
    return LabelSelector(base.requirements + tuple(item for item in extra if item not in base.requirements))


POLICIES = {"Honor": True, "Ignore": False}


def spread(
    items: Iterable[wire.SpreadConstraint] | None, labels: Mapping[str, str], path: str, faults: Faults
) -> tuple[tuple[SpreadConstraint, ...], list[str]]:
    """(DoNotSchedule constraints, what is not understood). ScheduleAnyway only scores and is left to kube-scheduler."""
    hard: list[SpreadConstraint] = []
    unknown: list[str] = []
    for i, item in enumerate(items or ()):
        policies = item.node_affinity_policy, item.node_taints_policy
        if item.when_unsatisfiable == "ScheduleAnyway":
            continue
        if item.when_unsatisfiable != "DoNotSchedule":
            unknown.append(f"topology spread whenUnsatisfiable {item.when_unsatisfiable}")
        elif any(policy not in POLICIES for policy in policies):
            unknown.append(f"topology spread policy {next(p for p in policies if p not in POLICIES)}")
        else:
            base = selector(item.label_selector, f"{path}[{i}].labelSelector", faults)
            hard.append(
                SpreadConstraint(
                    item.topology_key,
                    item.max_skew,
                    _with_keys(base, labels, item.match_label_keys),
                    item.min_domains,
                    POLICIES[policies[0]],
                    POLICIES[policies[1]],
                )
            )
    return tuple(hard), unknown
