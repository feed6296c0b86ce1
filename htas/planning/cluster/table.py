"""The node table: nodes as columns, so that one question is asked of all of them at once.

Rows are existing nodes, then machines on their way, then (during a what-if) machines not yet bought. All are described
by the same `Node`, so the same filters judge them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htas.model.nodes import Node
from htas.planning.cluster.classes import Bools, Ints, ResourceAxis

NO_VALUE = -1
"""The code of a label that a node does not have."""


@dataclass(slots=True)
class LabelColumn:
    """One label over all rows: `codes[row]` is an index into `values`, or NO_VALUE."""

    codes: NDArray[np.int64]
    values: list[str] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    filled: int = 0


class NodeTable:
    """Growing columns over node rows. `free` is allocatable less what is requested by the pods placed."""

    def __init__(self, axis: ResourceAxis, nodes: Sequence[Node]) -> None:
        self.axis = axis
        self.nodes: list[Node] = []
        self.row_of: dict[str, int] = {}
        self.allocatable: Ints = np.zeros((len(axis), 0), dtype=np.int64)
        self.free: Ints = np.zeros((len(axis), 0), dtype=np.int64)
        self.run_until: NDArray[np.float64] = np.zeros(0)
        """When the longest batch pod of a row ends (0: there is none)."""
        self.is_open: Bools = np.zeros(0, dtype=np.bool_)
        """Rows that take pods: not draining, not given up, not failing."""
        self.assumed: Ints = np.zeros((2, 0), dtype=np.int64)
        """Cpu and memory that scores count of pods placed beyond what these ask for."""
        self.missing: Ints = np.zeros((2, 0), dtype=np.int64)
        """Cpu and memory that default requests count of pods placed (`default_requests.py`)."""
        self.is_leaving: Bools = np.zeros(0, dtype=np.bool_)
        """Rows that are being emptied, or would be: whether or not the node bears the taint for it yet."""
        self.is_domain: Bools = np.zeros(0, dtype=np.bool_)
        """Rows that count as places to spread over: all but machines that will not be bought after all."""
        self.is_of_any_zone: Bools = np.zeros(0, dtype=np.bool_)
        """Rows of machines that may come up in any zone: of which one nobody knows yet."""
        self._labels: dict[str, LabelColumn] = {}
        self._keys: set[str] = set()
        """Labels that some node has, or one that was forgotten had. Pods may ask for thousands that none has."""
        self._absent = LabelColumn(np.zeros(0, dtype=np.int64))
        """The column of every label that no node has."""
        self.append(nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def append(self, nodes: Sequence[Node]) -> range:
        """Add rows, empty and open; returns their numbers. Costs in proportion to capacity only when it doubles."""
        start = len(self.nodes)
        self._reserve(start + len(nodes))
        vectors: dict[int, Ints] = {}
        for row, node in enumerate(nodes, start):
            vector = vectors.get(id(node.allocatable))
            if vector is None:
                vector = vectors[id(node.allocatable)] = self.axis.room(node.allocatable)
            self.allocatable[:, row] = vector
            self.row_of[node.name] = row
            self._keys.update(node.labels)
            self.is_of_any_zone[row] = node.is_of_any_zone
        self.nodes.extend(nodes)
        end = len(self.nodes)
        self.free[:, start:end] = self.allocatable[:, start:end]
        self.assumed[:, start:end] = 0
        self.missing[:, start:end] = 0
        self.run_until[start:end] = 0.0
        self.is_open[start:end] = True
        self.is_leaving[start:end] = False
        self.is_domain[start:end] = True
        return range(start, end)

    def truncate(self, length: int) -> None:
        """Forget the rows from `length` on."""
        for node in self.nodes[length:]:
            del self.row_of[node.name]
        del self.nodes[length:]
        for column in self._labels.values():
            column.filled = min(column.filled, length)

    def _reserve(self, rows: int) -> None:
        capacity = self.allocatable.shape[1]
        if rows <= capacity:
            return
        more = max(rows, 2 * capacity) - capacity
        empty = np.zeros((len(self.axis), more), dtype=np.int64)
        self.allocatable = np.concatenate([self.allocatable, empty], axis=1)
        self.free = np.concatenate([self.free, empty], axis=1)
        self.assumed = np.concatenate([self.assumed, empty[:2]], axis=1)
        self.missing = np.concatenate([self.missing, empty[:2]], axis=1)
        self.run_until = np.concatenate([self.run_until, np.zeros(more)])
        self.is_open = np.concatenate([self.is_open, np.zeros(more, dtype=np.bool_)])
        self.is_leaving = np.concatenate([self.is_leaving, np.zeros(more, dtype=np.bool_)])
        self.is_domain = np.concatenate([self.is_domain, np.zeros(more, dtype=np.bool_)])
        self.is_of_any_zone = np.concatenate([self.is_of_any_zone, np.zeros(more, dtype=np.bool_)])

    def label(self, key: str) -> LabelColumn:
        """A label's column over all rows, filled as far as rows exist."""
        if key not in self._keys:
            if len(self._absent.codes) < len(self.nodes):
                self._absent.codes = np.full(self.allocatable.shape[1], NO_VALUE, dtype=np.int64)
            return self._absent
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(np.zeros(0, dtype=np.int64))
        if column.filled < len(self.nodes):
            self._fill(key, column)
        return column

    def _fill(self, key: str, column: LabelColumn) -> None:
        if len(column.codes) < len(self.nodes):
            codes = np.full(self.allocatable.shape[1], NO_VALUE, dtype=np.int64)
            codes[: column.filled] = column.codes[: column.filled]
            column.codes = codes
        for row in range(column.filled, len(self.nodes)):
            value = self.nodes[row].labels.get(key)
            if value is None:
                column.codes[row] = NO_VALUE
                continue
            code = column.index.get(value)
            if code is None:
                code = column.index[value] = len(column.values)
                column.values.append(value)
            column.codes[row] = code
        column.filled = len(self.nodes)
