"""A receiver of notices over HTTP. It follows no redirect, and no address of a link (cloud metadata) is spoken to.

Who writes the configuration names the receiver; a name may lead elsewhere on another day. So the address is judged once
the connection is there, and before a byte is sent: a name that is looked up twice can be answered twice.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

import htas
from htas.adapters.tokens import read_token
from htas.adapters.webhook.deadline import Deadline, held
from htas.adapters.webhook.forms import body_of
from htas.model.notices import Form, Notice
from htas.ports import PermanentError, TransientError

TIMEOUT = urllib3.Timeout(connect=5.0, read=10.0)
WHOLE_S = 30.0
"""For a request and its answer as a whole, from when it is connected to its end, however the bytes come."""
LONGEST_WAIT_S = 3600.0
"""Of what a receiver may ask for by Retry-After."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that is kept elsewhere: in a file, or in a variable of the environment; or, of a `value`, here."""

    value: str = ""
    file: Path | None = None
    variable: str = ""

    def read(self) -> str:
        """Anew each time, so that a Secret may be replaced. Raises PermanentError, which never tells what is in it."""
        if self.file is not None:
            return read_token(self.file)
        if self.variable:
            found = os.environ.get(self.variable, "").strip()
            if not found:
                raise PermanentError(f"the variable {self.variable} is not set, or empty")
            if not (found.isascii() and found.isprintable()):  # http.client would print it in an error
                raise PermanentError(f"the variable {self.variable} must be one line of printable ASCII characters")
            return found
        return self.value


class Webhook:
    """Implements NoticePort. `address` holds the URL, which is a secret with Slack; it is told nowhere."""

    def __init__(
        self,
        name: str,
        address: Secret,
        form: Form,
        token: Secret | None = None,
        *,
        is_insecure: bool = False,
        whole_s: float = WHOLE_S,
    ) -> None:
        self.name = name
        self._address = address
        self._form = form
        self._token = token
        self._is_insecure = is_insecure
        self._whole_s = whole_s

    def send(self, notice: Notice) -> None:
        """Post it once."""
        url = self._address.read()
        if self._scheme(url) not in (("https", "http") if self._is_insecure else ("https",)):
            raise PermanentError(
                f"{self.name}: the address must begin with https:// (insecure: true lets http:// pass)"
            )
        sent = {"Content-Type": "application/json", "User-Agent": f"htas/{htas.__version__}"}
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token.read()}"
        body = msgspec.json.encode(body_of(notice, self._form))
        status, after = self._post(url, body, sent)
        if 200 <= status < 300:
            return
        if status in (408, 425, 429) or status >= 500:
            wait_s = min(float(after), LONGEST_WAIT_S) if after.isdecimal() else None
            raise TransientError(f"{self.name}: answered {status}", wait_s)
        told = ": it is a redirect, and none is followed" if 300 <= status < 400 else ""
        raise PermanentError(f"{self.name}: answered {status}{told}")

    def _post(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        """The answer's status, and its Retry-After. Each time a new connection: there are a few an hour."""
        with Deadline(self._whole_s) as deadline, urllib3.PoolManager(retries=False, timeout=TIMEOUT) as pool:
            pool.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
            late = TransientError(f"{self.name}: has not answered within {self._whole_s:g} s")
            try:
                answer = pool.request("POST", url, body=body, headers=headers, redirect=False, preload_content=False)
            except _RefusedAddressError as error:
                raise PermanentError(f"{self.name}: {error}") from None
            except (urllib3.exceptions.HTTPError, UnicodeError, ValueError) as error:
                if deadline.is_over:
                    raise late from None
                raise TransientError(f"{self.name}: {_reason(error, url)}") from None  # its text has the address in it
            answer.close()  # what it says is nothing to us, and of any length
            if deadline.is_over:  # headers that were cut off look as if they had ended
                raise late
            return answer.status, answer.headers.get("Retry-After", "")

    def _scheme(self, url: str) -> str:
        try:
            return urlsplit(url).scheme
        except ValueError:  # its text has the address in it
            raise PermanentError(f"{self.name}: what is read as the address is none") from None


def _reason(error: Exception, url: str) -> str:
    """What went wrong, in a few words, without the address."""
    cause = getattr(error, "reason", None) or error
    told = str(cause).rpartition(">: ")[2] or type(cause).__name__
    parts = urlsplit(url)
    for secret in (url, parts.path, parts.netloc, parts.hostname or ""):
        told = re.sub(re.escape(secret), "…", told, flags=re.IGNORECASE) if len(secret) > 1 else told
    return f"{type(cause).__name__}: {told[:200]}"


class _RefusedAddressError(Exception):
    """The receiver's name leads to where no receiver is."""


METADATA = frozenset(map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")))
"""Where Amazon (by IPv6), Alibaba, Azure and Oracle keep what 169.254.169.254 has elsewhere."""
NAT64 = ipaddress.ip_network("64:ff9b::/96")


def _plain(where: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address of version 4 that one of version 6 stands for: mapped, 6to4, NAT64 (RFC 6052) or compatible."""
    if isinstance(where, ipaddress.IPv4Address):
        return where
    is_last = where in NAT64 or 1 < int(where) < 2**32
    return where.ipv4_mapped or where.sixtofour or (ipaddress.IPv4Address(int(where) % 2**32) if is_last else where)


def _judged(connected: socket.socket) -> socket.socket:
    """A connection whose other end may be a receiver; raises _RefusedAddressError."""
    where = ipaddress.ip_address(connected.getpeername()[0].partition("%")[0])
    plain = _plain(where)
    if plain.is_link_local or plain.is_multicast or plain.is_unspecified or plain in METADATA:
        connected.close()
        raise _RefusedAddressError(f"{plain} is an address of the link (169.254.169.254 has a cloud's secrets)")
    return connected


class _HTTPConnection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return held(_judged(super()._new_conn()))


class _HTTPSConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return held(_judged(super()._new_conn()))


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls: Any = _HTTPConnection


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls: Any = _HTTPSConnection
