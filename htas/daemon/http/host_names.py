"""Which names a listener answers under: the check of the Host header that ends DNS rebinding.

A page of evil.example can have its own name resolve to 127.0.0.1, or to the daemon's address in the cluster, and is
then of the same origin as the daemon. Its requests carry that name as their Host. An address, `localhost` and the
names of `http.hosts` are answered; a name that an attacker can register is not. Probes are answered under any name:
they show nothing but health.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
PROBES = frozenset({"/healthz", "/readyz"})


class HostNames:
    """The names that are answered, beside addresses and `localhost`. "*.example.org" stands for all below it."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in (*names, "localhost"))

    def refusal(self, host: str, path: str) -> str | None:
        """Why a request with this Host header is refused; None: it is answered. HTTP/1.0 may come without one."""
        if not host or path in PROBES:
            return None
        name = _name(host)
        if name is not None and (_is_address(name) or name in self._names or self._below(name)):
            return None
        return f"{host[:100]} is not a name of this server; add it to http.hosts, or use the address"

    def _below(self, name: str) -> bool:
        parts = name.split(".")
        return any(f"*.{'.'.join(parts[at:])}" in self._names for at in range(1, len(parts)))


def _name(host: str) -> str | None:
    """The name of a Host header, without its port; None where it is malformed."""
    match = _HOST.fullmatch(host)
    return match["name"].strip("[]").lower().rstrip(".") if match is not None else None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
