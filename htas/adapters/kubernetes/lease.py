"""The lock of leader election on a coordination.k8s.io/v1 Lease, by optimistic writes: who comes second gets a 409."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from htas.adapters.kubernetes.api import ApiServer, part
from htas.ports import LeaseRecord, NotFoundError

SUCCESSOR = "htas.io/make-way-for"
"""The annotation by which a command asks the leader for the lease."""
_MICROSECONDS = "%Y-%m-%dT%H:%M:%S.%fZ"


class _Meta(msgspec.Struct):
    name: str
    resourceVersion: str = ""  # noqa: N815 # the API's own name
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel", frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = _Spec()


class KubernetesLease:
    """Implements LeasePort."""

    def __init__(self, api: ApiServer, namespace: str, name: str) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{part(namespace)}/leases"

    def read(self) -> LeaseRecord | None:
        try:
            lease = msgspec.json.decode(self._api.get(f"{self._path}/{part(self._name)}"), type=_Lease)
        except NotFoundError:
            return None
        spec = lease.spec
        return LeaseRecord(
            holder=spec.holder_identity or "",
            duration_s=float(spec.lease_duration_seconds or 0),
            acquired_at=_instant(spec.acquire_time),
            renewed_at=_instant(spec.renew_time),
            transitions=spec.lease_transitions or 0,
            version=lease.metadata.resourceVersion,
            successor=lease.metadata.annotations.get(SUCCESSOR, ""),
        )

    def write(self, record: LeaseRecord) -> LeaseRecord:
        marks = {"annotations": {SUCCESSOR: record.successor}} if record.successor else {}
        body: dict[str, Any] = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace, **marks},
            "spec": {
                "holderIdentity": record.holder,
                "leaseDurationSeconds": max(1, round(record.duration_s)),
                "acquireTime": _text(record.acquired_at),
                "renewTime": _text(record.renewed_at),
                "leaseTransitions": record.transitions,
            },
        }
        if record.version:
            body["metadata"] |= {"resourceVersion": record.version}
            answer = self._api.put(f"{self._path}/{part(self._name)}", body)
        else:
            answer = self._api.post(self._path, body)
        written = msgspec.json.decode(answer, type=_Lease)
        return msgspec.structs.replace(record, version=written.metadata.resourceVersion)

    def delete(self, record: LeaseRecord) -> None:
        try:
            self._api.delete(f"{self._path}/{part(self._name)}", {"preconditions": {"resourceVersion": record.version}})
        except NotFoundError:
            return


def _instant(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _text(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime(_MICROSECONDS)
