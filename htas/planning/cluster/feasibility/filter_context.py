"""What filters may look at, and what they answer with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from htas.model.policy import Policy
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim, Volumes
from htas.planning.cluster.classes import Bools, Ints, PodClass
from htas.planning.cluster.counts import TopologyCounts
from htas.planning.cluster.table import NodeTable


@dataclass(frozen=True, slots=True)
class FilterRefusal:
    """A reason in kube-scheduler's words, and where (relative to the rows asked about) it holds."""

    reason: str
    where: Bools


Filter = Callable[["FilterContext", PodClass, slice], Iterable[FilterRefusal]]
"""Asked about the rows of a slice (with explicit start and stop); a row that no refusal names is accepted."""


class VolumeIndex:
    """The volume objects by name."""

    def __init__(self, volumes: Volumes) -> None:
        self.claims: dict[str, VolumeClaim] = {claim.key: claim for claim in volumes.claims}
        self.persistent: dict[str, PersistentVolume] = {volume.name: volume for volume in volumes.persistent}
        self.classes: dict[str, StorageClass] = {cls.name: cls for cls in volumes.classes}


_Scalar = TypeVar("_Scalar", np.bool_, np.int64)


class _Columns(Generic[_Scalar]):
    """Answers by key, one value a row: computed once, and later only for new rows."""

    def __init__(self, dtype: type[_Scalar]) -> None:
        self._dtype: type[_Scalar] = dtype
        self._values: dict[object, NDArray[_Scalar]] = {}
        self._filled: dict[object, int] = {}

    def get(
        self, key: object, rows: int, capacity: int, compute: Callable[[slice], NDArray[_Scalar]]
    ) -> NDArray[_Scalar]:
        filled = self._filled.get(key, 0)
        values = self._values.get(key)
        if values is None or len(values) < rows:
            grown = np.zeros(capacity, dtype=self._dtype)
            if values is not None:
                grown[:filled] = values[:filled]
            values = self._values[key] = grown
        if filled < rows:
            values[filled:rows] = compute(slice(filled, rows))
            self._filled[key] = rows
        return values[:rows]

    def truncate(self, rows: int) -> None:
        for key, filled in self._filled.items():
            self._filled[key] = min(filled, rows)


@dataclass(slots=True)
class FilterContext:
    """The nodes, what pods changed on them, and answers that stay true while pods come and go."""

    table: NodeTable
    counts: TopologyCounts
    volumes: VolumeIndex
    policy: Policy
    lent: frozenset[str] = frozenset()
    """Nodes of groups for services that take batch work, too (`lent_nodes`)."""
    _columns: _Columns[np.bool_] = field(default_factory=lambda: _Columns(np.bool_))
    _amounts: _Columns[np.int64] = field(default_factory=lambda: _Columns(np.int64))

    def column(self, key: object, compute: Callable[[slice], Bools]) -> Bools:
        """A yes-or-no over all rows that depends on the nodes alone: computed once, and later only for new rows."""
        return self._columns.get(key, len(self.table), self.table.free.shape[1], compute)

    def amounts(self, key: object, compute: Callable[[slice], Ints]) -> Ints:
        """The same for an integer over all rows."""
        return self._amounts.get(key, len(self.table), self.table.free.shape[1], compute)

    def truncate(self, rows: int) -> None:
        """Forget the rows from `rows` on."""
        self.table.truncate(rows)
        self._columns.truncate(rows)
        self._amounts.truncate(rows)


def accepted(context: FilterContext, filters: Iterable[Filter], cls: PodClass, rows: slice) -> Bools:
    """Where no filter refuses."""
    ok = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for refuse in filters:
        for refusal in refuse(context, cls, rows):
            ok &= ~refusal.where
        if not ok.any():
            break
    return ok
