"""The settings of the store: where the journal and the history are kept."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from htas.config.values import Count, OneOf, Seconds, Section, Switch, Text, Units, WholeSeconds, shown
from htas.model.record import DAY_S, Retention

_HOST = re.compile(r"\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+")
_KEYSPACE = re.compile(r"[a-z][a-z0-9_]{0,47}")
_MOST_REPLICAS = 99


def contact_point(text: str) -> tuple[str, int | None]:
    """Host and port of `host` or `host:port` (an IPv6 address in brackets); raises ValueError."""
    found = re.fullmatch(rf"({_HOST.pattern})(?::([0-9]{{1,5}}))?", text)
    if found is None or (found[2] is not None and not 1 <= int(found[2]) <= 65_535):
        raise ValueError(f"{text!r} is no host or host:port, as in cassandra-1.example.com:9042")
    return found[1].strip("[]"), int(found[2]) if found[2] is not None else None


def _contact_point(text: str) -> str:
    contact_point(text)
    return text


def _keyspace(text: str) -> str:
    if not _KEYSPACE.fullmatch(text):
        raise ValueError(f"{text!r} is no keyspace; write up to 48 of a-z 0-9 _ that begin with a letter")
    return text


class CassandraTlsSetting(Section):
    """PEM files, relative to the configuration unless absolute."""

    ca_file: Text = Field(description="The CA of the servers' certificates.")
    cert_file: Text | None = Field(
        default=None, description="The client certificate, where servers require one. null: none."
    )
    key_file: Text | None = Field(default=None, description="Its key. null: none.")
    check_hostname: Switch = Field(
        default=True, description="false: any server with a certificate of that CA is accepted."
    )

    @model_validator(mode="after")
    def _has_both(self) -> CassandraTlsSetting:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("has one of certFile and keyFile; write both or neither")
        return self


class RetentionSetting(Section):
    """How long records are kept."""

    profile: WholeSeconds = Field(default=90 * DAY_S, ge=DAY_S, description="Table 3, by instance; 90d.")
    cycles: WholeSeconds = Field(
        default=14 * DAY_S,
        ge=DAY_S,
        description="Cycles with snapshot and plan, for replay; 14d: they take most space.",
    )
    runs: WholeSeconds = Field(default=400 * DAY_S, ge=DAY_S, description="Runs of finished pods; 400d: a year.")
    bills: WholeSeconds = Field(default=800 * DAY_S, ge=DAY_S, description="Closed bills; 800d: two years.")
    released_claims: WholeSeconds = Field(
        default=DAY_S, ge=3600, description="Claims of deleted machines, so that no claim is made twice; 1d."
    )

    def model(self) -> Retention:
        return Retention(self.profile, self.cycles, self.runs, self.bills, self.released_claims)


class SqliteSetting(Section):
    """A SQLite file."""

    path: Text = Field(default="htas.db", description="Relative to the configuration unless absolute.")
    retention: RetentionSetting = Field(
        default=RetentionSetting(),
        description="How long records are kept; cycles at most 20,000 and 512 MiB.",
    )


class BufferSetting(Section):
    """A queue on this machine's disk for records while Cassandra is away."""

    path: Text = Field(default="htas-buffer.db", description="Relative to the configuration unless absolute.")
    max_bytes: Units = Field(
        default=2**30, ge=2**20, description="Cycles and profile rows beyond it are dropped, the oldest first; 1Gi."
    )


class CassandraSetting(Section):
    """An Apache Cassandra that is there, 4.0 or newer."""

    contact_points: tuple[Annotated[Text, AfterValidator(_contact_point)], ...] = Field(
        min_length=1, description="host or host:port of some of its nodes; the rest is found. Port 9042."
    )
    local_datacenter: Text = Field(description="The datacenter near to HTAS, as nodetool status names it.")
    keyspace: Annotated[Text, AfterValidator(_keyspace)] = Field(
        default="htas", description="Several clusters may share one."
    )
    username: Text | None = Field(default=None, description="The role HTAS logs in as. null: without a password.")
    password_file: Text | None = Field(default=None, description="A file with its password. null: none.")
    tls: CassandraTlsSetting | None = Field(default=None, description="null: unencrypted.")
    consistency: Literal["LOCAL_QUORUM", "QUORUM", "LOCAL_ONE", "ONE", "ALL"] = Field(
        default="LOCAL_QUORUM", description="Of reads and writes; with three replicas one may be away."
    )
    timeout: Seconds = Field(
        default=10.0, ge=1, le=120, description="Timeout of a request; longer than the server's own timeouts."
    )
    replication: dict[str, Count] = Field(
        default_factory=dict, description="For htas store init: replicas by datacenter. {}: 3 in localDatacenter."
    )
    retention: RetentionSetting = Field(
        default=RetentionSetting(), description="How long records are kept; applies to new records."
    )
    buffer: BufferSetting = Field(default=BufferSetting(), description="For when Cassandra is away.")

    @field_validator("replication", mode="before")
    @classmethod
    def _are_datacenters(cls, replication: Any) -> Any:
        if not isinstance(replication, dict):
            raise ValueError("is no mapping; write replicas by datacenter, such as {dc1: 3}")
        for name in replication:
            if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,48}", name):
                raise ValueError(f"{shown(name)} is no name of a datacenter; write letters, digits, . _ -")
        return replication

    @field_validator("replication")
    @classmethod
    def _are_replicas(cls, replication: dict[str, int], info: ValidationInfo) -> dict[str, int]:
        for name, factor in replication.items():
            if not 1 <= factor <= _MOST_REPLICAS:
                raise ValueError(f"{name}: {factor} replicas; write 1 to {_MOST_REPLICAS}")
        local = info.data.get("local_datacenter")
        if replication and local is not None and local not in replication:
            raise ValueError(f"does not name localDatacenter {local!r}; HTAS reads and writes there")
        return replication

    @model_validator(mode="after")
    def _has_both(self) -> CassandraSetting:
        if (self.username is None) != (self.password_file is None):
            raise ValueError("has one of username and passwordFile; write both or neither")
        return self

    @property
    def replicas(self) -> dict[str, int]:
        """Replicas by datacenter, as a keyspace is made."""
        return self.replication or {self.local_datacenter: 3}


class StoreSetting(OneOf):
    """Where the journal and the history are kept: exactly one."""

    chooses: ClassVar[str] = "store"
    sqlite: SqliteSetting | None = Field(default=None, description="A file on this machine: nothing to install.")
    cassandra: CassandraSetting | None = Field(default=None, description="A shared store, for several daemons.")
