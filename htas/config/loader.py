"""Loads a configuration file and its price file; every mistake in both is told at once, with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from htas.config.catalogue import CatalogueSetting, FlavourSetting
from htas.config.consistency import OfferedRoom, mismatches
from htas.config.document import Document, Steps, read_document
from htas.config.kwok import KwokSetting
from htas.config.openstack import OpenStackSetting
from htas.config.problems import ConfigurationError, parsed
from htas.config.settings import CassandraSetting, Configuration, NoneSetting, SandboxSetting, SqliteSetting
from htas.model.flavours import Catalogue, Flavour
from htas.model.policy import Policy
from htas.model.snapshot import Problem

__all__ = ["ConfigurationError", "Loaded", "load_catalogue", "load_configuration"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration that is fit to run. Relative paths in it start from `directory`."""

    policy: Policy
    settings: Configuration
    path: Path

    @property
    def provider(self) -> SandboxSetting | KwokSetting | OpenStackSetting | NoneSetting:
        return self.settings.provider.chosen

    @property
    def sandbox(self) -> SandboxSetting | None:
        """The sandbox's settings, where it is the provider."""
        return self.settings.provider.sandbox

    @property
    def sqlite(self) -> SqliteSetting | None:
        """The SQLite file's settings, where it is the store."""
        return self.settings.store.sqlite

    @property
    def cassandra(self) -> CassandraSetting | None:
        """Cassandra's settings, where it is the store."""
        return self.settings.store.cassandra

    @property
    def directory(self) -> Path:
        return self.path.parent


def load_configuration(path: Path) -> Loaded:
    """Read a configuration and the price file it names.

    Raises ConfigurationError with every problem of both files, each as `file:line key: what is wrong; what to do`.
    """
    document, problems = read_document(path)
    if document is None:
        raise ConfigurationError(tuple(problems))
    settings = parsed(Configuration, document, document.raw, (), problems)
    offers = _offers_of(document, path.parent, problems)
    problems += mismatches(document, offers)
    if problems or settings is None or offers is None or offers.catalogue is None:
        raise ConfigurationError(tuple(problems))
    policy = _policy(settings, offers.catalogue, path.parent)
    return Loaded(policy, settings, path)


def load_catalogue(path: Path) -> Catalogue:
    """Read a price file; raises ConfigurationError with every problem of it."""
    document, problems = read_document(path)
    offers = _offers(document, document.raw, (), problems) if document is not None else None
    if problems or offers is None or offers.catalogue is None:
        raise ConfigurationError(tuple(problems))
    return offers.catalogue


def _offers_of(document: Document, directory: Path, problems: list[Problem]) -> OfferedRoom | None:
    """The price file a configuration names, or has in place."""
    match document.raw.get("flavours"):
        case dict() as raw:
            return _offers(document, raw, ("flavours",), problems)
        case list() as raw:
            return _offers(document, {"flavours": raw}, (), problems)
        case str() as named if named.strip() and named.isprintable():
            prices, unread = read_document(directory / named)
            problems += unread
            return _offers(prices, prices.raw, (), problems) if prices is not None else None
        case _:
            return None  # told already: the key is missing or is neither a path nor content


def _offers(document: Document, raw: dict[str, object], steps: Steps, problems: list[Problem]) -> OfferedRoom:
    settings = parsed(CatalogueSetting, document, raw, steps, problems)
    listed = raw.get("flavours")
    items = list(enumerate(listed)) if isinstance(listed, list) else []
    doubles = list(_doubles(document, items, (*steps, "flavours")))
    problems += doubles
    names = [item["name"] for _, item in items if isinstance(item, dict) and isinstance(item.get("name"), str)]
    sound = [parsed(FlavourSetting, document, item, (), []) for _, item in items]
    catalogue = settings.model() if settings is not None and not doubles else None
    return OfferedRoom(names, tuple(flavour.model() for flavour in sound if flavour is not None), catalogue)


ONCE = "rename or remove one"
BY_ZONE = 'write one flavour with its prices by zone, such as prices: [{zone: az-1, perHour: "0.20"}]'


def _doubles(document: Document, items: list[tuple[int, object]], steps: Steps) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for i, item in items:
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str):
            continue
        place = document.place((*steps, i, "name"))
        if name in first:
            by_zone = "zones" in item if isinstance(item, dict) else False
            yield Problem(place, f"{name!r} is defined already at {first[name]}; {BY_ZONE if by_zone else ONCE}")
        first.setdefault(name, place.rpartition("/")[2])


def _on(setting: OpenStackSetting, flavour: Flavour) -> Flavour:
    """A flavour as it is bought with these settings: where, and with which disk."""
    if not flavour.zones:
        flavour = msgspec.structs.replace(flavour, zones=setting.availability_zones)
    if setting.boot_volume is not None:
        capacity = msgspec.structs.replace(flavour.capacity, ephemeral_bytes=setting.boot_volume.size * 2**30)
        flavour = msgspec.structs.replace(flavour, capacity=capacity)
    return flavour


def _policy(settings: Configuration, catalogue: Catalogue, directory: Path) -> Policy:
    openstack = settings.provider.openstack
    flavours = catalogue.flavours if openstack is None else tuple(_on(openstack, each) for each in catalogue.flavours)
    return Policy(
        cluster=settings.cluster,
        catalogue=msgspec.structs.replace(catalogue, flavours=flavours),
        groups=tuple(group.model(is_simulated=settings.provider.is_simulated) for group in settings.node_groups),
        scheduler_name=settings.scheduler_name,
        limits=settings.limits.limits(),
        cycles=settings.cycles.model(),
        timeouts=settings.timeouts.model(),
        run_lengths=settings.run_lengths.model(),
        fallback=settings.fallback.model(),
        edge=settings.edge.model(),
        migration=settings.migration.model(directory.absolute()),
        volumes=settings.volumes.model(),
        max_wait_for_capacity_s=settings.max_wait_for_capacity,
        look_ahead_s=settings.look_ahead,
        value=settings.value.model(),
        max_launches_per_pod=settings.limits.max_launches_per_pod,
        namespaces=tuple(limit.model() for limit in settings.namespaces),
        packing=settings.scheduling.stated(),
        default_requests=settings.scheduling.default_requests.model(),
        max_rental_lengthening=settings.max_rental_lengthening,
        approval=settings.approval.model() if settings.mode == "approve" else None,
        moves_instead_of_buying=settings.move_instead_of_launch,
    )
