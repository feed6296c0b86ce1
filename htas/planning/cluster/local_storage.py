"""Local disk that nobody has stated: a flavour without `ephemeralStorage` has none for pods until a node shows some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from htas.model.flavours import Catalogue, Flavour
from htas.model.pods import Pod
from htas.model.resources import Resources

KEY = "ephemeralStorage"


class UnstatedStorage(msgspec.Struct, frozen=True):
    """Pods that ask for local disk, and the flavours that are never bought for them since none is known of."""

    pods: int = 0
    flavours: tuple[str, ...] = ()


def unstated_storage(catalogue: Catalogue, pods: Iterable[Pod], learned: Mapping[str, Resources]) -> UnstatedStorage:
    """Empty where no pod asks for local disk, or each flavour's is known."""
    asking = sum(pod.requests.ephemeral_bytes > 0 and pod.is_work for pod in pods)
    names = tuple(
        flavour.name
        for flavour in catalogue.flavours
        if not flavour.retired and says_no_storage(flavour, learned.get(flavour.name, flavour.allocatable))
    )
    return UnstatedStorage(asking, names) if asking and names else UnstatedStorage()


def says_no_storage(flavour: Flavour, allocatable: Resources) -> bool:
    """Whether neither the price file nor a node tells of any; no machine is without."""
    return not (flavour.capacity.ephemeral_bytes or allocatable.ephemeral_bytes)
