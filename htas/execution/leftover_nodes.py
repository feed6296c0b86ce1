"""Nodes whose machines are gone or going: closed so that no pod comes, and their Node objects deleted."""

from __future__ import annotations

from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.ports import ClusterPort, HTASError, NotFoundError


def close(cluster: ClusterPort, name: str) -> list[Outcome]:
    """Close the node of a failed claim, so that no scheduler puts pods there; opened by the drainer if it stays."""
    try:
        cluster.set_draining(name, True)
    except NotFoundError:
        return []
    except HTASError as error:
        return [Outcome(Action.CLOSE, name, OutcomeStatus.FAILED, f"tried again next cycle: {error}")]
    return [Outcome(Action.CLOSE, name, OutcomeStatus.DONE, "its machine is being deleted")]


def delete_node(cluster: ClusterPort, name: str, why: str) -> Outcome:
    """Delete a Node object; what runs on it was asked before."""
    try:
        cluster.delete_node(name)
    except HTASError as error:
        return Outcome(Action.DELETE_NODE, name, OutcomeStatus.FAILED, str(error))
    return Outcome(Action.DELETE_NODE, name, OutcomeStatus.DONE, why)
