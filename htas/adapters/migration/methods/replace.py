"""The method replace: a fresh copy of a service's pod runs at the target before the pod ends. No node is talked to."""

from __future__ import annotations

from collections.abc import Sequence

from htas.adapters.migration.documents import Json, copy_of
from htas.adapters.migration.objects import Objects
from htas.model.migrations import MigrationRecord
from htas.model.moves import MigrationMethod


class Replacing:
    """Implements Method. The twin is all that a move makes, and the engine removes that itself."""

    name = MigrationMethod.REPLACE

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
        twin = copy_of(source, record)
        self._objects.create(twin)
        name: str = twin["metadata"]["name"]
        return name

    def clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool) -> None:
        """Nothing: there are neither archives nor images."""

    def clean_again(self, record: MigrationRecord, *, keep_image: bool) -> None:
        """Nothing, as `clean`."""

    def forget(self, node: str, move: str) -> None:
        """Nothing, as `clean`."""

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        """Nothing, as `clean`."""
