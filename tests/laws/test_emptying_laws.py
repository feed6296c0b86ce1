"""A law of the cleaner: what it empties and replaces never costs more than leaving all as it is, by what is expected."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.billing import Billing
from htas.model.flavours import Catalogue
from htas.model.moves import MigrationMethod
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.policy import CleaningRules
from htas.model.snapshot import ClusterSnapshot, Memory
from tests.builders import NOW, make_flavour, make_snapshot, owned_node, ready_claim
from tests.unit.planning.cleaning.world import LONG_AGO, cleaned, job_on, policy_with

FLAVOURS = (
    make_flavour("small", "1", "2Gi", "0.05"),
    make_flavour("medium", "4", "8Gi", "0.19"),
    make_flavour("large", "8", "16Gi", "0.40"),
)
NANOS = {flavour.name: flavour.nanos_per_hour for flavour in FLAVOURS}
RULES = CleaningRules.early(MigrationMethod.CHECKPOINT)
MOVE_S = 10


@st.composite
def clusters(draw: Any) -> tuple[ClusterSnapshot, dict[str, int]]:
    """Nodes held for a while with jobs of a minute to a day left, and for how long each has been held."""
    nodes: list[Node] = []
    pods: list[Pod] = []
    held: dict[str, int] = {}
    for i in range(draw(st.integers(1, 5))):
        flavour = draw(st.sampled_from(FLAVOURS))
        node = msgspec.structs.replace(owned_node(f"n{i}", "any", flavour.name), allocatable=flavour.allocatable)
        nodes.append(node)
        held[node.name] = draw(st.integers(0, 7200))
        left_m = flavour.allocatable.cpu_m
        for j in range(draw(st.integers(1, 3))):
            cpu_m = draw(st.sampled_from([250, 500, 1000]))
            if cpu_m <= left_m:
                left_m -= cpu_m
                runs_s = draw(st.sampled_from([60.0, 600.0, 6000.0, 86_400.0]))
                pods.append(job_on(node.name, f"{node.name}-{j}", f"{cpu_m}m", runs_s, memory="256Mi"))
    since = {node.name: LONG_AGO for node in nodes}
    claims = tuple(ready_claim(node, held[node.name]) for node in nodes)
    return make_snapshot(nodes, pods, claims=claims, memory=Memory(since, {}, LONG_AGO)), held


@settings(max_examples=150, deadline=None, derandomize=True)
@given(clusters(), st.sampled_from([1, 60, 3600]))
def test_what_is_emptied_or_replaced_is_expected_to_lower_the_bill(
    cluster: tuple[ClusterSnapshot, dict[str, int]], granularity_s: int
) -> None:
    snapshot, held = cluster
    billing = Billing(granularity_s, granularity_s)
    policy = policy_with(
        {name: getattr(RULES, name) for name in RULES.__struct_fields__}, catalogue=_catalogue(billing)
    )
    made = cleaned(snapshot, policy, may_replace=True)
    left = {pod.key: int(_left_s(pod)) for pod in snapshot.cluster.pods}
    at = {pod.key: pod.node or "" for pod in snapshot.cluster.pods}
    after = _bill(snapshot, made, held, left, {**at, **{move.pod: move.target or "" for move in made.migrate}}, billing)
    assert after <= _bill(snapshot, None, held, left, at, billing)


def _catalogue(billing: Billing) -> Catalogue:
    return Catalogue(FLAVOURS, "USD", billing)


def _left_s(pod: Pod) -> float:
    assert pod.run_length is not None and pod.started_at is not None
    return pod.run_length.seconds - (NOW - pod.started_at)


def _bill(
    snapshot: ClusterSnapshot,
    made: Plan | None,
    held: dict[str, int],
    left: dict[str, int],
    at: dict[str, str],
    billing: Billing,
) -> int:
    """Price × billed seconds of all machines until their work ends, or is moved; replacements are as if they came."""
    removed = {removing.node for removing in made.remove} if made is not None else set()
    replaced = {node: launch for launch in (made.launches if made is not None else ()) for node in launch.replaces}
    total = 0
    for node in snapshot.cluster.nodes:
        price = NANOS[node.flavour or ""]
        ends = max((left[pod] for pod, where in at.items() if where == node.name), default=0)
        if node.name in removed:
            total += price * billing.seconds(NOW, held[node.name] + MOVE_S)
        elif node.name in replaced:
            start_s = max(group.startup_s for group in policy_with().groups)
            total += price * billing.seconds(NOW, held[node.name] + start_s + MOVE_S)
            total += replaced[node.name].nanos_per_hour * billing.seconds(NOW, max(ends, start_s + MOVE_S))
        else:
            total += price * billing.seconds(NOW, held[node.name] + ends)
    return total
