"""The lease as it is written and read, and what each refusal becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.lease import KubernetesLease
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.ports import ConflictError, HTASError, LeaseRecord, NotFoundError, PermanentError, TransientError
from tests.unit.adapters.kubernetes.api_server import Answer, FakeApiServer, Request, refusal

Json = dict[str, Any]
LEASES = "/apis/coordination.k8s.io/v1/namespaces/space/leases"
RECORD = LeaseRecord("one", 15.0, 1767225600.0, 1767225605.5, 3, "7")
SPEC = {
    "holderIdentity": "one",
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-01-01T00:00:00.000000Z",
    "renewTime": "2026-01-01T00:00:05.500000Z",
    "leaseTransitions": 3,
}


@contextmanager
def leasing(answer: Callable[[Request], Answer | None]) -> Iterator[tuple[KubernetesLease, FakeApiServer]]:
    with FakeApiServer(answer) as server:
        api = ApiServer(server.access(), RateLimit(1e9, 10**9), pause=lambda _: None)
        yield KubernetesLease(api, "space", "htas-x"), server


def stored(spec: Json | None, version: str = "7") -> Answer:
    return Answer(body={"metadata": {"name": "htas-x", "resourceVersion": version}, "spec": spec or {}})


class Stored:
    """A server that keeps one Lease and refuses a write over another version than its own, as the real one does."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.writes = 0

    def __call__(self, request: Request) -> Answer:
        if request.method == "POST":
            return refusal(409, "AlreadyExists") if self.lease is not None else self._written(request.body, 201)
        if self.lease is None:
            return refusal(404)
        if request.method == "GET":
            return Answer(body=self.lease)
        is_stale = request.body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]
        return refusal(409, "Conflict") if is_stale else self._written(request.body, 200)

    def _written(self, body: Json, status: int) -> Answer:
        self.writes += 1
        self.lease = body | {"metadata": body["metadata"] | {"resourceVersion": str(self.writes)}}
        return Answer(status, self.lease)


def test_a_lease_is_written_over_the_version_it_was_read_with() -> None:
    with leasing(lambda _: stored(SPEC)) as (lease, server):
        record = lease.read()
        assert record == RECORD
        lease.write(record)
        get, put = server.requests
    assert (get.method, get.path) == ("GET", f"{LEASES}/htas-x")
    assert (put.method, put.path) == ("PUT", f"{LEASES}/htas-x")
    assert put.body["metadata"] == {"name": "htas-x", "namespace": "space", "resourceVersion": "7"}
    assert put.body["spec"] == SPEC


def test_the_first_lease_is_made() -> None:
    with leasing(lambda request: refusal(404) if request.method == "GET" else stored({}, "1")) as (lease, server):
        assert lease.read() is None
        assert lease.write(LeaseRecord("one", 15.0, 1.0, 1.0)) == LeaseRecord("one", 15.0, 1.0, 1.0, version="1")
        _, post = server.requests
    assert (post.method, post.path) == ("POST", LEASES)
    assert (post.body["kind"], post.body["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")
    assert "resourceVersion" not in post.body["metadata"]


def test_what_is_written_is_read_back_and_may_be_written_over_again() -> None:
    with leasing(Stored()) as (lease, _):
        first = lease.write(msgspec.structs.replace(RECORD, version=""))
        assert lease.read() == first == msgspec.structs.replace(RECORD, version="1")
        second = lease.write(msgspec.structs.replace(first, renewed_at=first.renewed_at + 2))
        assert lease.read() == second
        assert second.version == "2"


def test_the_second_of_two_writers_fails_and_leaves_the_first_ones_record() -> None:
    with leasing(Stored()) as (lease, _):
        first = lease.write(msgspec.structs.replace(RECORD, version=""))
        with pytest.raises(ConflictError):
            lease.write(LeaseRecord("other", 15.0, 0.0, 0.0))
        renewed = lease.write(first)
        with pytest.raises(ConflictError):
            lease.write(msgspec.structs.replace(first, holder="other"))
        assert lease.read() == renewed


@pytest.mark.parametrize(
    ("spec", "record"),
    [
        pytest.param({}, LeaseRecord("", 0.0, 0.0, 0.0, 0, "7"), id="nothing in it"),
        pytest.param(dict.fromkeys(SPEC), LeaseRecord("", 0.0, 0.0, 0.0, 0, "7"), id="all null"),
        pytest.param(SPEC | {"holderIdentity": ""}, msgspec.structs.replace(RECORD, holder=""), id="given up"),
        pytest.param(SPEC | {"strategy": "OldestEmulationVersion"}, RECORD, id="fields of a newer version"),
    ],
)
def test_leases_that_others_wrote_can_be_read(spec: Json, record: LeaseRecord) -> None:
    with leasing(lambda _: stored(spec)) as (lease, _):
        assert lease.read() == record


def test_a_lease_that_is_given_up_is_kept_for_a_second_at_least() -> None:
    """The API server refuses a duration of none."""
    with leasing(lambda _: stored({})) as (lease, server):
        lease.write(LeaseRecord("", 0.2, 0.0, 0.0, 1, "7"))
        assert server.requests[0].body["spec"]["leaseDurationSeconds"] == 1
        assert server.requests[0].body["spec"]["holderIdentity"] == ""


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(refusal(403), PermanentError, id="forbidden"),
        pytest.param(refusal(404), NotFoundError, id="deleted meanwhile"),
        pytest.param(refusal(409), ConflictError, id="another was first"),
        pytest.param(refusal(500), TransientError, id="in trouble"),
        pytest.param(None, TransientError, id="no answer: it may have been written"),
    ],
)
def test_a_write_fails_as_what_it_is_and_is_not_repeated(answer: Answer | None, kind: type[HTASError]) -> None:
    with leasing(lambda _: answer) as (lease, server):
        with pytest.raises(HTASError) as caught:
            lease.write(RECORD)
        assert type(caught.value) is kind
        assert len(server.requests) == 1


def test_names_are_no_paths() -> None:
    with FakeApiServer(lambda _: refusal(404)) as server:
        api = ApiServer(server.access(), RateLimit(1e9, 10**9))
        assert KubernetesLease(api, "a/b", "../c").read() is None
        assert server.requests[0].path == "/apis/coordination.k8s.io/v1/namespaces/a%2Fb/leases/..%2Fc"


def test_who_asks_the_holder_to_make_way_is_an_annotation_that_goes_with_it() -> None:
    with leasing(Stored()) as (lease, server):
        record = lease.write(LeaseRecord("one", 15.0, 1.0, 1.0))
        asked = lease.write(msgspec.structs.replace(record, successor="command"))
        found = lease.read()
        assert found == asked
        assert found.successor == "command"
        lease.write(msgspec.structs.replace(found, holder="command", successor=""))
        again = lease.read()
    assert again is not None
    assert (again.holder, again.successor) == ("command", "")
    assert server.requests[1].body["metadata"]["annotations"] == {"htas.io/make-way-for": "command"}


def test_a_lease_is_removed_as_it_was_read_and_gone_already_is_done() -> None:
    answers = iter([Answer(body={}), refusal(404), refusal(409, "Conflict")])
    with leasing(lambda _: next(answers)) as (lease, server):
        lease.delete(RECORD)
        lease.delete(RECORD)
        with pytest.raises(ConflictError):
            lease.delete(RECORD)
    assert (server.requests[0].method, server.requests[0].path) == ("DELETE", f"{LEASES}/htas-x")
    assert server.requests[0].body == {"preconditions": {"resourceVersion": "7"}}
