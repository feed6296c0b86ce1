"""What a pod demands of the node it runs on, apart from resources. Hashable, so that equal demands are judged once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from htas.model.selectors import LabelSelector, Requirement


class Effect(StrEnum):
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str
    effect: Effect
    value: str = ""


class Toleration(msgspec.Struct, frozen=True, omit_defaults=True):
    """`operator` is Equal, Exists, Gt or Lt. An empty key with Exists tolerates every taint; no effect, each effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: Effect | None = None


_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint (core/v1 Toleration.ToleratesTaint).

    Gt and Lt compare the taint's value with the toleration's (KEP-5471): a node tainted `spot=5` is tolerated by Gt 3.
    An API server that does not know them admits no pod with them.
    """
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal" | "":
            return toleration.value == taint.value
        case "Gt" | "Lt":
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    offered, asked = (_integer(value) for value in (taint.value, toleration.value))
    if offered is None or asked is None:
        return False
    return offered > asked if toleration.operator == "Gt" else offered < asked


def _integer(text: str) -> int | None:
    """A decimal integer of 64 bits without a plus sign or leading zeros; anything else is none."""
    if not _DECIMAL.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps pods out and is not tolerated."""
    for taint in taints:
        if taint.effect is not Effect.PREFER_NO_SCHEDULE and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


class NodeSelectorTerm(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of it must hold; a term with neither part matches no node. `fields` knows metadata.name alone."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def holds_for(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name matches."""
        fields = {"metadata.name": name}
        return bool(self.expressions or self.fields) and all(
            item.holds_for(found.get(item.key))
            for items, found in ((self.expressions, labels), (self.fields, fields))
            for item in items
        )


class HostPort(msgspec.Struct, frozen=True, omit_defaults=True):
    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"


class PodAffinityTerm(msgspec.Struct, frozen=True, omit_defaults=True):
    """A required pod (anti-)affinity term, matchLabelKeys already folded into the selector.

    `namespaces` empty and `namespace_selector` None: the pod's own namespace. `selector` None matches no pod.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class SpreadConstraint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A DoNotSchedule topology spread constraint, matchLabelKeys already folded into the selector."""

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    min_domains: int | None = None
    honors_node_affinity: bool = True
    honors_node_taints: bool = False


class Constraints(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything the filters read of a pod besides its resources.

    `node_affinity` None: no required terms; an empty tuple: terms that nothing can match. `claims` are the
    PersistentVolumeClaims by name, in the pod's namespace. `unsupported` names what HTAS does not understand
    (a DRA claim, an unknown policy): such a pod is refused with that reason, never placed by ignoring it.
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[NodeSelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    affinity: tuple[PodAffinityTerm, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    claims: tuple[str, ...] = ()
    own_claims: tuple[tuple[str, str], ...] = ()
    """Of the claims those of generic ephemeral volumes, with the uid of the pod that each must have been made for."""
    unsupported: tuple[str, ...] = ()


UNCONSTRAINED = Constraints()
