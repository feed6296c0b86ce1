"""What the adapter is told: how to reach the cloud, and what a machine is made of."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Access(msgspec.Struct, frozen=True):
    """`cloud` names an entry of clouds.yaml; None: the environment's OS_… variables, else the only entry.

    `clouds_file`: None means where OpenStack's own tools look. `connections` may be busy at one time.
    """

    cloud: str | None = None
    region: str | None = None
    clouds_file: Path | None = None
    timeout_s: float = 30.0
    connections: int = 16


class BootVolume(msgspec.Struct, frozen=True):
    """A volume made from the image, as the machine's disk; it goes with the machine."""

    size_gib: int
    type: str | None = None


class Recipe(msgspec.Struct, frozen=True):
    """What every machine is made of, beside its flavour. Names or ids; empty `networks`: none at all."""

    image: str
    networks: tuple[str, ...] = ()
    key_pair: str | None = None
    security_groups: tuple[str, ...] = ()
    server_group: str | None = None
    boot_volume: BootVolume | None = None
    has_config_drive: bool = False
    metadata: tuple[tuple[str, str], ...] = ()
