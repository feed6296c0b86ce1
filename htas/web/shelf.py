"""What was worked out, kept for as long as it holds: once for each picture, however many pages ask for it at once."""

from __future__ import annotations

import gzip
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Lock

from starlette.requests import Request
from starlette.responses import Response

from htas.web.turns import BusyError

MOST = 128
"""Documents at once; 5,000 nodes at a glance are some 300 kB, and 60 kB compressed."""
MOST_BYTES = 32 * 2**20
"""Of all of them, with their compressed forms: 128 long ones were 500 MB. The one asked for longest ago goes first."""
LEAST_ZIPPED = 1_000
DUTY = 10.0
"""A document that took 1 s is shown for 10 s: pages never take more than a tenth of a core from the daemon."""
LONGEST_WAIT_S = 1.0
"""So long readers wait for one that makes a document anew before they are shown the last: there are 40 threads."""
OLDEST_S = 300.0
"""While it is others' turn, a page goes on with what it had, and what that tells is no older than this."""


@dataclass(frozen=True, slots=True)
class Body:
    """A document as it is sent. `etag` is of what is in it, not of when it was made."""

    plain: bytes
    zipped: bytes | None
    etag: str

    @property
    def size(self) -> int:
        return len(self.plain) + len(self.zipped or b"")


def sent(request: Request, body: Body, headers: dict[str, str], kind: str) -> Response:
    """As the client takes it, compressed or not; nothing where it has that already."""
    headers = {**headers, "ETag": body.etag}
    if request.method in ("GET", "HEAD") and body.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if body.zipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(body.zipped, headers={**headers, "Content-Encoding": "gzip"}, media_type=kind)
    return Response(body.plain, headers=headers, media_type=kind)


def body_of(plain: bytes) -> Body:
    """With its compressed form where that is worth it."""
    zipped = gzip.compress(plain, 5, mtime=0) if len(plain) >= LEAST_ZIPPED else None
    return Body(plain, zipped, f'"{blake2b(plain, digest_size=12).hexdigest()}"')


@dataclass(slots=True)
class _Place:
    lock: Lock = field(default_factory=Lock)
    version: int = -1
    until: float = 0.0
    made_at: float = 0.0
    body: Body | None = None

    def recent(self) -> Body | None:
        """What there is, unless it is too old to be shown."""
        return self.body if time.monotonic() - self.made_at <= OLDEST_S else None


class Shelf:
    """Asked by many threads; each document is made by the first that asks, and the others wait for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._bytes = 0

    def get(self, key: str, version: int, make: Callable[[], bytes]) -> Body:
        """The document of a key for a version of the cluster; an older one for a while where it took long to make, or
        where it is others' turn. Raises BusyError where there is none.
        """
        with self._lock:
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
            self._make_room()
        if not place.lock.acquire(timeout=LONGEST_WAIT_S):
            if (known := place.recent()) is not None:  # somebody makes it anew, or waits for a turn to
                return known
            place.lock.acquire()
        try:
            return self._up_to_date(key, place, version, make)
        finally:
            place.lock.release()

    def _up_to_date(self, key: str, place: _Place, version: int, make: Callable[[], bytes]) -> Body:
        if place.body is not None and (place.version == version or time.monotonic() < place.until):
            return place.body
        began = time.thread_time()  # of the processor: to wait for a turn costs nobody anything
        try:
            made = body_of(make())
        except BusyError:
            if (known := place.recent()) is None:
                raise
            return known
        self._put(key, place, made)
        place.version, place.made_at = version, time.monotonic()
        place.until = place.made_at + DUTY * (time.thread_time() - began)
        return made

    def _put(self, key: str, place: _Place, made: Body) -> None:
        with self._lock:
            if self._places.get(key) is place:  # else it went while this was made, and is not counted
                self._bytes += made.size - (place.body.size if place.body is not None else 0)
            place.body = made
            self._make_room()

    def _make_room(self) -> None:
        while len(self._places) > MOST or self._bytes > MOST_BYTES:
            _, gone = self._places.popitem(last=False)
            self._bytes -= gone.body.size if gone.body is not None else 0
