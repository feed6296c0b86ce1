"""A small cluster to clean: nodes of ours, held for an hour, long under-used, with the queue long empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import CleaningRules, NodeGroup, Policy, Workload
from htas.model.reasons import Kept
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.cluster.simulated import open_simulation
from htas.planning.disrupt.cleaning.cleaner import RestOfPlan, clean
from htas.planning.place.context import PlanContext
from htas.planning.place.placing import Placer
from tests.builders import NOW, make_flavour, make_job, make_policy, make_snapshot, owned_node, ready_claim, running

LONG_AGO = NOW - 3600.0
MEDIUM = make_flavour("medium", "4", "8Gi", "0.20")
LARGE = make_flavour("large", "8", "16Gi", "0.40")


def policy_with(
    rules: Mapping[str, Any] | None = None, group: Mapping[str, Any] | None = None, **fields: Any
) -> Policy:
    cleaning = CleaningRules(**(rules or {}))
    return make_policy([NodeGroup("any", Workload.ANY, cleaning=cleaning, **(group or {}))], (MEDIUM, LARGE), **fields)


def job_on(node: str, name: str, cpu: str = "1", left_s: float = 3000.0, ran_s: float = 30.0, **fields: Any) -> Pod:
    """A batch pod that has run for `ran_s` and has `left_s` to go."""
    return running(make_job(name, ran_s + left_s, cpu=cpu, **fields), node, ran_s)


def quiet_snapshot(nodes: Iterable[Node], pods: Iterable[Pod] = (), **fields: Any) -> ClusterSnapshot:
    """Every node has been under-used and empty for an hour, as far as the memory knows."""
    nodes = tuple(nodes)
    since = {node.name: LONG_AGO for node in nodes}
    defaults: dict[str, Any] = {
        "claims": tuple(ready_claim(node) for node in nodes if node.claim is not None),
        "memory": Memory(since, since, LONG_AGO),
    }
    return make_snapshot(nodes, pods, **{**defaults, **fields})


def opened(snapshot: ClusterSnapshot, policy: Policy) -> PlanContext:
    simulated = open_simulation(snapshot, policy, NOW)
    return PlanContext(simulated, snapshot, policy, NOW, Placer(policy, simulated.pools))


def cleaned(
    snapshot: ClusterSnapshot, policy: Policy | None = None, *, is_due: bool = True, **circumstances: Any
) -> Plan:
    """The cleaner's part of a plan, on the simulation that one opens."""
    policy = policy or policy_with()
    found = clean(opened(snapshot, policy), RestOfPlan(**circumstances), is_due=is_due)
    return Plan(NOW, proposals=found.proposals, kept=found.kept, memory=found.memory)


def removed(cleaning: Plan) -> list[str]:
    return [removing.node for removing in cleaning.remove]


def moves(cleaning: Plan) -> list[tuple[str, str, str]]:
    return [(move.pod.removeprefix("default/"), move.source, move.target) for move in cleaning.migrate]


def kept(cleaning: Plan) -> dict[str, Kept]:
    return {keeping.node: keeping.reason for keeping in cleaning.kept}


def message(cleaning: Plan, node: str) -> str:
    return next(keeping.message for keeping in cleaning.kept if keeping.node == node)


def full_node(name: str, **fields: Any) -> tuple[Node, Pod]:
    """A node that is no candidate and has no room: 4 cores taken by one job."""
    return owned_node(name, **fields), job_on(name, f"filling-{name}", cpu="4")
