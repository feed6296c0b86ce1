"""Beginning to lead after another daemon has led: what our own journal still plans has been overtaken.

Each daemon has a journal of its own; the truth is in the cloud and the cluster. Machines that the other bought are
adopted by the first reconciliation; what must not happen is that an old intention of ours is carried out now.
"""

from __future__ import annotations

from htas.execution.machines import Machines
from htas.execution.ports import Ports
from htas.model.claims import ClaimState
from htas.model.record import Outcome, OutcomeStatus


def take_over(ports: Ports, machines: Machines) -> list[Outcome]:
    """Drop claims whose machine was never asked for, and drains that another daemon has ended or undone since."""
    outcomes = []
    for claim in ports.store.claims():
        if claim.state is ClaimState.WANTED and claim.instance is None:
            machines.put(claim, ClaimState.FAILED, "another daemon led meanwhile")
            outcomes.append(Outcome("launch", claim.id, OutcomeStatus.DROPPED, "another daemon led meanwhile"))
        elif claim.state is ClaimState.DRAINING:
            machines.put(claim, ClaimState.READY, "another daemon led meanwhile")
    for drain in ports.store.drains():
        ports.store.delete_drain(drain.node)
        outcomes.append(Outcome("drain", drain.node, OutcomeStatus.DROPPED, "another daemon led meanwhile"))
    return outcomes
