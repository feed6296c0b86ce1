"""How much a pod may demand before HTAS refuses to place it.

Kubernetes bounds an object by its bytes alone (1.5 MB): a pod may have 2,000 host ports or 800 spread constraints, and
fifty such pods once held up everybody's plan for minutes. A pod beyond the bounds waits, with the reason; what a
kubelet has taken keeps all of its terms, since others must respect them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from htas.model.constraints import Constraints

MOST = {
    "host ports": 100,
    "tolerations": 500,
    "topology spread constraints": 20,
    "terms of pod affinity and anti-affinity": 100,
    "requirements of node selector and affinity": 200,
    "values in affinity and selectors": 10_000,
    "volume claims": 500,
}
"""Far above what people write: an attach limit is 256 at most, a cluster of 5,000 nodes may be named one by one."""
_TOLD = 3


def within_budget(constraints: Constraints, *, is_placed: bool, has_started: bool) -> Constraints:
    """The constraints, or for a pod that demands too much and has not started, the refusal.

    Anybody may write a node's name into a pod: until its kubelet has taken the pod it holds ports and volumes there, as
    many as the bounds allow, and nobody has to respect its terms.
    """
    many = constraints.unsupported
    if len(many) > _TOLD:
        told = (*many[:_TOLD], f"{len(many) - _TOLD} things more that are not understood")
        constraints = msgspec.structs.replace(constraints, unsupported=told)
    if has_started:
        return constraints
    beyond = tuple(
        f"{count:,} {what}, more than {MOST[what]:,}" for what, count in _counts(constraints) if count > MOST[what]
    )
    if not beyond:
        return constraints
    if not is_placed:
        return Constraints(unsupported=beyond)
    ports, claims = constraints.host_ports[: MOST["host ports"]], constraints.claims[: MOST["volume claims"]]
    return Constraints(host_ports=ports, claims=claims, unsupported=beyond)


def _counts(constraints: Constraints) -> Iterator[tuple[str, int]]:
    terms = constraints.node_affinity or ()
    requirements = [each for term in terms for each in (*term.expressions, *term.fields)]
    near = (*constraints.affinity, *constraints.anti_affinity)
    selectors = [term.selector for term in near] + [term.namespace_selector for term in near]
    selectors += [spread.selector for spread in constraints.spread]
    chosen = [each for selector in selectors if selector is not None for each in selector.requirements]
    yield "host ports", len(constraints.host_ports)
    yield "tolerations", len(constraints.tolerations)
    yield "topology spread constraints", len(constraints.spread)
    yield "terms of pod affinity and anti-affinity", len(near)
    yield "requirements of node selector and affinity", len(constraints.node_selector) + len(requirements)
    named = sum(len(term.namespaces) for term in near)
    yield "values in affinity and selectors", named + sum(1 + len(each.values) for each in (*requirements, *chosen))
    yield "volume claims", len(constraints.claims)
