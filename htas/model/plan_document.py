"""The plan as the documented JSON: the form users script against."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from htas.model.money import price_text
from htas.model.plan import Plan
from htas.model.proposals import Launch, Proposal
from htas.model.rearrangement_document import leave_document
from htas.model.resources import LackingRequests
from htas.model.search_failures import SearchFailure

API_VERSION = "htas.io/v1alpha1"


def instant_text(instant: float) -> str:
    """An instant as Kubernetes writes it, in UTC and whole seconds."""
    moment = calendar(instant)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment is not None else f"{instant:g}"


def calendar(instant: float) -> datetime | None:
    """An instant in UTC; None where no calendar reaches: a server may say 1e300."""
    try:
        return datetime.fromtimestamp(instant, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def lacking_document(lacking: LackingRequests) -> dict[str, Any]:
    """How many pods state no cpu or no memory request, of how many."""
    return {"pods": lacking.pods, "of": lacking.of}


def plan_document(plan: Plan, least_nanos: int | None = None) -> dict[str, Any]:
    """The plan as plain data, keys in the documented order. `least_nanos`: the lower bound, where it was worked out."""
    cost = plan.cost
    least = {"lowerBoundPerHour": price_text(least_nanos)} if least_nanos is not None else {}
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "takenAt": instant_text(plan.taken_at),
        "cost": {
            "currency": cost.currency,
            "pricePerHourBefore": price_text(cost.before_nanos),
            "pricePerHourAfter": price_text(cost.after_nanos),
            **least,
        },
        "bind": [{"pod": item.pod, "node": item.node} for item in plan.bind],
        "nominate": [
            {"pod": item.pod, "node": item.node, "reason": item.reason.value, "why": item.why} for item in plan.nominate
        ],
        "launch": [_launch(item) for item in plan.launches],
        "preempt": [{"pod": item.pod, "node": item.source, "for": item.beneficiary} for item in plan.preempt],
        "optimize": list(plan.optimize),
        "rearrange": _rearrange(plan),
        "migrate": [
            {"pod": item.pod, "from": item.source, "to": item.target, "method": item.method.value}
            for item in plan.migrate
        ],
        "remove": [
            {
                "node": item.node,
                "reason": item.reason.value,
                "savingsPerHour": price_text(item.savings_nanos_per_hour),
                "message": item.message,
            }
            for item in plan.remove
        ],
        "unplaced": [
            {
                "pod": item.pod,
                "reason": item.reason.value,
                "message": item.message,
                "nodes": dict(sorted(item.nodes.items())),
            }
            for item in plan.unplaced
        ],
        "kept": [{"node": item.node, "reason": item.reason.value, "message": item.message} for item in plan.kept],
        **({"searchesFailed": [_failed(item) for item in plan.failures]} if plan.failures else {}),
        **({"podsWithoutRequests": lacking_document(plan.lacking)} if plan.lacking.pods else {}),
    }


def _failed(item: SearchFailure) -> dict[str, Any]:
    return {"search": item.search.value, "error": item.error, "where": list(item.where)}


def _launch(item: Launch) -> dict[str, Any]:
    return {
        "claim": item.claim,
        "group": item.group,
        "flavour": item.flavour,
        "zone": item.zone,
        "pricePerHour": price_text(item.nanos_per_hour),
        "pods": list(item.pods),
        **({"replaces": list(item.replaces)} if item.replaces else {}),
        **({"why": item.why} if item.why else {}),
    }


def _rearrange(plan: Plan) -> dict[str, Any]:
    """What the rearrangement under way does now, what the edge suggests, and who moves so that less is bought."""
    return {
        "leave": [
            {"pod": step.pod, "from": step.source, "to": step.target, "method": step.method.value}
            for step in plan.carry.steps
        ],
        "cancel": plan.carry.cancel.value if plan.carry.cancel is not None else None,
        **({"suggest": leave_document(plan.suggest)} if plan.suggest else {}),
        **_instead_of_buying(plan.instead_of_buying),
    }


def _instead_of_buying(proposal: Proposal | None) -> dict[str, Any]:
    """Who moves, who gets the room, and why; nothing where nobody does."""
    if proposal is None:
        return {}
    place = [{"pod": seat.pod, "node": seat.node} for seat in proposal.seats]
    return {"insteadOfLaunch": {"leave": leave_document(proposal.moves), "place": place, "why": proposal.message}}
