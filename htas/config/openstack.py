"""The settings of OpenStack: how to reach it, and what a machine is made of."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from htas.config.values import Count, Integer, NodeName, Seconds, Section, Switch, Text, WholeSeconds, shown

_ENDPOINT = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_VALUE_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def _endpoint(text: str) -> str:
    if not _ENDPOINT.fullmatch(text):
        raise ValueError(f"{text!r} is no host:port, as in 192.0.2.10:6443")
    return text


def _hash(text: str) -> str:
    if not _HASH.fullmatch(text):
        raise ValueError(f"{text!r} is no digest such as kubeadm prints: sha256: and 64 hexadecimal digits")
    return text


class BootVolumeSetting(Section):
    """The image goes on a volume of its own, which is deleted with the machine."""

    size: Integer = Field(ge=1, le=65_536, description="GiB.")
    type: Text | None = Field(default=None, description="A volume type. null: the cloud's default.")


class KubeadmSetting(Section):
    """Machines join by kubeadm, each with a bootstrap token made at its launch."""

    api_server: Annotated[Text, AfterValidator(_endpoint)] = Field(
        description="host:port of the API server, as the new machines reach it."
    )
    token_ttl: WholeSeconds = Field(
        default=1800.0,
        ge=60,
        description="How long a token is valid; 30m: launch and registration (20m) and some.",
    )
    ca_cert_hash: Annotated[Text, AfterValidator(_hash)] | None = Field(
        default=None, description="The digest of the cluster's CA. null: computed from the credentials HTAS uses."
    )


class UserDataSetting(Section):
    """What machines boot with: a cloud-init document, or a script."""

    template: Text = Field(
        description="A file, relative to the configuration unless absolute (openstack/cloud-init.yaml)."
    )
    kubeadm: KubeadmSetting | None = Field(
        default=None, description="Joining by kubeadm. null: the template joins by other means."
    )
    values: dict[str, str] = Field(default_factory=dict, description="Filled in for ${htas.values.NAME}. None.")

    @field_validator("values", mode="before")
    @classmethod
    def _are_texts(cls, values: object) -> object:
        if not isinstance(values, dict):
            raise ValueError("is no mapping of names to texts")
        for name, text in values.items():
            if not isinstance(name, str) or not _VALUE_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name for a placeholder; write a-z 0-9 and _")
            if not isinstance(text, str):
                raise ValueError(f"{name}: found {shown(text)} where text belongs; put it in quotes")
        return values


class OpenStackSetting(Section):
    """Machines from bare Nova. Names or ids, as the project has them."""

    cloud: Text | None = Field(
        default=None, description="An entry of clouds.yaml. null: the OS_… variables, else the only entry."
    )
    clouds_file: Text | None = Field(
        default=None, description="That file. null: where OpenStack's own tools look (/etc/openstack/clouds.yaml …)."
    )
    region: Text | None = Field(default=None, description="null: the one of clouds.yaml.")
    image: Text = Field(description="What machines boot; of several of one name the newest.")
    networks: tuple[Text, ...] = Field(
        description="Networks they are attached to. []: none, which few machines can use."
    )
    key_pair: Text | None = Field(default=None, description="For logging in. null: none.")
    security_groups: tuple[Text, ...] = Field(default=(), description="None: the project's default group.")
    server_group: Text | None = Field(
        default=None, description="All machines of HTAS go into it (soft anti-affinity, say). null: none."
    )
    boot_volume: BootVolumeSetting | None = Field(
        default=None, description="{size: 40, type: ssd}: boot from a volume. null: the flavour's own disk."
    )
    config_drive: Switch = Field(
        default=False, description="true: user data on a config drive, for clouds without a metadata service."
    )
    user_data: UserDataSetting | None = Field(
        default=None, description="What they boot with. null: the image joins by itself."
    )
    availability_zones: tuple[NodeName, ...] = Field(
        default=(), description="Zones for flavours whose price file names none. None: the cloud chooses."
    )
    metadata: dict[str, str] = Field(default_factory=dict, description="More metadata for each server. None.")
    creates_in_flight: Count = Field(
        default=16, ge=1, le=256, description="Launches and deletions at one time; more wait their turn."
    )
    poll_interval: Seconds = Field(
        default=10.0, ge=1, le=600, description="Between polls of the cloud while no machine changes; 10s."
    )
    quick_poll_interval: Seconds = Field(
        default=2.0, ge=0.2, le=60, description="Between polls while a machine starts or is being deleted; 2s."
    )
    timeout: Seconds = Field(default=30.0, ge=1, le=300, description="Timeout of a call; 30s.")

    @field_validator("metadata", mode="before")
    @classmethod
    def _is_metadata(cls, metadata: object) -> object:
        if not isinstance(metadata, dict):
            raise ValueError("is no mapping of keys to texts")
        for key, text in metadata.items():
            if not isinstance(key, str) or not re.fullmatch(r"[A-Za-z0-9 .:_-]{1,255}", key):
                raise ValueError(f"{key!r} is no key that Nova takes; write up to 255 of A-Z a-z 0-9 . : _ -")
            if key.startswith("htas."):
                raise ValueError(f"{key!r}: keys that begin with htas. are written by HTAS itself; choose another")
            if not isinstance(text, str) or len(text) > 255:
                raise ValueError(f"{key}: is no text of up to 255 characters, which is what Nova takes")
        return metadata

    @field_validator("networks", "security_groups", "availability_zones")
    @classmethod
    def _names_each_once(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("names one of them twice; remove it")
        return names
