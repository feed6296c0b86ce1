"""Moves that nobody carries on, since the configuration has no place for their method any more."""

from __future__ import annotations

from collections.abc import Collection

import structlog

from htas.adapters.migration.documents import record_in
from htas.adapters.migration.objects import Objects
from htas.model.migrations import MigrationSettings
from htas.model.moves import MigrationMethod
from htas.ports import HTASError

log = structlog.get_logger()


def set_up(settings: MigrationSettings) -> set[MigrationMethod]:
    """Methods that have their keys, or their commands, whether a group names them or not.

    Going back to evict thus ends no move in its middle, for as long as the keys are left in place.
    """
    found = set()
    if settings.secure_copy.identity_file or settings.registry.agent_token_file:
        found.add(MigrationMethod.KUBELET_CHECKPOINT)
    if settings.commands.checkpoint:
        found.add(MigrationMethod.COMMAND)
    return found


def tell_stranded(objects: Objects, carried: Collection[MigrationMethod]) -> None:
    """Warn of each move under way by a method that is not among those carried."""
    try:
        pods = objects.moving()
    except HTASError as error:
        log.warning("moves that nobody carries on cannot be looked for", error=str(error))
        return
    told = set()
    for pod in pods:
        record = record_in(pod)
        if record is None or record.is_over or record.method in carried or record.id in told:
            continue
        told.add(record.id)
        log.warning(
            "a move is carried on by nobody",
            move=record.id,
            pod=record.pod,
            method=record.method.value,
            state=record.state.value,
            do=f"configure migration for {record.method} again and start anew, until the label htas.io/moving is gone",
        )
