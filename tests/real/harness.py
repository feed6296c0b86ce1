"""What the stories of this folder are told with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread

import msgspec

from htas.adapters.kubernetes.api import ApiServer
from htas.ports import HTASError
from tools.testenv.cluster import (
    APPS,
    BATCH,
    CONFIG_MAPS,
    CORE,
    LEASES,
    NODES,
    PODS,
    ROOT,
    TESTENV,
    Cluster,
    Json,
    eventually,
)
from tools.testenv.daemon import Htas, configuration, htas

__all__ = [
    "APPS",
    "BATCH",
    "CONFIG_MAPS",
    "CORE",
    "LEASES",
    "NODES",
    "PODS",
    "ROOT",
    "TESTENV",
    "Cluster",
    "Htas",
    "Json",
    "Watcher",
    "configuration",
    "eventually",
    "htas",
]


class Watcher:
    """Sees every change of a collection, as an outsider does; `on_event` is called with type and object."""

    def __init__(self, api: ApiServer, path: str, on_event: Callable[[str, Json], None]) -> None:
        self._api, self._path, self._on_event = api, path, on_event
        self._stopping = Event()
        self.problem: Exception | None = None
        found = msgspec.json.decode(api.get(path))
        for item in found["items"]:
            on_event("ADDED", item)
        self._version: str = found["metadata"]["resourceVersion"]
        self._thread = Thread(target=self._run, name=f"watcher {path}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                for kind, item in self._events():
                    if kind != "BOOKMARK":
                        self._on_event(kind, item)
                    self._version = item["metadata"]["resourceVersion"]
                    if self._stopping.is_set():
                        return
            except HTASError:
                self._stopping.wait(0.2)  # the API server is away: part of some tests
            except Exception as error:
                self.problem = error
                return

    def _events(self) -> Iterator[tuple[str, Json]]:
        query = {"watch": 1, "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        for line in self._api.lines(self._path, query, 300.0):
            event = msgspec.json.decode(line)
            assert event["type"] != "ERROR", event
            yield event["type"], event["object"]

    def stop(self) -> None:
        """Raises what `on_event` raised."""
        self._stopping.set()
        if self.problem is not None:
            raise self.problem
