"""What the daemon says of itself: HTTP and logs."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from htas.config.values import Section, Switch, Text, Written, shown

_LISTEN = re.compile(r"(?P<host>[A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\]):(?P<port>[0-9]{1,5})")


def _listen(value: object) -> object:
    if value is None:
        return None
    match = _LISTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match["port"]) < 65536:
        raise ValueError(f'{shown(value)} is not host:port; write one such as "0.0.0.0:8080"')
    return value


def _address(listen: str | None) -> tuple[str, int] | None:
    if listen is None:
        return None
    host, _, port = listen.rpartition(":")
    return host.strip("[]") or "0.0.0.0", int(port)


class TlsSetting(Section):
    """PEM files, relative to the configuration unless absolute; read again when they change."""

    cert_file: Text | None = Field(default=None, description="The certificate and its intermediates. null: plain HTTP.")
    key_file: Text | None = Field(default=None, description="Its private key. null: plain HTTP.")

    @model_validator(mode="after")
    def _is_whole(self) -> TlsSetting:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("needs both certFile and keyFile, or neither")
        return self


_HOST = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


def _host(value: object) -> object:
    if not isinstance(value, str) or not _HOST.fullmatch(value):
        raise ValueError(f'{shown(value)} is not a name; write one such as "htas.example.org" or "*.example.org"')
    return value


class HttpSetting(Section):
    """Health, metrics, the last plan; moves and searches asked for, over HTTP."""

    listen: Annotated[str | None, BeforeValidator(_listen)] = Field(
        default=None, description='Where to listen, such as "0.0.0.0:8080". null: nowhere.'
    )

    health_listen: Annotated[str | None, BeforeValidator(_listen)] = Field(
        default=None,
        description="A second address for probes alone. null: on `listen` alone.",
    )
    token_file: Text | None = Field(
        default=None,
        description="File of the token required for all but health and metrics; relative to this file. null: none.",
    )
    token_review: Switch = Field(
        default=False,
        description="Accept tokens of the API server whose users may get or post the path (nonResourceURLs).",
    )
    hosts: tuple[Annotated[str, BeforeValidator(_host), Written(_HOST.pattern)], ...] = Field(
        default=(),
        description="Names under which `listen` is reached, besides addresses and localhost; others are refused (421).",
    )
    tls: TlsSetting = Field(default=TlsSetting(), description="Serve `listen` by HTTPS.")

    @field_validator("health_listen")
    @classmethod
    def _has_a_listener(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("listen") is None:
            raise ValueError("has an effect with `http.listen` alone; write that or remove it")
        return value

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port; an empty host is every address of the machine."""
        return _address(self.listen)

    @property
    def health_address(self) -> tuple[str, int] | None:
        """Likewise, of what answers probes alone."""
        return _address(self.health_listen)


class LoggingSetting(Section):
    """Logs go to standard error."""

    format: Literal["auto", "json", "console"] = Field(
        default="auto", description="auto: console lines on a terminal, JSON otherwise."
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least severe level that is logged."
    )
