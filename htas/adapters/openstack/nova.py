"""What is asked of Nova, Glance and Neutron: each question or order one function, its answer decoded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from htas.adapters.openstack import wire
from htas.adapters.openstack.api import OpenStackApi
from htas.model.claims import Headroom
from htas.ports import NotFoundError, TransientError

_T = TypeVar("_T")
PAGE = 1000
"""Objects asked for in one answer; Nova's own limit (`max_limit`) may be lower, and pages follow."""
MIB = 2**20


class Nova:
    """The project's servers, flavours and limits. Raises what OpenStackApi raises."""

    def __init__(self, api: OpenStackApi) -> None:
        self.api = api

    def servers(self, **query: str) -> list[wire.Server]:
        """Every server of the project, or those that a query selects."""
        return self._servers({"limit": PAGE, **query})

    def server(self, server_id: str) -> wire.Server | None:
        """One server with its fault; None: there is none."""
        try:
            body = self.api.get("compute", f"/servers/{quote(server_id)}")
        except NotFoundError:
            return None
        return _read(body, wire.OneServer).server

    def servers_named(self, name: str) -> list[wire.Server]:
        """Servers of exactly this name; Nova reads its `name` as a regular expression."""
        found = self.servers(name=f"^{name}$")
        return [server for server in found if server.name == name]

    def create(self, server: Mapping[str, object], hints: Mapping[str, str]) -> str:
        """Order a server; returns its id."""
        body: dict[str, object] = {"server": server}
        if hints:
            body["os:scheduler_hints"] = hints
        return _read(self.api.post("compute", "/servers", body), _Created).server.id

    def delete(self, server_id: str) -> None:
        self.api.delete("compute", f"/servers/{quote(server_id)}")

    def set_metadata(self, server_id: str, metadata: Mapping[str, str]) -> None:
        """Write some keys of a server's metadata; the others stay."""
        self.api.post("compute", f"/servers/{quote(server_id)}/metadata", {"metadata": metadata})

    def flavours(self) -> list[wire.CloudFlavour]:
        """Flavours that this project may use."""
        found: list[wire.CloudFlavour] = []
        query: Mapping[str, str | int] = {"limit": PAGE}
        while True:
            page = _read(self.api.get("compute", "/flavors/detail", query), wire.CloudFlavours)
            found += page.flavors
            following = _next(page.flavors_links)
            if not following or not page.flavors:
                return [flavour for flavour in found if not flavour.is_disabled]
            query = following

    def headroom(self) -> Headroom:
        """What the project's quota leaves (Nova counts -1 as unlimited)."""
        told = _read(self.api.get("compute", "/limits"), wire.Limits).limits.absolute

        def left(granted: int, used: int) -> int | None:
            return None if granted < 0 else max(0, granted - used)

        cores, ram = (
            left(told.max_total_cores, told.total_cores_used),
            left(told.max_total_ram_size, told.total_ram_used),
        )
        return Headroom(
            instances=left(told.max_total_instances, told.total_instances_used),
            cpu_m=None if cores is None else cores * 1000,
            memory_bytes=None if ram is None else ram * MIB,
        )

    def usage(self, since: float, until: float) -> list[wire.ServerUsage]:
        """What the project was charged for within a window: servers that ran at some time in it, gone or not."""
        found: list[wire.ServerUsage] = []
        window: dict[str, str | int] = {"start": _utc(since), "end": _utc(until), "detailed": 1, "limit": PAGE}
        query: Mapping[str, str | int] = window
        path = f"/os-simple-tenant-usage/{quote(self.api.project())}"
        while True:
            page = _read(self.api.get("compute", path, query), wire.TenantUsage)
            found += page.tenant_usage.server_usages
            following = _next(page.tenant_usage_links)
            if not following or not page.tenant_usage.server_usages:
                return found
            query = window | following

    def images(self, query: Mapping[str, str]) -> list[wire.Named]:
        return _read(self.api.get("image", "/images", query), wire.Images).images

    def networks(self, query: Mapping[str, str]) -> list[wire.Named]:
        return _read(self.api.get("network", "/networks", query), wire.Networks).networks

    def server_groups(self) -> list[wire.Named]:
        body = self.api.get("compute", "/os-server-groups")
        return _read(body, wire.ServerGroups).server_groups

    def ports_of(self, server_id: str) -> list[wire.Named]:
        body = self.api.get("network", "/ports", {"device_id": server_id})
        return _read(body, wire.Ports).ports

    def delete_port(self, port_id: str) -> None:
        self.api.delete("network", f"/ports/{quote(port_id)}")

    def _servers(self, query: Mapping[str, str | int]) -> list[wire.Server]:
        found: list[wire.Server] = []
        while True:
            page = _read(self.api.get("compute", "/servers/detail", query), wire.Servers)
            found += page.servers
            following = _next(page.servers_links)
            if not following or not page.servers:
                return found
            query = following


def _utc(instant: float) -> str:
    """An instant as os-simple-tenant-usage reads it."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


class _Id(msgspec.Struct):
    id: str


class _Created(msgspec.Struct):
    server: _Id


def _read(body: bytes, form: type[_T]) -> _T:
    """Decode an answer; one that makes no sense (a proxy's page, say) is an answer that has not come."""
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.MsgspecError as error:
        raise TransientError(f"the cloud's answer makes no sense: {error}") from error


def _next(links: list[wire.Link]) -> dict[str, str | int]:
    """The query of the next page; empty: there is none."""
    href = next((link.href for link in links if link.rel == "next"), "")
    return dict(parse_qsl(urlsplit(href).query))
