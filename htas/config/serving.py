"""What the daemon says of itself: HTTP and logs."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from htas.config.values import Section, Text, shown

_LISTEN = re.compile(r"(?P<host>[A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\]):(?P<port>[0-9]{1,5})")


def _listen(value: object) -> object:
    if value is None:
        return None
    match = _LISTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match["port"]) < 65536:
        raise ValueError(f'{shown(value)} is not host:port; write one such as "0.0.0.0:8080"')
    return value


class HttpSetting(Section):
    """Health, metrics, the last plan; moves and searches asked for, over HTTP."""

    listen: Annotated[str | None, BeforeValidator(_listen)] = Field(
        default=None, description='Where to listen, such as "0.0.0.0:8080". null: nowhere.'
    )

    token_file: Text | None = Field(
        default=None,
        description="A token that those show who ask for moves or searches; beside this file. null: no move is taken.",
    )

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port; an empty host is every address of the machine."""
        if self.listen is None:
            return None
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]") or "0.0.0.0", int(port)


class LoggingSetting(Section):
    """Logs go to standard error."""

    format: Literal["auto", "json", "console"] = Field(
        default="auto", description="auto: console lines on a terminal, JSON otherwise."
    )
    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="The least that is told.")
