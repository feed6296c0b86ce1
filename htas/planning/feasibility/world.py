"""What filters may look at, and what they answer with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from htas.model.policy import Policy
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim, Volumes
from htas.planning.classes import Bools, PodClass
from htas.planning.table import NodeTable
from htas.planning.tallies import Tallies


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason in kube-scheduler's words, and where (relative to the rows asked about) it holds."""

    reason: str
    where: Bools


Filter = Callable[["World", PodClass, slice], Iterable[Refusal]]
"""Asked about the rows of a slice (with explicit start and stop); a row that no refusal names is accepted."""


class VolumeIndex:
    """The volume objects by name."""

    def __init__(self, volumes: Volumes) -> None:
        self.claims: dict[str, VolumeClaim] = {claim.key: claim for claim in volumes.claims}
        self.persistent: dict[str, PersistentVolume] = {volume.name: volume for volume in volumes.persistent}
        self.classes: dict[str, StorageClass] = {cls.name: cls for cls in volumes.classes}


@dataclass(slots=True)
class _Column:
    values: Bools
    filled: int


@dataclass(slots=True)
class World:
    """The nodes, what pods changed on them, and answers that stay true while pods come and go."""

    table: NodeTable
    tallies: Tallies
    volumes: VolumeIndex
    policy: Policy
    _columns: dict[object, _Column] = field(default_factory=dict)

    def column(self, key: object, compute: Callable[[slice], Bools]) -> Bools:
        """A yes-or-no over all rows that depends on the nodes alone: computed once, and later only for new rows."""
        rows = len(self.table)
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = _Column(np.zeros(0, dtype=np.bool_), 0)
        if column.filled < rows:
            if len(column.values) < rows:
                values = np.zeros(self.table.free.shape[1], dtype=np.bool_)
                values[: column.filled] = column.values[: column.filled]
                column.values = values
            column.values[column.filled : rows] = compute(slice(column.filled, rows))
            column.filled = rows
        return column.values[:rows]

    def truncate(self, rows: int) -> None:
        """Forget the rows from `rows` on."""
        self.table.truncate(rows)
        for column in self._columns.values():
            column.filled = min(column.filled, rows)


def accepted(world: World, filters: Iterable[Filter], cls: PodClass, rows: slice) -> Bools:
    """Where no filter refuses."""
    ok = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for refuse in filters:
        for refusal in refuse(world, cls, rows):
            ok &= ~refusal.where
    return ok
