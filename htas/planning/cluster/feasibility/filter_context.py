"""What filters may look at, and what they answer with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from htas.model.policy import Policy
from htas.model.volumes import PersistentVolume, StorageClass, VolumeClaim, Volumes
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.counts import TopologyCounts
from htas.planning.cluster.namespace_cap import NamespaceCap
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


class _Columns:
    """Answers by key, one value a row: computed once, and later only for new rows."""

    def __init__(self) -> None:
        self._values: dict[object, NDArray[Any]] = {}
        self._filled: dict[object, int] = {}

    def get(
        self, key: object, rows: int, capacity: int, compute: Callable[[slice], NDArray[_Scalar]]
    ) -> NDArray[_Scalar]:
        filled, values = self._filled.get(key, 0), self._values.get(key)
        if values is None or filled < rows:
            new = compute(slice(filled, rows))
            if values is None or len(values) < rows:
                grown = np.zeros(capacity, dtype=new.dtype)
                if values is not None:
                    grown[:filled] = values[:filled]
                values = self._values[key] = grown
            values[filled:rows] = new
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
    lent: Mapping[str, int] = field(default_factory=dict)
    """Nodes of groups for services that take batch work, too (`lent_nodes`), with their prices an hour."""
    cap: NamespaceCap | None = None
    """What namespaces with a limit are charged; None: no limit is in reach."""
    _columns: _Columns = field(default_factory=_Columns)

    def column(self, key: object, compute: Callable[[slice], NDArray[_Scalar]]) -> NDArray[_Scalar]:
        """An answer over all rows that depends on the nodes alone: computed once, and later only for new rows."""
        return self._columns.get(key, len(self.table), self.table.free.shape[1], compute)

    def truncate(self, rows: int) -> None:
        """Forget the rows from `rows` on."""
        self.table.truncate(rows)
        self._columns.truncate(rows)


def accepted(context: FilterContext, filters: Iterable[Filter], cls: PodClass, rows: slice) -> Bools:
    """Where no filter refuses."""
    ok = np.ones(rows.stop - rows.start, dtype=np.bool_)
    for refuse in filters:
        for refusal in refuse(context, cls, rows):
            ok &= ~refusal.where
        if not ok.any():
            break
    return ok
