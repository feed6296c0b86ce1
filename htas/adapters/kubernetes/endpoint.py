"""An API server as credentials name it: its address, whom to trust, and how to prove who we are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec


def nobody() -> str:
    """The Authorization header of those who send none."""
    return ""


class Endpoint(msgspec.Struct, frozen=True):
    """Where requests go. `authorization` is asked before each of them: tokens rotate."""

    server: str
    authorization: Callable[[], str] = nobody
    ca_file: Path | None = None
    certificate: tuple[Path, Path] | None = None
    """The files of a client certificate and its key."""
    is_verified: bool = True
    """Whether the server has to prove who it is."""
    server_name: str = ""
    """The name in the server's certificate; empty: that of its address."""
    proxy: str = ""


def environment_proxy(server: str) -> str:
    """The proxy that HTTPS_PROXY or HTTP_PROXY name for a server; empty where NO_PROXY leaves it out.

    As Go has it, so as kubectl: NO_PROXY may have networks (10.0.0.0/8), and loopback is never proxied.
    """
    parts, known = urlsplit(server), getproxies()
    host, proxy = parts.hostname or "", known.get(parts.scheme, "")
    if not proxy or host == "localhost" or proxy_bypass(host):
        return ""
    return "" if _is_within(host, ["127.0.0.0/8", "::1/128", *known.get("no", "").split(",")]) else proxy


def _is_within(host: str, networks: list[str]) -> bool:
    for each in networks:
        with suppress(ValueError):  # a name, which is no address
            if ip_address(host) in ip_network(each.strip(), strict=False):
                return True
    return False


class TokenFile:
    """The Authorization header with a token from a file, which whoever renews it replaces."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = path.read_text().strip()

    def __call__(self) -> str:
        with suppress(OSError):  # while it is being replaced, the one before is as good
            self._token = self._path.read_text().strip() or self._token
        return f"Bearer {self._token}"
