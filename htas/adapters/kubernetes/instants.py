"""When a dump was taken: the newest instant that any of its objects names.

Kubelets renew their leases every 10 s and tell of their nodes every 5 minutes, so a dump with leases is dated to
seconds and one with nodes to minutes. The newest pod may be weeks old.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from htas.adapters.kubernetes.errors import UNREADABLE
from htas.adapters.kubernetes.wire import Wire


class _Field(Wire, frozen=True):
    """An entry of managedFields: who wrote to the object when."""

    time: datetime | None = None


class _Metadata(Wire, frozen=True):
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: float | None = None
    managed_fields: list[_Field] | None = None


class _Spec(Wire, frozen=True):
    """Of a Lease."""

    acquire_time: datetime | None = None
    renew_time: datetime | None = None


class _Condition(Wire, frozen=True):
    last_heartbeat_time: datetime | None = None
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    last_update_time: datetime | None = None


class _Span(Wire, frozen=True):
    started_at: datetime | None = None
    finished_at: datetime | None = None


class _State(Wire, frozen=True):
    running: _Span | None = None
    terminated: _Span | None = None


class _Container(Wire, frozen=True):
    state: _State | None = None
    last_state: _State | None = None


class _Status(Wire, frozen=True):
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: list[_Condition] | None = None
    container_statuses: list[_Container] | None = None
    init_container_statuses: list[_Container] | None = None


class _Object(Wire, frozen=True):
    metadata: _Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


class Instant(msgspec.Struct, frozen=True, order=True):
    """Seconds since 1970, and the object that names them."""

    at: float
    of: str


NEVER = Instant(0.0, "")


def newest(raw: bytes | msgspec.Raw) -> float:
    """The newest instant in an object at which something had happened to it; 0: it names none that can be read."""
    try:
        found = msgspec.json.decode(raw, type=_Object)
    except UNREADABLE:
        return 0.0
    return max((each.timestamp() for each in _instants(found) if each is not None and each.tzinfo), default=0.0)


def _instants(found: _Object) -> Iterator[datetime | None]:
    meta, spec, status = found.metadata or _Metadata(), found.spec or _Spec(), found.status or _Status()
    yield meta.creation_timestamp
    yield from (field.time for field in meta.managed_fields or ())
    if meta.deletion_timestamp is not None:  # the end of the grace period: it was asked for before
        yield meta.deletion_timestamp - timedelta(seconds=meta.deletion_grace_period_seconds or 0)
    yield spec.acquire_time
    yield spec.renew_time
    yield status.start_time
    yield status.completion_time
    for condition in status.conditions or ():
        yield condition.last_heartbeat_time
        yield condition.last_probe_time
        yield condition.last_transition_time
        yield condition.last_update_time
    for container in (*(status.container_statuses or ()), *(status.init_container_statuses or ())):
        for state in (container.state, container.last_state):
            for span in (state.running, state.terminated) if state is not None else ():
                if span is not None:
                    yield span.started_at
                    yield span.finished_at
