"""Plans made of a few pods, and what they come to: for tests of what is bought and where pods go."""

from __future__ import annotations

from collections import Counter
from typing import Any

from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.planning.planner import plan
from tests.builders import NOW, make_policy, make_snapshot


def planned(pods: list[Pod], policy: Policy | None = None, **snapshot: Any) -> Plan:
    """Made on `nodes`, by default none."""
    return plan(make_snapshot(snapshot.pop("nodes", ()), pods, **snapshot), policy or make_policy(), NOW)


def bought(made: Plan) -> dict[str, int]:
    """By flavour, how many."""
    return dict(Counter(item.flavour for item in made.launch))
