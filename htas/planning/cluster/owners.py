"""Whose pods are alike for machines: those of one maker in a namespace that ask nodes for the same."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import msgspec

from htas.model.pods import Pod
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot


class Owners:
    """Marks of owners. Pods that a controller makes again and again have one mark, whatever their names.

    What nodes are to be like counts too: once the pods or the group are mended, what became of earlier launches says
    nothing. Marks are made of values: two pods with equal constraints have one, however these were written.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        groups = [(group.name, sorted(group.labels.items()), group.taints) for group in policy.groups]
        self._groups = crc32(repr(_values(groups)).encode())
        self._marks: dict[tuple[int, int], str] = {}
        self._kept: list[Pod] = []

    def of(self, pod: Pod) -> str:
        """The mark of a pod's owner: its namespace, what makes pods like it, and digests of the groups and of what it
        asks of nodes."""
        return f"{maker_of(pod)} {self._groups:08x}{self._demands(pod)}"

    def is_of_these_groups(self, owner: str) -> bool:
        """Whether a mark was made while the groups were as they are now."""
        return owner.rpartition(" ")[2].startswith(f"{self._groups:08x}")

    def _demands(self, pod: Pod) -> str:
        parts = id(pod.requests), id(pod.constraints)  # pods of one template share these objects
        mark = self._marks.get(parts)
        if mark is None:
            # Names of claims are left out: each pod of a template may have its own, as generic ephemeral volumes do.
            constraints = msgspec.structs.replace(pod.constraints, claims=())
            demands = repr(_values((pod.requests, constraints)))
            mark = self._marks[parts] = f"{crc32(demands.encode()):08x}"
            self._kept.append(pod)  # an object that died could leave its id to another one
        return mark


def maker_of(pod: Pod) -> str:
    """What makes pods like it, with its namespace: the part of its owner's mark that does not depend on demands."""
    return f"{pod.namespace}/{pod.maker}"


def maker_of_mark(owner: str) -> str:
    """The maker (`maker_of`) that a mark is of."""
    return owner.rpartition(" ")[0]


def namespace_of(owner: str) -> str:
    """The namespace of a mark."""
    return owner.partition("/")[0]


class OwnersApart:
    """Tells pods apart whose owners have had unused launches of late: these take no room of what comes for others.

    They would have it all, one machine after another, and each pod that they displace would have another launched.
    """

    def __init__(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        self._apart = snapshot.memory.launches.counted().keys()
        self._owners = Owners(policy)

    def __bool__(self) -> bool:
        return bool(self._apart)

    def of(self, pod: Pod) -> str:
        """The mark of such an owner; empty: of any other."""
        if pod.node is not None:
            return ""
        owner = self._owners.of(pod)
        return owner if owner in self._apart else ""


def _values(of: object) -> object:
    """Nested tuples that are the same for equal objects: with every default, and plain text for words of an enum."""
    if isinstance(of, msgspec.Struct):
        return _values(msgspec.structs.astuple(of))
    if isinstance(of, Mapping):
        return tuple(sorted((str(key), _values(value)) for key, value in of.items()))
    if isinstance(of, tuple | list):
        return tuple(map(_values, of))
    return str(of) if isinstance(of, str) else of
