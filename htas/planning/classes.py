"""Equivalence classes: pods that every decision treats alike are decided together, in counts.

Ten thousand pods of one Deployment are one class; planning then costs classes × nodes, not pods × nodes. Labels
split a class only where some selector in the cluster tells them apart, since every Job gives its pods labels of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from htas.model.constraints import Constraints
from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.model.resources import CPU, EPHEMERAL, MEMORY, PODS, Resources
from htas.planning.run_length import run_length_s
from htas.planning.tallies import Tallies

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BASE_RESOURCES = (CPU, MEMORY, EPHEMERAL, PODS)
CPU_ROW, MEMORY_ROW, EPHEMERAL_ROW, PODS_ROW = range(4)


class ResourceAxis:
    """The order of resources in every column: cpu, memory, ephemeral storage, pods, then extended ones by name."""

    def __init__(self, extended: Iterable[str]) -> None:
        self.names: tuple[str, ...] = BASE_RESOURCES + tuple(sorted(set(extended)))
        self.index = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def vector(self, resources: Resources) -> Ints:
        """A resource vector as a column of this axis; names the axis does not know raise KeyError."""
        column = np.zeros(len(self.names), dtype=np.int64)
        column[:4] = (resources.cpu_m, resources.memory_bytes, resources.ephemeral_bytes, resources.pods)
        for name, amount in resources.extended:
            column[self.index[name]] = amount
        return column


@dataclass(slots=True, eq=False)
class PodClass:
    """Pods that are interchangeable for planning. `pods` are its members that wait; running members are counted only.

    `needs` are the axis rows with a request; `watches`, `holds` and `repelled_by` are ids in the tallies: selectors
    that match these pods, anti-affinity terms they carry, and anti-affinity terms of others that match them.
    """

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

    @property
    def size(self) -> tuple[int, int]:
        """Memory before CPU, as best-fit decreasing orders by (HTAS paper 5.1)."""
        return int(self.requests[MEMORY_ROW]), int(self.requests[CPU_ROW])


_T = TypeVar("_T")


class _Interner:
    """Small numbers for equal objects; objects seen before (by identity) cost one dictionary look-up."""

    def __init__(self) -> None:
        self._by_id: dict[int, int] = {}
        self._by_value: dict[object, int] = {}
        self._kept: list[object] = []

    def number(self, value: object) -> int:
        number = self._by_id.get(id(value))
        if number is None:
            number = self._by_value.setdefault(value, len(self._by_value))
            self._by_id[id(value)] = number
            self._kept.append(value)  # an object that died could leave its id to another one
        return number


class ClassBook:
    """Sorts pods into classes."""

    def __init__(self, policy: Policy, axis: ResourceAxis, tallies: Tallies) -> None:
        self._policy = policy
        self._axis = axis
        self._tallies = tallies
        self._requests = _Interner()
        self._constraints = _Interner()
        self._vectors: dict[int, Ints] = {}
        self._classes: dict[tuple[object, ...], PodClass] = {}

    def vector(self, requests: Resources) -> Ints:
        number = self._requests.number(requests)
        vector = self._vectors.get(number)
        if vector is None:
            vector = self._vectors[number] = self._axis.vector(requests)
        return vector

    def class_of(self, pod: Pod) -> PodClass:
        """The class of a pod, made if it is the first of its kind; the pod does not become a member."""
        constraints = pod.constraints
        requests_number = self._requests.number(pod.requests)
        constraints_number = self._constraints.number(constraints)
        watches, repelled_by = self._tallies.matching(pod)
        holds = self._tallies.held_by(pod) if constraints.anti_affinity else ()
        is_ours = pod.scheduler == self._policy.scheduler_name
        run_length = run_length_s(pod, self._policy)
        claims_of = pod.namespace if constraints.claims or constraints.spread or constraints.affinity else None
        key = (
            requests_number,
            constraints_number,
            claims_of,
            pod.kind,
            is_ours,
            pod.priority,
            run_length,
            watches,
            holds,
            repelled_by,
        )
        found = self._classes.get(key)
        if found is None:
            vector = self.vector(pod.requests)
            found = self._classes[key] = PodClass(
                requests=vector,
                needs=tuple(int(i) for i in np.flatnonzero(vector)),
                constraints=constraints,
                namespace=pod.namespace,
                kind=pod.kind,
                is_ours=is_ours,
                priority=pod.priority,
                run_length_s=run_length,
                watches=watches,
                holds=holds,
                repelled_by=repelled_by,
                scoring=(pod.scoring_cpu_m, pod.scoring_memory_bytes),
                example=pod,
                static_key=(constraints_number, claims_of, pod.kind if is_ours else None),
                is_dynamic=bool(
                    constraints.spread
                    or constraints.affinity
                    or constraints.anti_affinity
                    or constraints.host_ports
                    or constraints.claims
                    or repelled_by
                ),
            )
        return found
