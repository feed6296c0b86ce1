"""The class book: sorts pods into equivalence classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec

from htas.model.constraints import Constraints
from htas.model.packing import PackingAlgorithm
from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.resources import Resources
from htas.planning.cluster.classes import Ints, PodClass, ResourceAxis
from htas.planning.cluster.counts import TopologyCounts
from htas.planning.cluster.default_requests import DefaultRequestsSwitch
from htas.planning.cluster.lending import Borrowing
from htas.planning.cluster.owners import OwnersApart
from htas.planning.cluster.run_length import run_length_s

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

    def __init__(
        self,
        policy: Policy,
        axis: ResourceAxis,
        counts: TopologyCounts,
        apart: OwnersApart | None = None,
        limited: Collection[str] = (),
    ) -> None:
        """`limited`: namespaces whose limits are in reach."""
        self.defaults = DefaultRequestsSwitch()
        self._policy = policy
        self._axis = axis
        self._counts = counts
        self._apart = apart or None
        self._limited = limited
        self._requests = _Interner()
        self._constraints = _Interner()
        self._vectors: dict[int, Ints] = {}
        self._classes: dict[tuple[object, ...], PodClass] = {}
        self._by_id: dict[int, PodClass] = {}
        self._by_shared_parts: dict[tuple[object, ...], PodClass] = {}
        self._kept: list[Pod] = []
        self._borrowing = Borrowing(policy)
        packings = (policy.packing, *(group.packing for group in policy.groups))
        self._is_scoring = any(each is not None and each.algorithm is PackingAlgorithm.SCORED for each in packings)

    def vector(self, requests: Resources) -> Ints:
        number = self._requests.number(requests)
        vector = self._vectors.get(number)
        if vector is None:
            vector = self._vectors[number] = self._axis.vector(requests)
        return vector

    def prepare(self, pods: Iterable[Pod]) -> None:
        """Make what pods ask for into vectors in one go; extended resources are few, and left to `vector`."""
        asked = {id(pod.requests): pod.requests for pod in pods if not pod.requests.extended}
        vectors = self._axis.plain_vectors(list(asked.values()))
        for requests, vector in zip(asked.values(), vectors, strict=True):
            self._vectors.setdefault(self._requests.number(requests), vector)

    def class_of(self, pod: Pod) -> PodClass:
        """The class of a pod, made if it is the first of its kind; the pod does not become a member."""
        cls = self._by_id.get(id(pod))
        if cls is None:  # a pod that runs is asked for again by every stage
            cls = self._by_id[id(pod)] = self._found(pod)
            self._kept.append(pod)  # an object that died could leave its id to another one
        return cls

    def own_repulsions(self, cls: PodClass, topology_key: str) -> list[int]:
        """The anti-affinity terms over a topology by which pods of a class keep their like out of their domain."""
        both = set(cls.holds) & set(cls.repelled_by)
        return sorted(each for each in both if self._counts.topology_key(each) == topology_key)

    def _found(self, pod: Pod) -> PodClass:
        """The class of a pod, by the identity of its requests and constraints where that says enough.

        Pods of one template share these objects (`Sharing` of the Kubernetes adapter), and `class_of` keeps every pod,
        so that no other object takes their place. Not where selectors look at labels, where scores count, or where
        annotations may decide.
        """
        if self._counts.watches or self._is_scoring or self._apart or pod.disruption:
            return self._by_value(pod)
        parts = id(pod.requests), id(pod.constraints)
        shared = *parts, pod.namespace, pod.kind, pod.scheduler, pod.priority, pod.run_length, pod.is_work
        found = self._by_shared_parts.get(shared)
        if found is None:
            found = self._by_shared_parts[shared] = self._by_value(pod)
        return found

    def _by_value(self, pod: Pod) -> PodClass:
        constraints = pod.constraints
        requests_number = self._requests.number(pod.requests)
        constraints_number = self._constraints.number(constraints)
        watches, repelled_by = self._counts.matching(pod)
        holds = self._counts.held_by(pod) if constraints.anti_affinity else ()
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
            missing := self._policy.default_requests.missing(pod.requests) if pod.is_work else (0, 0),
            assumed := self._assumed(pod),
            borrows_up_to := self._borrowing.up_to(pod),
            apart := self._apart.of(pod) if self._apart is not None else "",
            charged_to := self._charged_to(pod),
        )
        found = self._classes.get(key)
        if found is None:
            vector = self.vector(pod.requests)
            found = self._classes[key] = PodClass(
                asked=vector,
                requests=vector,
                needs=tuple(i for i, amount in enumerate(vector.tolist()) if amount),
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
                static_key=(self._constraints.number(_of_nodes(constraints)), claims_of, pod.kind if is_ours else None),
                is_dynamic=bool(
                    constraints.spread
                    or constraints.affinity
                    or constraints.anti_affinity
                    or constraints.host_ports
                    or constraints.claims
                    or repelled_by
                    or charged_to
                ),
                borrows_up_to=borrows_up_to,
                missing=missing,
                assumed=assumed,
                owner_apart=apart,
                charged_to=charged_to,
            )
            self.defaults.register(found)
        return found

    def twin(self, cls: PodClass, pods: list[Pod], pauses: Mapping[str, str] | None = None) -> PodClass:
        """A class like another one, with members and, where they are stated, pauses of its own."""
        found = replace(cls, pods=pods, pauses=cls.pauses if pauses is None else pauses)
        self.defaults.register(found)
        return found

    def _charged_to(self, pod: Pod) -> str | None:
        if not self._limited or not pod.is_charged:
            return None
        return pod.namespace if pod.namespace in self._limited else ""

    def _assumed(self, pod: Pod) -> tuple[int, int]:
        if not self._is_scoring:
            return 0, 0
        cpu_m, memory_bytes = pod.requests.cpu_m, pod.requests.memory_bytes
        return max(0, pod.scoring_cpu_m - cpu_m), max(0, pod.scoring_memory_bytes - memory_bytes)


def _of_nodes(constraints: Constraints) -> Constraints:
    """Constraints without what asks about other pods alone: 200 services kept apart are one to nodes."""
    return msgspec.structs.replace(constraints, anti_affinity=()) if constraints.anti_affinity else constraints
