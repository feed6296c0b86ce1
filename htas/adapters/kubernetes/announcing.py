"""AnnouncerPort on the API server: Events, the PodScheduled condition, the status ConfigMap; all in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from queue import Empty, Full, Queue
from secrets import token_hex
from threading import Event, Thread

import structlog

from htas.adapters.kubernetes.api import STRATEGIC_PATCH, ApiServer, part
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.model.news import News
from htas.model.pods import Pod
from htas.ports import HTASError, NotFoundError

log = structlog.get_logger()

CONTROLLER = "htas.io/htas"
LONGEST_NOTE = 1024
"""Bytes; events.k8s.io/v1 refuses longer notes."""
MOST_WAITING = 2000
"""Announcements not sent yet; more are dropped, since nobody reads that many."""


class KubernetesAnnouncer:
    """Implements AnnouncerPort with one thread; `close` sends what is waiting, for at most a second or two.

    `on_dropped` is told how many Events were dropped by the rate limit or a full queue.
    """

    def __init__(
        self,
        api: ApiServer,
        namespace: str,
        status_name: str,
        instance: str,
        limit: RateLimit,
        on_dropped: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._status_name = status_name
        self._instance = instance
        self._limit = limit
        self._on_dropped = on_dropped
        self._published = ""
        self._queue: Queue[Callable[[], object]] = Queue(MOST_WAITING)
        self._closing = Event()
        self._thread = Thread(target=self._send_all, name="announce", daemon=True)
        self._thread.start()

    def tell(self, news: Iterable[News]) -> None:
        for each in news:
            if self._limit.try_take():
                self._enqueue(lambda each=each: self._post_event(each))  # type: ignore[misc] # bound by its default
            else:
                self._on_dropped(1)

    def mark_waiting(self, pod: Pod, message: str) -> None:
        self._enqueue(lambda: self._patch_condition(pod, message))

    def publish(self, status: str) -> None:
        if status != self._published:
            self._published = status
            self._enqueue(lambda: self._write_status(status))

    def close(self) -> None:
        self._closing.set()
        self._thread.join(2.0)

    def _enqueue(self, send: Callable[[], object]) -> None:
        try:
            self._queue.put_nowait(send)
        except Full:
            self._on_dropped(1)

    def _send_all(self) -> None:
        while not (self._closing.is_set() and self._queue.empty()):
            try:
                send = self._queue.get(timeout=0.2)
            except Empty:
                continue
            try:
                send()
            except HTASError as error:
                log.debug("announcement not sent", error=str(error))
            except Exception:
                log.exception("announcement failed on a defect of htas")

    def _post_event(self, news: News) -> None:
        space, _, name = news.name.rpartition("/")
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        api_version = "v1"
        self._api.post(
            f"/apis/events.k8s.io/v1/namespaces/{part(space or 'default')}/events",
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": f"{name}.{token_hex(8)}", "namespace": space or "default"},
                "eventTime": now,
                "reportingController": CONTROLLER,
                "reportingInstance": self._instance,
                "action": news.reason,
                "reason": news.reason,
                "type": "Warning" if news.is_warning else "Normal",
                "note": _note(news.message),
                "regarding": {
                    "apiVersion": api_version,
                    "kind": news.kind,
                    "name": name,
                    **({"namespace": space} if space else {}),
                    **({"uid": news.uid} if news.uid else {}),
                },
            },
        )

    def _patch_condition(self, pod: Pod, message: str) -> None:
        """What kube-scheduler writes on a pod that it could not place; other schedulers and people look for it."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message[:LONGEST_NOTE],
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self._api.patch(
            f"/api/v1/namespaces/{part(pod.namespace)}/pods/{part(pod.name)}/status",
            {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}},
            STRATEGIC_PATCH,
        )

    def _write_status(self, status: str) -> None:
        path = f"/api/v1/namespaces/{part(self._namespace)}/configmaps"
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self._status_name, "namespace": self._namespace},
            "data": {"status": status},
        }
        try:
            self._api.patch(f"{path}/{part(self._status_name)}", {"data": body["data"]})
        except NotFoundError:
            self._api.post(path, body)


def _note(message: str) -> str:
    return message.encode("utf-8", "replace")[:LONGEST_NOTE].decode("utf-8", "ignore")
