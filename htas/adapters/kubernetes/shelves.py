"""What a live view keeps its objects in: by key, by the controller of pods, and equal parts of pods once."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from htas.adapters.kubernetes import daemon_sets
from htas.model.pods import Owner, Pod

Key = tuple[str, str]
"""Namespace (empty: none) and name."""
CONTROLLERS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "Job"})

LISTED = CONTROLLERS | {daemon_sets.KIND}
"""Controllers whose pods are known by them, since they say something of their pods."""
MOST_SHARED = 20_000
"""Distinct parts of pods remembered for sharing; 50,000 pods of 200 templates have fewer than 1,000."""

_T = TypeVar("_T")


class Shelf(Generic[_T]):
    """Objects of one kind by key, and their tuple, which is made again only when something changed."""

    def __init__(self) -> None:
        self.items: dict[Key, _T] = {}
        self._all: tuple[_T, ...] | None = ()

    def put(self, key: Key, item: _T) -> None:
        self.items[key] = item
        self._all = None

    def drop(self, key: Key) -> _T | None:
        self._all = None
        return self.items.pop(key, None)

    def all(self) -> tuple[_T, ...]:
        if self._all is None:
            self._all = tuple(self.items.values())
        return self._all


class PodsByController:
    """The keys of pods by who keeps them coming."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str, str], set[Key]] = {}

    def put(self, key: Key, pod: Pod) -> None:
        if pod.owner is not None and _listed_kind(pod.owner) in LISTED:
            self._keys.setdefault((_listed_kind(pod.owner), key[0], pod.owner.name), set()).add(key)

    def drop(self, key: Key, pod: Pod | None) -> None:
        if pod is None or pod.owner is None:
            return
        controller = _listed_kind(pod.owner), key[0], pod.owner.name
        owned = self._keys.get(controller, set())
        owned.discard(key)
        if not owned:
            self._keys.pop(controller, None)

    def of(self, kind: str, controller: Key) -> tuple[Key, ...]:
        return tuple(self._keys.get((kind, *controller), ()))


class Sharing:
    """One object for equal ones: the pods of a template share their requests, constraints and owner."""

    def __init__(self) -> None:
        self._shared: dict[object, Any] = {}

    def of(self, pod: Pod) -> Pod:
        """The pod with parts that others have, too."""
        if len(self._shared) > MOST_SHARED:
            self._shared.clear()  # months of Jobs, each an owner of its own, must not add up
        return msgspec.structs.replace(
            pod,
            constraints=self._shared.setdefault(pod.constraints, pod.constraints),
            requests=self._shared.setdefault(pod.requests, pod.requests),
            owner=self._shared.setdefault(pod.owner, pod.owner),
        )


def _listed_kind(owner: Owner) -> str:
    return daemon_sets.KIND if owner.kind == daemon_sets.NONE_SUCH else owner.kind
