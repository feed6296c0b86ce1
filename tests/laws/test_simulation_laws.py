"""A what-if that is dropped has never been: every field of the simulation is as it was before."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htas.model.holds import HoldReason
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulated import SimulatedCluster, open_simulation
from htas.planning.cluster.simulation import KeptRoom, Simulation
from htas.planning.eligibility.budgets import BudgetLedger
from htas.planning.place.placing import Placer
from htas.planning.place.queue import bundle
from tests.builders import NOW, make_node
from tests.laws.strategies import policies, snapshots
from tests.laws.test_planner_laws import Law

REASONS = st.sampled_from(HoldReason)
FORGOTTEN = {
    "_rows",  # room for more rows stays
    "_columns",  # answers that are kept: asked again for rows that come after
    "_amounts",
    "_labels",
    "_absent",
    "_keys",
    "_matching",
    "_watch_lookup",
    "_repulsion_lookup",
    "_namespaces",
    "ports",  # a port that was asked for has a number from then on; its counts are looked at apart
}
"""Fields that are no state of the what-if."""
CONSTANT = (Policy, ClusterSnapshot)


def state(of: Any, rows: int, seen: frozenset[int] = frozenset()) -> Any:
    """All that an object holds, whatever it is called; of arrays over rows those that there are."""
    if isinstance(of, np.ndarray):
        return of[..., :rows].tolist()
    if isinstance(of, dict):
        return {str(key): state(value, rows, seen) for key, value in of.items()}
    if isinstance(of, (list, tuple)):
        return [state(each, rows, seen) for each in of]
    if not type(of).__module__.startswith("htas.planning") or isinstance(of, CONSTANT) or id(of) in seen:
        return of
    fields = {
        *getattr(of, "__dict__", {}),
        *(name for cls in type(of).__mro__ for name in getattr(cls, "__slots__", ())),
    }
    inside = seen | {id(of)}
    return {name: state(getattr(of, name), rows, inside) for name in fields - FORGOTTEN if hasattr(of, name)}


def meddle(sim: Simulation, opening: SimulatedCluster, ledger: BudgetLedger, draw: Any, policy: Policy) -> None:
    """Change whatever a stage of a plan may change, in any order."""
    classes = [opening.book.class_of(pod) for pod in opening.waiting]
    for number in draw(st.lists(st.integers(0, 8), max_size=8), label="changes"):
        row = draw(st.integers(0, len(sim.table) - 1), label="row") if len(sim.table) else None
        cls = draw(st.sampled_from(classes), label="class") if classes else None
        if number == 0:
            sim.add_nodes([make_node(f"new-{len(sim.table)}")])
        if row is not None and number in (1, 2, 3):
            (sim.close, sim.vacate, sim.give_up)[number - 1](row)
        if row is not None and number == 4:
            with sim.closed([row]):
                sim.vacate(draw(st.integers(0, len(sim.table) - 1), label="vacated"))
        if cls is not None and number == 5:
            Placer(policy, opening.pools).place(sim, cls, max(1, len(cls.pods)))
        if cls is not None and row is not None and number == 6:
            sim.keep_room(KeptRoom(cls.example, cls, row, draw(REASONS, label="reason")))
        if number == 7:
            sim.drop_room(*sim.nominees[: draw(st.integers(0, 2), label="dropped")])
        if cls is not None and number == 8:
            sim.set_members(cls, cls.pods[1:])
            pods = [pod for pods in opening.running.values() for pod in pods][:2]
            if ledger.try_spend(pods) is None:
                sim.also_undo(lambda spent=pods: ledger.refund(spent))


@Law
@given(snapshots(), policies(), st.data())
def test_what_a_dropped_fork_did_has_never_been(snapshot: ClusterSnapshot, policy: Policy, data: st.DataObject) -> None:
    opening = open_simulation(snapshot, policy, NOW)
    sim, ledger = opening.sim, BudgetLedger(snapshot.cluster.budgets)
    bundle(opening.waiting, opening.book)
    rows = len(sim.table)

    def everything() -> Any:
        classes = {id(cls): list(cls.pods) for cls in map(opening.book.class_of, opening.waiting)}
        counts = sim.filter_context.counts
        taken = {port: amounts[:rows].tolist() for port, amounts in counts.ports.items() if amounts[:rows].any()}
        return state(sim, rows), classes, taken, ledger.budgets

    before = everything()
    with sim.fork():
        meddle(sim, opening, ledger, data.draw, policy)
        with sim.fork() as inner:
            meddle(sim, opening, ledger, data.draw, policy)
            if data.draw(st.booleans(), label="is the inner one kept"):
                inner.commit()
        meddle(sim, opening, ledger, data.draw, policy)
    assert everything() == before
