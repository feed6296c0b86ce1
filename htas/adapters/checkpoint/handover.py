"""What comes before a ReplicaSet's pod gives its place away, and who takes the place of one that ends by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from htas.adapters.checkpoint.documents import Json, is_ready, stands_for, starts_afresh, twin_name_of
from htas.adapters.checkpoint.failures import StepFailedError
from htas.adapters.checkpoint.objects import Objects
from htas.adapters.checkpoint.owners import HASH, Owner, Owners
from htas.adapters.checkpoint.present import Present
from htas.adapters.checkpoint.removal import poll_s
from htas.adapters.checkpoint.switching import Switching
from htas.adapters.twins import is_ending, is_switched, origin_of
from htas.model.migrations import Failure, MigrationRecord, MigrationState

SEEN_S = 3.0
"""For requests to find their way to a twin that has its labels: the EndpointSlice controller writes within a fraction
of a second, kube-proxy looks once a second (minSyncPeriod), and an ingress reloads after about another."""


class Handover:
    """Each part may be repeated: what was done already is found on the twin."""

    def __init__(
        self,
        objects: Objects,
        present: Present,
        switching: Switching,
        closing: Event,
        reached: Callable[[str], None],
    ) -> None:
        self._objects = objects
        self._owners = Owners(objects)
        self._present = present
        self._switching = switching
        self._closing = closing
        self._reached = reached

    def min_ready_s(self, record: MigrationRecord, source: Json) -> float:
        """How long a fresh copy has to be Ready before its owner takes it for available."""
        owner = self._owner_of(source) if starts_afresh(record) else None
        return owner.min_ready_s if owner is not None else 0.0

    def prepare(self, record: MigrationRecord, within_s: float) -> bool:
        """Wait until the source is the one that its ReplicaSet will delete, and until Services send to the twin.

        False: this daemon ends meanwhile. Raises StepFailedError where another of its pods does not become Ready.
        """
        source, twin = self._present.source_or_none(record), self._present.twin(record)
        if source is None or is_ending(source) or twin is None or is_switched(twin):
            return True
        owner = self._owner_of(source)
        if owner is None:
            return True
        until = time.monotonic() + within_s
        if not self._all_are_ready(record, owner, until):
            return False
        if HASH not in owner.selector or not self._switching.introduce(record):
            return True
        self._reached("move.introduced")
        return not self._closing.wait(SEEN_S) and self._all_are_ready(record, owner, until)

    def inherited(self, record: MigrationRecord, at: float) -> MigrationRecord | None:
        """The move as switched, where its source ends by itself and a fresh copy that is Ready has taken its place.

        None: the source goes on, there is no such copy, or its owner has as many Ready pods as it wants.
        """
        twin = self._heir(record) if starts_afresh(record) else None
        given = origin_of(twin) if twin is not None else None
        if twin is None or given is None:
            return None
        namespace, _, name = record.pod.partition("/")
        owner = self._owners.of(namespace, given.owners)
        if owner is None or not self._owners.wants_another(owner, (name, twin_name_of(record))):
            return None
        facts = {"twin": twin_name_of(record), "reason": "", "detail": ""}
        if record.state is MigrationState.PREPARED:
            record = record.advanced(MigrationState.RESTORED, at)
        switched = record.advanced(MigrationState.SWITCHED, at, **facts)
        try:
            self._switching.adopt(twin, given, switched)
        except StepFailedError:  # it has gone just now
            return None
        return switched

    def _heir(self, record: MigrationRecord) -> Json | None:
        source = self._present.source_or_none(record)
        is_lost = self._objects.node(record.source) is None
        if source is not None and not is_ending(source) and not is_lost:
            return None
        twin, node = self._present.twin(record), self._objects.node(record.target)
        if twin is None or is_ending(twin) or not is_ready(twin) or not stands_for(twin, record):
            return None
        return twin if node is not None and is_ready(node) else None

    def _owner_of(self, source: Json) -> Owner | None:
        meta = source["metadata"]
        return self._owners.of(meta["namespace"], meta.get("ownerReferences") or ())

    def _all_are_ready(self, record: MigrationRecord, owner: Owner, until: float) -> bool:
        """A ReplicaSet deletes a pod that is not Ready before one of the lowest cost, and the source would stay."""
        began = time.monotonic()
        while name := self._owners.unready(owner, (record.pod.partition("/")[2], twin_name_of(record))):
            if time.monotonic() > until:
                what = f"pod {name} of the same ReplicaSet is not Ready, and would be deleted instead of {record.pod}"
                raise StepFailedError(Failure.DEADLINE, what, is_final=True)
            if self._closing.wait(poll_s(began)):
                return False
        return True
