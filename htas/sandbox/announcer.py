"""What HTAS says of its work, in the sandbox: kept to be read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from htas.model.news import News
from htas.model.pods import Pod
from htas.sandbox.cluster import SandboxCluster

MOST_NEWS = 10_000


class SandboxAnnouncer:
    """Implements AnnouncerPort: the newest News, the status document, and the marks on waiting pods."""

    def __init__(self, cluster: SandboxCluster) -> None:
        self._cluster = cluster
        self.news: deque[News] = deque(maxlen=MOST_NEWS)
        self.status = ""

    def tell(self, news: Iterable[News]) -> None:
        self.news.extend(news)

    def mark_waiting(self, pod: Pod, message: str) -> None:
        self._cluster.mark_waiting(pod)

    def publish(self, status: str) -> None:
        self.status = status

    def told(self) -> list[News]:
        """All that is still kept, oldest first."""
        return list(self.news)
