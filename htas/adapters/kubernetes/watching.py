"""List, then watch: one thread for each kind keeps a LiveView current, whatever happens to the connection.

The protocol is the API server's (Kubernetes API concepts, "Efficient detection of changes"): a list gives a
resourceVersion, a watch from there gives every later change; bookmarks move the version on while nothing happens; 410
means that the version is too old, and that all must be listed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from random import uniform
from threading import Event, Thread
from time import monotonic

import msgspec
import structlog

from htas.adapters.kubernetes.api import ApiServer, GoneError, Status
from htas.adapters.kubernetes.live import LiveView
from htas.adapters.kubernetes.resources import Resource
from htas.adapters.kubernetes.shelves import Key
from htas.ports import HTASError, TransientError

log = structlog.get_logger()

WATCH_S = (300, 600)
"""How long a watch lasts; a random length, as client-go's reflectors have, so that not all end at once."""
IDLE_S = 660.0
"""Longer than any watch: a silent one is broken off by then, a dead connection by TCP long before."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
"""Between attempts; doubling. An API server that is back is noticed after six seconds at the latest."""


class _ListMeta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 # the API's own name
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _VersionOnly(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 # the API's own name


class _Versioned(msgspec.Struct):
    metadata: _VersionOnly


_PAGES = msgspec.json.Decoder(_Page)
_EVENTS = msgspec.json.Decoder(_WatchEvent)
_VERSIONS = msgspec.json.Decoder(_Versioned)


def list_into(view: LiveView, api: ApiServer, resource: Resource, page_size: int) -> str:
    """Bring a view up to date with a list, page by page; returns the version the list is of. GoneError: begin again."""
    keys: set[Key] = set()
    query: dict[str, str | int] = {"limit": page_size}
    while True:
        page = _PAGES.decode(api.get(resource.path, query))
        keys |= view.take_page(resource, page.items or ())
        if not page.metadata.continue_:
            view.end_list(resource, keys)
            return page.metadata.resourceVersion
        query["continue"] = page.metadata.continue_


class Watching(Thread):
    """Keeps one kind of a LiveView current until `stopping` is set.

    `failing_since` tells since when (by the monotonic clock) neither list nor watch has worked; None: all is well.
    """

    def __init__(
        self,
        api: ApiServer,
        resource: Resource,
        view: LiveView,
        stopping: Event,
        *,
        page_size: int = 1000,
        on_restart: Callable[[str], None] = lambda kind: None,
    ) -> None:
        super().__init__(name=f"watch {resource.plural}", daemon=True)
        self.resource = resource
        self.failing_since: float | None = None
        self.error = ""
        self._api = api
        self._view = view
        self._stopping = stopping
        self._page_size = page_size
        self._on_restart = on_restart
        self._version = ""
        self._pause_s = FIRST_PAUSE_S

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
            except GoneError:
                self._version = ""
                self._on_restart(self.resource.kind)
                self._stopping.wait(FIRST_PAUSE_S)  # a server that only ever says 410 is not to be hammered
            except HTASError as error:
                self._failed(str(error))
            except Exception as error:  # a defect must not leave the view to grow old unnoticed
                log.exception("watching failed on a defect of htas, listed again", kind=self.resource.kind)
                self._version = ""
                self._failed(repr(error))

    def _failed(self, error: str) -> None:
        if self.failing_since is None:
            self.failing_since = monotonic()
            log.warning("cannot list and watch, tried again", kind=self.resource.kind, error=error)
        self.error = error
        self._on_restart(self.resource.kind)
        self._stopping.wait(self._pause_s * uniform(0.8, 1.2))
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _works(self) -> None:
        if self.failing_since is not None:
            log.info("list and watch work again", kind=self.resource.kind)
        self.failing_since, self.error, self._pause_s = None, "", FIRST_PAUSE_S

    def _list(self) -> None:
        self._version = list_into(self._view, self._api, self.resource, self._page_size)
        self._works()

    def _watch(self) -> None:
        query: dict[str, str | int] = {
            "watch": 1,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": round(uniform(*WATCH_S)),
        }
        for event in self._events(query):
            self._apply(event)

    def _events(self, query: dict[str, str | int]) -> Iterator[_WatchEvent]:
        for line in self._api.lines(self.resource.path, query, IDLE_S, on_open=self._works):
            if self._stopping.is_set():
                return
            try:
                yield _EVENTS.decode(line)
            except msgspec.DecodeError as error:  # cut off in the middle of a line
                raise TransientError(f"watch {self.resource.path}: {error}") from error

    def _apply(self, event: _WatchEvent) -> None:
        match event.type:
            case "ADDED" | "MODIFIED":
                self._view.put(self.resource, event.object)
            case "DELETED":
                self._view.remove(self.resource, event.object)
            case "BOOKMARK":
                pass
            case "ERROR":
                status = msgspec.json.decode(event.object, type=Status)
                if status.code == 410:
                    raise GoneError(status.message)
                raise TransientError(f"watch {self.resource.path}: {status.message}")
            case _:
                return
        with suppress(msgspec.DecodeError):  # an object without a version: the last one stays
            self._version = _VERSIONS.decode(event.object).metadata.resourceVersion or self._version
