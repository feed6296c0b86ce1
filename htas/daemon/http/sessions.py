"""Sessions of browsers: a token shown once, kept here, and a cookie in its place that no script can read.

The cookie is HttpOnly and SameSite=Strict: no script reads it, and pages of other sites do not have it sent. Other
ports and sub-domains are the same site, though other origins: they have it sent, and are refused by what browsers say
of it (`asking.refuse_a_neighbour`, `refuse_a_page`). A session asks the gate anew at each request with the
token it began with, so a right that is taken away or a Secret that is replaced ends it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from threading import Lock
from urllib.parse import urlsplit

COOKIE = "htas-session"
LASTS_S = 12 * 3600.0
"""A working day; an idle one ends sooner."""
IDLE_S = 2 * 3600.0
MOST = 1_000


@dataclass(slots=True)
class _Session:
    authorization: str
    begun: float
    seen: float


class Sessions:
    """In memory alone: a daemon that starts anew knows none, and people log in again. Safe from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._known: OrderedDict[bytes, _Session] = OrderedDict()

    def begin(self, authorization: str) -> str:
        """A new session of whoever showed this; the oldest goes where there are too many."""
        secret, now = token_urlsafe(32), self._clock()
        with self._lock:
            self._known[_hashed(secret)] = _Session(authorization, now, now)
            while len(self._known) > MOST:
                self._known.popitem(last=False)
        return secret

    def authorization(self, secret: str) -> str:
        """What the session's owner showed; empty: it is not known, or over."""
        now = self._clock()
        with self._lock:
            found = self._known.get(_hashed(secret))
            if found is None:
                return ""
            if now - found.begun > LASTS_S or now - found.seen > IDLE_S:
                del self._known[_hashed(secret)]
                return ""
            found.seen = now
            return found.authorization

    def end(self, secret: str) -> None:
        with self._lock:
            self._known.pop(_hashed(secret), None)


def cookie_name(host: str) -> str:
    """Of the Host header. Cookies know no ports: under one name two daemons behind forwarded ports of a machine would
    take each other's session away.
    """
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    return f"{COOKIE}-{port}" if port is not None else COOKIE


def _hashed(secret: str) -> bytes:
    """Whoever reads the process's memory finds no cookie in it, and a look-up takes as long for any guess."""
    return sha256(secret.encode("utf-8", "replace")).digest()
