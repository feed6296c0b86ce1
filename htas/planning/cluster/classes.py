"""Equivalence classes: pods that every decision treats alike are decided together, in counts.

Ten thousand pods of one Deployment are one class; planning then costs classes × nodes, not pods × nodes. Labels
split a class only where some selector in the cluster tells them apart, since every Job gives its pods labels of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from htas.model.constraints import Constraints
from htas.model.pods import Pod, WorkKind
from htas.model.resources import CPU, EPHEMERAL, MEMORY, PODS, Resources

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BASE_RESOURCES = (CPU, MEMORY, EPHEMERAL, PODS)
CPU_ROW, MEMORY_ROW, STORAGE_ROW, PODS_ROW = 0, 1, 2, 3


MOST_UNOFFERED = 8
"""Resources that pods ask for and nothing offers, with a column each: two dozen pods with hundreds of invented names
once filled the memory, since the optimiser weighs each two resources against each other."""
UNOFFERED = "resources that no node or flavour offers"
"""The name of the one column for all of them, where there are more."""
MOST = 2**47
"""What a column counts of one pod or node at most: 140 TB, or 140 thousand million cores. A pod may ask for 2^63 - 1,
and columns hold no more: two such pods on a node, whose sum turned negative, once gave it room that it did not have.
What a node offers counts one less at most: a pod of 5 Ei once was as large as a node of 200 Ti, and was bound to it.
"""


class ResourceAxis:
    """The order of resources in every column: cpu, memory, ephemeral storage, pods, then extended ones by name.

    `offered` are those that some node or flavour has, `asked` those that pods ask for.
    """

    def __init__(self, offered: Iterable[str], asked: Iterable[str] = ()) -> None:
        extended = set(offered)
        unoffered = set(asked) - extended
        self._others: frozenset[str] = frozenset()
        if len(unoffered) > MOST_UNOFFERED:
            self._others, unoffered = frozenset(unoffered), {UNOFFERED}
        self.names: tuple[str, ...] = BASE_RESOURCES + tuple(sorted(extended | unoffered))
        self.index = {name: i for i, name in enumerate(self.names)}

    def row(self, name: str) -> int:
        """Where a resource stands; raises KeyError for one that the axis does not know."""
        return self.index[UNOFFERED if name in self._others else name]

    def __len__(self) -> int:
        return len(self.names)

    def vector(self, resources: Resources) -> Ints:
        """A resource vector as a column of this axis, up to MOST; names the axis does not know raise KeyError."""
        return np.minimum(self._column(resources), MOST)

    def plain_vectors(self, resources: Sequence[Resources]) -> Ints:
        """`vector` of each of many that have no extended resources: many × axis."""
        vectors = np.zeros((len(resources), len(self.names)), dtype=np.int64)
        if resources:
            vectors[:, :4] = [(each.cpu_m, each.memory_bytes, each.ephemeral_bytes, each.pods) for each in resources]
        return np.minimum(vectors, MOST)

    def room(self, resources: Resources) -> Ints:
        """What a node offers, as `vector`, but below MOST: what is asked for beyond the columns' reach fits nowhere."""
        return np.minimum(self._column(resources), MOST - 1)

    def _column(self, resources: Resources) -> Ints:
        column = np.zeros(len(self.names), dtype=np.int64)
        column[:4] = (resources.cpu_m, resources.memory_bytes, resources.ephemeral_bytes, resources.pods)
        for name, amount in resources.extended:
            row = self.row(name)
            column[row] = max(column[row], amount)
        return column


@dataclass(slots=True, eq=False)
class PodClass:
    """Pods that are interchangeable for planning. `pods` are its members that wait; running members are counted only.

    `asked` is what the pods state, and `requests` what counts at present, which is the same nearly always; `needs` are
    the axis rows with a request; `watches`, `holds` and `repelled_by` are ids in the tallies: selectors
    that match these pods, anti-affinity terms they carry, and anti-affinity terms of others that match them.
    """

    asked: Ints
    requests: Ints
    needs: tuple[int, ...]
    constraints: Constraints
    namespace: str
    kind: WorkKind
    is_ours: bool
    priority: int
    run_length_s: float
    watches: tuple[int, ...]
    holds: tuple[int, ...]
    repelled_by: tuple[int, ...]
    scoring: tuple[int, int]
    example: Pod
    static_key: object
    is_dynamic: bool
    pods: list[Pod] = field(default_factory=list)
    borrows_up_to: int = 0
    """What a node may cost an hour on which batch work may be given room that services leave (`lending.py`)."""
    missing: tuple[int, int] = (0, 0)
    """Cpu and memory that the pods do not state, and that count where a machine is launched or saved
    (`default_requests.py`); `requests` have them while they count."""
    owner_apart: str = ""
    """The mark of their owner, where launches for it were unused of late; empty: it does not matter whose they are."""
    pauses: Mapping[str, str] = field(default_factory=dict)
    """Flavours that are not launched for these pods now, each with the reason."""
    charged_to: str | None = None
    """The namespace with a limit in reach that pays for their machines; "": one without; None: nobody counts."""
    assumed: tuple[int, int] = (0, 0)
    """Cpu and memory that scores count beyond the requests; always nothing where no group places by scores."""

    @property
    def most_per_node(self) -> int | None:
        """How many may share a node: one if they repel their own kind or take host ports; None: any number."""
        return 1 if self.constraints.host_ports or set(self.holds) & set(self.repelled_by) else None

    @property
    def size(self) -> tuple[int, int]:
        """Memory before CPU, as best-fit decreasing orders by (HTAS paper 5.1)."""
        return int(self.requests[MEMORY_ROW]), int(self.requests[CPU_ROW])
