"""What a third party sees of a day: how long each machine was there, how long pods waited, and who was evicted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import Event, Lock, Thread
from typing import Any

import msgspec

from htas.model.flavours import Catalogue
from htas.model.nodes import INSTANCE_TYPE_LABEL
from htas.ports import HTASError
from tools.testenv.cluster import NODES, PODS, Cluster

Json = dict[str, Any]


class Machine(msgspec.Struct):
    """A node from when it was first seen Ready until it was deleted; None: it is there."""

    flavour: str
    ready_at: float
    gone_at: float | None = None


class PodSeen(msgspec.Struct):
    came_at: float
    ran_at: float | None = None
    is_done: bool = False
    was_evicted: bool = False


class Seen:
    """The books of one day. `now` of each change is the watcher's own clock."""

    def __init__(self, catalogue: Catalogue, start_s: float) -> None:
        self._prices = {flavour.name: flavour.nanos_per_hour for flavour in catalogue.flavours}
        self._billing = catalogue.billing
        self._start_s = start_s
        self.machines: dict[str, Machine] = {}
        self.pods: dict[str, PodSeen] = {}

    def node(self, kind: str, item: Json, now: float) -> None:
        name = item["metadata"]["name"]
        flavour = item["metadata"].get("labels", {}).get(INSTANCE_TYPE_LABEL)
        if kind == "DELETED":
            if name in self.machines and self.machines[name].gone_at is None:
                self.machines[name].gone_at = now
        elif name not in self.machines and flavour in self._prices and _condition(item, "Ready"):
            self.machines[name] = Machine(flavour, now)

    def pod(self, kind: str, item: Json, now: float) -> None:
        seen = self.pods.setdefault(item["metadata"]["uid"], PodSeen(now))
        phase = item.get("status", {}).get("phase")
        if phase in ("Running", "Succeeded") and seen.ran_at is None:
            seen.ran_at = now
        seen.is_done = seen.is_done or phase == "Succeeded"
        is_leaving = kind == "DELETED" or "deletionTimestamp" in item["metadata"]
        if is_leaving and seen.ran_at is not None and not seen.is_done:
            seen.was_evicted = True

    def bill(self, until: float) -> int:
        """Price × billed seconds: each machine is paid for from its order, `start_s` before it was Ready."""
        total = 0
        for machine in self.machines.values():
            if machine.ready_at < until:
                end = until if machine.gone_at is None else min(machine.gone_at, until)
                began, held_s = machine.ready_at - self._start_s, end - machine.ready_at + self._start_s
                total += self._prices[machine.flavour] * self._billing.seconds(began, held_s)
        return total

    def waits(self) -> list[float]:
        """From each pod's creation to its running, ascending."""
        return sorted(pod.ran_at - pod.came_at for pod in self.pods.values() if pod.ran_at is not None)

    @property
    def evicted(self) -> int:
        return sum(pod.was_evicted for pod in self.pods.values())


def _condition(item: Json, kind: str) -> bool:
    conditions = item.get("status", {}).get("conditions", [])
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


class Watch:
    """Feeds nodes and pods to the books as they change; gone on with where the API server drops it."""

    def __init__(self, cluster: Cluster, seen: Seen) -> None:
        self._api, self._seen = cluster.api, seen
        self._stopping, self._lock = Event(), Lock()
        for path, feed in ((NODES, seen.node), (PODS, seen.pod)):
            Thread(target=self._run, args=(path, feed), name=f"watch {path}", daemon=True).start()

    def _run(self, path: str, feed: Any) -> None:
        version = msgspec.json.decode(self._api.get(path, {"limit": 1}))["metadata"]["resourceVersion"]
        while not self._stopping.is_set():
            try:
                query: Mapping[str, Any] = {"watch": 1, "resourceVersion": version, "allowWatchBookmarks": "true"}
                for line in self._api.lines(path, query, 600.0):
                    event = msgspec.json.decode(line)
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        with self._lock:
                            feed(event["type"], event["object"], time.monotonic())
            except HTASError:
                self._stopping.wait(0.2)

    def stop(self) -> None:
        self._stopping.set()
