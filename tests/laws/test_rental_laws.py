"""Laws of rental: a plan's value is the sum of its decisions', and what is said to save never costs."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.billing import Alignment, Billing
from htas.model.flavours import Catalogue
from htas.model.moves import MigrationMethod
from htas.model.policy import CleaningRules, Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.run_length import remaining_s
from htas.planning.rental.bills import Rentals, RunningBill, billed_until
from htas.planning.rental.replacing import pays
from tests.builders import NOW, owned_node
from tests.unit.planning.cleaning.world import LARGE, MEDIUM, cleaned, job_on, policy_with, quiet_snapshot

Law = settings(max_examples=100, deadline=None, derandomize=True)
BILLINGS = st.builds(
    Billing, st.sampled_from([1, 60, 600, 3600]), st.sampled_from([0, 60, 3600]), st.sampled_from(Alignment)
)
INSTANTS = st.floats(-10_000.0, 100_000.0)


@Law
@given(BILLINGS, st.integers(0, 10**10), st.lists(INSTANTS, min_size=2, max_size=6))
def test_what_is_added_step_by_step_is_what_is_added_in_all(billing: Billing, price: int, ends: list[float]) -> None:
    bill = RunningBill(price, 0.0, billing)
    steps = sorted(ends)
    parts = [bill.longer(until, later) for until, later in pairwise(steps)]
    assert all(part >= 0 for part in parts)
    assert sum(parts) == bill.until(steps[-1]) - bill.until(steps[0])


@Law
@given(BILLINGS, st.lists(st.tuples(INSTANTS, INSTANTS), min_size=1, max_size=6))
def test_many_bills_at_once_are_the_bills_one_by_one(billing: Billing, spans: list[tuple[float, float]]) -> None:
    since, until = (np.array(each) for each in zip(*spans, strict=True))
    singly = [RunningBill(1, each, billing).until(end) for each, end in spans]
    assert billed_until(billing, since, until).tolist() == singly


@Law
@given(BILLINGS, st.lists(st.tuples(st.integers(0, 10**9), INSTANTS, INSTANTS, INSTANTS), min_size=1, max_size=5))
def test_rows_add_up_whatever_the_order_of_decisions(
    billing: Billing, rows: list[tuple[int, float, float, float]]
) -> None:
    price, since, first, second = (np.array(each, dtype=np.float64) for each in zip(*rows, strict=True))
    rentals = Rentals(price, since, billing)
    middle, last = np.maximum(first, second), np.maximum(first, second) + 100.0
    every = range(len(rows))
    in_parts = rentals.added(every, first, middle, 0.0) + sum(rentals.added([row], middle, last, 0.0) for row in every)
    assert in_parts == rentals.added(every, first, last, 0.0)


@Law
@given(BILLINGS, st.floats(0.0, 9000.0), st.floats(0.0, 90_000.0), st.floats(1.0, 600.0), st.floats(0.0, 9000.0))
def test_a_replacement_is_cheaper_than_what_it_replaces(
    billing: Billing, held_s: float, left_s: float, change_s: float, wasted_s: float
) -> None:
    old, price = RunningBill(3 * 10**8, NOW - held_s, billing), 10**8
    if pays(old, price, NOW, left_s=left_s, change_s=change_s, wasted_s=wasted_s):
        new = RunningBill(price, NOW, billing)
        both = old.price * old.seconds_in(NOW, change_s) + price * new.seconds_in(NOW, max(left_s, change_s))
        assert both < old.price * old.seconds_in(NOW, left_s)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[ClusterSnapshot, Policy]:
    """Nodes of two sizes with jobs that are moved by checkpoint, all of which may be given back."""
    nodes, pods = [], []
    for n in range(draw(st.integers(2, 6))):
        nodes.append(owned_node(f"n{n}", flavour=draw(st.sampled_from(["medium", "large"]))))
        for p in range(draw(st.integers(0, 3))):
            cpu, left_s = draw(st.integers(100, 1200)), draw(st.sampled_from([30.0, 400.0, 3000.0, 50_000.0]))
            pods.append(job_on(nodes[-1].name, f"p{n}-{p}", f"{cpu}m", memory="256Mi", left_s=left_s))
    rules = CleaningRules.early(MigrationMethod.CHECKPOINT)
    policy = policy_with({name: getattr(rules, name) for name in rules.__struct_fields__})
    billed = Catalogue((MEDIUM, LARGE), billing=draw(BILLINGS))
    return quiet_snapshot(nodes, pods), msgspec.structs.replace(policy, catalogue=billed)


@Law
@given(clusters())
def test_emptying_nodes_never_makes_the_whole_bill_dearer(world: tuple[ClusterSnapshot, Policy]) -> None:
    snapshot, policy = world
    cleaning = cleaned(snapshot, policy)
    target = {move.pod: move.target for move in cleaning.migrate}
    before, after = (dict.fromkeys((node.name for node in snapshot.cluster.nodes), NOW) for _ in range(2))
    for pod in snapshot.cluster.pods:
        end, node = NOW + remaining_s(pod, policy, NOW), pod.node or ""
        before[node] = max(before[node], end)
        after[target.get(pod.key) or node] = max(after[target.get(pod.key) or node], end)
    for move in cleaning.migrate:
        after[move.source] = max(after[move.source], NOW + policy.groups[0].cleaning.migration_seconds)
    assert _whole(snapshot, policy, after) <= _whole(snapshot, policy, before)


def _whole(snapshot: ClusterSnapshot, policy: Policy, ends: dict[str, float]) -> int:
    claims = {claim.node: claim for claim in snapshot.claims}
    price = {flavour.name: flavour.nanos_per_hour for flavour in policy.catalogue.flavours}
    return sum(
        RunningBill(price[claims[name].flavour], claims[name].rented_since, policy.catalogue.billing).until(end)
        for name, end in ends.items()
    )
