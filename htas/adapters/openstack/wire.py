"""What the services answer, as far as it is used."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from htas.model.claims import Instance, InstanceState, Usage
from htas.model.flavours import MachineSize

CLUSTER, CLAIM, GROUP = "htas.cluster", "htas.claim", "htas.group"
"""Metadata of every machine of ours. Nova allows no slash in a key."""


class _Flavor(msgspec.Struct):
    original_name: str = ""


class _Fault(msgspec.Struct):
    message: str = ""


class Server(msgspec.Struct):
    """A server as Compute API 2.69 shows it; one of a cell that is down has its id, status and little else."""

    id: str
    status: str
    name: str = ""
    created: str = ""
    metadata: dict[str, str] = {}
    flavor: _Flavor = msgspec.field(default_factory=_Flavor)
    zone: str | None = msgspec.field(default=None, name="OS-EXT-AZ:availability_zone")
    task: str | None = msgspec.field(default=None, name="OS-EXT-STS:task_state")
    fault: _Fault | None = None
    launched_at: str | None = msgspec.field(default=None, name="OS-SRV-USG:launched_at")
    terminated_at: str | None = msgspec.field(default=None, name="OS-SRV-USG:terminated_at")


class Link(msgspec.Struct):
    rel: str = ""
    href: str = ""


class Servers(msgspec.Struct):
    servers: list[Server] = []
    servers_links: list[Link] = []


class OneServer(msgspec.Struct):
    server: Server


class ServerUsage(msgspec.Struct):
    """A server's time on Nova's books (os-simple-tenant-usage): from its launch to its end."""

    instance_id: str
    name: str = ""
    flavor: str = ""
    started_at: str | None = None
    ended_at: str | None = None


class _TenantUsage(msgspec.Struct):
    server_usages: list[ServerUsage] = []


class TenantUsage(msgspec.Struct):
    """Of a project that had no server in the window Nova answers an empty object."""

    tenant_usage: _TenantUsage = msgspec.field(default_factory=_TenantUsage)
    tenant_usage_links: list[Link] = []


class CloudFlavour(msgspec.Struct):
    """A flavour as Nova has it. `ram` in MiB, `disk` in GiB."""

    id: str
    name: str
    vcpus: int
    ram: int
    disk: int = 0
    ephemeral: int = msgspec.field(default=0, name="OS-FLV-EXT-DATA:ephemeral")
    is_disabled: bool = msgspec.field(default=False, name="OS-FLV-DISABLED:disabled")
    extra_specs: dict[str, str] = {}


class CloudFlavours(msgspec.Struct):
    flavors: list[CloudFlavour] = []
    flavors_links: list[Link] = []


class _Absolute(msgspec.Struct, rename="camel"):
    max_total_instances: int = -1
    max_total_cores: int = -1
    max_total_ram_size: int = msgspec.field(default=-1, name="maxTotalRAMSize")
    total_instances_used: int = 0
    total_cores_used: int = 0
    total_ram_used: int = msgspec.field(default=0, name="totalRAMUsed")


class _Limits(msgspec.Struct):
    absolute: _Absolute = msgspec.field(default_factory=_Absolute)


class Limits(msgspec.Struct):
    limits: _Limits


class Named(msgspec.Struct):
    """Anything that has an id and a name."""

    id: str
    name: str = ""
    created_at: str = ""


class Images(msgspec.Struct):
    images: list[Named] = []


class Networks(msgspec.Struct):
    networks: list[Named] = []


class ServerGroups(msgspec.Struct):
    server_groups: list[Named] = []


class Ports(msgspec.Struct):
    ports: list[Named] = []


UNKNOWN = "UNKNOWN"
"""The status of a server whose cell does not answer."""
_GOING = frozenset({"deleting", "soft-deleting", "force-deleting"})
_STATES = {
    "BUILD": InstanceState.BUILDING,
    "ERROR": InstanceState.ERROR,
}
SCHEDULING = "scheduling"
"""The task of a server that waits for a host: Nova does not count it against the quota yet."""
GONE = frozenset({"DELETED", "SOFT_DELETED"})
"""What is left of such servers is the cloud's own business (`reclaim_instance_interval`)."""


def instance_of(server: Server) -> Instance:
    """The machine that a server is. Stopped, paused or resized ones count as active: their node tells how they are."""
    state = InstanceState.DELETING if server.task in _GOING else _STATES.get(server.status, InstanceState.ACTIVE)
    return Instance(
        id=server.id,
        name=server.name,
        flavour=server.flavor.original_name,
        state=state,
        created_at=_instant(server.created),
        zone=server.zone or None,
        cluster=server.metadata.get(CLUSTER),
        claim=server.metadata.get(CLAIM),
        group=server.metadata.get(GROUP),
        fault=server.fault.message.strip() if server.fault is not None else "",
        launched_at=_instant(server.launched_at) if server.launched_at else None,
        ended_at=_instant(server.terminated_at) if server.terminated_at else None,
    )


def usage_of(found: ServerUsage) -> Usage | None:
    """What Nova charges for a server; None: it was never launched, and nothing is charged."""
    if not found.started_at:
        return None
    ended_at = _instant(found.ended_at) if found.ended_at else None
    return Usage(found.instance_id, found.name, found.flavor, _instant(found.started_at), ended_at)


def size_of(flavour: CloudFlavour) -> MachineSize:
    """What a flavour holds; vCPUs count as cores."""
    return MachineSize(
        name=flavour.name,
        cpu_m=flavour.vcpus * 1000,
        memory_bytes=flavour.ram * 2**20,
        disk_bytes=(flavour.disk + flavour.ephemeral) * 2**30,
        extra_specs=flavour.extra_specs,
    )


def _instant(text: str) -> float:
    """Seconds since the epoch of "2026-11-21T16:15:58Z" (UTC where no zone is named); 0 where there is none."""
    if not text:
        return 0.0
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
