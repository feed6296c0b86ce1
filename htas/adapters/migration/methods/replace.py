"""The method replace: a fresh copy of a service's pod runs at the target before the pod ends. No node is talked to."""

from __future__ import annotations

from htas.adapters.migration.documents import Json, copy_of
from htas.adapters.migration.method import LeavesNothing
from htas.adapters.migration.objects import Objects
from htas.model.migrations import MigrationRecord
from htas.model.moves import MigrationMethod


class Replacing(LeavesNothing):
    """Implements Method."""

    name = MigrationMethod.REPLACE

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
        twin = copy_of(source, record)
        self._objects.create(twin)
        name: str = twin["metadata"]["name"]
        return name
