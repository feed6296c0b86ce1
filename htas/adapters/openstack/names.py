"""From names in the configuration to the ids that Nova wants; looked up when needed, and again after a while."""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock
from time import monotonic

from htas.adapters.openstack.nova import Nova
from htas.adapters.openstack.wire import CloudFlavour, Named
from htas.ports import NotFoundError, PermanentError, RefusedError

REMEMBERED_S = 300.0
"""An image that is replaced by a newer one of the same name is used from five minutes later on."""
_ID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


class Names:
    """Ids by name. What is not there raises RefusedError, which names the key of the configuration."""

    def __init__(self, nova: Nova, clock: Callable[[], float] = monotonic) -> None:
        self._nova = nova
        self._clock = clock
        self._lock = Lock()
        self._flavour_lock = Lock()  # of its own: a Glance that hangs must not hold up the listing of servers
        self._known: dict[tuple[str, str], tuple[float, str]] = {}
        self._flavours: dict[str, CloudFlavour] = {}
        self._flavours_until = 0.0

    def image(self, name: str) -> str:
        """Of several images of one name, the newest."""
        return self._id("image", name, lambda: self._nova.images({"name": name, "status": "active"}))

    def network(self, name: str) -> str:
        return self._id("networks", name, lambda: self._nova.networks({"name": name}))

    def server_group(self, name: str) -> str:
        groups = self._nova.server_groups
        return self._id("serverGroup", name, lambda: [each for each in groups() if name in (each.id, each.name)])

    def sold(self) -> tuple[str, ...]:
        """Names of the flavours that the project may use now."""
        with self._flavour_lock:
            is_known, names = self._clock() < self._flavours_until, tuple(sorted(self._flavours))
        return names if is_known else tuple(sorted(self._read_flavours()))

    def flavour(self, name: str) -> str:
        """The id of a flavour; PermanentError: the cloud has none of that name."""
        with self._flavour_lock:
            found = self._flavours.get(name)
        if found is None:
            found = self._read_flavours().get(name)
        if found is None:
            raise PermanentError(f"flavor {name!r} is not among the cloud's; htas flavours lists them")
        return found.id

    def _read_flavours(self) -> dict[str, CloudFlavour]:
        flavours = {flavour.name: flavour for flavour in self._nova.flavours()}
        with self._flavour_lock:
            self._flavours, self._flavours_until = flavours, self._clock() + REMEMBERED_S
        return flavours

    def forget(self) -> None:
        """Look everything up anew: an order was refused, and what was known may be out of date."""
        with self._lock:
            self._known.clear()
        with self._flavour_lock:
            self._flavours_until = 0.0

    def _id(self, key: str, name: str, look: Callable[[], list[Named]]) -> str:
        if _ID.fullmatch(name) and key != "serverGroup":
            return name
        with self._lock:  # thirty orders at once look for the image once
            until, known = self._known.get((key, name), (0.0, ""))
            if self._clock() >= until:
                known = _chosen(key, name, look)
                self._known[key, name] = self._clock() + REMEMBERED_S, known
            return known


def _chosen(key: str, name: str, look: Callable[[], list[Named]]) -> str:
    try:
        found = look()
    except NotFoundError:
        found = []
    if not found:
        raise RefusedError(f"provider.openstack.{key}: {name!r} is not there, or not for this project")
    if len(found) > 1 and key != "image":
        raise RefusedError(f"provider.openstack.{key}: {len(found)} are named {name!r}; write the id of one")
    return max(found, key=lambda each: (each.created_at, each.id)).id
