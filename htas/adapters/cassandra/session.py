"""One session with Cassandra: connected safely, statements prepared when first used. Does not know what is stored."""

from __future__ import annotations

import logging
import ssl
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.auth import AuthProvider, PlainTextAuthenticator
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import (
    ConstantReconnectionPolicy,
    DCAwareRoundRobinPolicy,
    FallthroughRetryPolicy,
    TokenAwarePolicy,
)
from cassandra.query import BatchStatement, BatchType, tuple_factory

from htas.adapters.cassandra.errors import translating
from htas.adapters.cassandra.settings import CassandraSettings, Tls
from htas.adapters.cassandra.tables import placed
from htas.files import read_file
from htas.ports import RefusedError

logging.getLogger("cassandra").setLevel(logging.CRITICAL)  # what it tells, with tracebacks, is raised here as well

PROTOCOL = 5
"""Cassandra 4.0 and newer; stated, so that the driver need not try."""
IN_FLIGHT = 32
"""Requests at one time of a call that makes many: more do not go faster on three nodes of two cores."""
HEARTBEAT_S, HEARTBEAT_TIMEOUT_S = 10, 5
"""A server that hangs is noticed after 15 s; the driver's own 30 s each left it in use for a minute."""
RECONNECT_S = 1.0
"""The driver's own policy waits up to ten minutes: after an outage of 32 s it came back 29 s after the server."""

Row = tuple[Any, ...]
Write = tuple[str, Sequence[Any]]
"""A statement and its values."""


class Session:
    """Safe from several threads. Raises HTAS's errors alone; connecting raises TransientError or RefusedError."""

    def __init__(self, settings: CassandraSettings) -> None:
        self.settings = settings
        with translating(settings, "connecting"):
            self._cluster = _cluster(settings)
            try:
                self._session = self._cluster.connect()
            except BaseException:
                self._cluster.shutdown()
                raise
        self._prepared: dict[str, Any] = {}
        self._lock = Lock()

    def rows(self, what: str, query: str, values: Sequence[Any], *, serial: bool = False) -> list[Row]:
        """The rows of a query; `serial`: after every lightweight transaction of that partition, finished or not."""
        return next(self.rows_of(what, query, [values], serial=serial))

    def rows_of(
        self, what: str, query: str, each: Iterable[Sequence[Any]], *, serial: bool = False
    ) -> Iterator[list[Row]]:
        """The rows of one query with several values each, asked at the same time, in that order."""
        with translating(self.settings, what):
            prepared = self._statement(query, is_idempotent=True)
            for result in self._results(_bound(prepared, values, serial) for values in each):
                yield list(result)

    def write(self, what: str, query: str, values: Sequence[Any]) -> None:
        """A write that may be done twice without harm."""
        with translating(self.settings, what):
            self._session.execute(self._statement(query, is_idempotent=True).bind(values))

    def write_together(self, what: str, writes: Sequence[Write]) -> None:
        """Writes of several partitions, all of which are done in the end, or none (a logged batch)."""
        with translating(self.settings, what):
            self._session.execute(self._batch(writes, BatchType.LOGGED))

    def write_batches(self, what: str, batches: Iterable[Sequence[Write]]) -> None:
        """Writes at the same time; those of a batch are of one partition, and are one write to the server."""
        with translating(self.settings, what):
            for _ in self._results(self._batch(batch) for batch in batches):
                pass

    def compare_and_set(self, what: str, query: str, values: Sequence[Any]) -> bool:
        """A lightweight transaction: whether it was applied. Tried once, at one node, so that errors tell the outcome.

        Raises NotDoneError where it was not carried out for certain; after another TransientError it may have been.
        """
        with translating(self.settings, what):
            result = self._session.execute(self._statement(query, is_idempotent=False).bind(values))
            return bool(result.was_applied)

    def rows_of_any_keyspace(self, what: str, query: str, values: Sequence[Any]) -> list[Row]:
        """The rows of a query that names its keyspace, with %s for values; ours need not be there."""
        with translating(self.settings, what):
            return list(self._session.execute(query, values))

    def define(self, what: str, statement: str, timeout_s: float) -> None:
        """A statement that defines something: a keyspace, a table."""
        with translating(self.settings, what):
            self._session.execute(statement, timeout=timeout_s)

    def close(self) -> None:
        self._cluster.shutdown()

    # Inside.

    def _results(self, statements: Iterable[Any]) -> Iterator[Any]:
        """In the statements' order. Each is made while earlier ones are under way: two cores then both have work."""
        waiting: deque[Any] = deque()
        for statement in statements:
            if len(waiting) == IN_FLIGHT:
                yield waiting.popleft().result()
            waiting.append(self._session.execute_async(statement))
        while waiting:
            yield waiting.popleft().result()

    def _statement(self, query: str, *, is_idempotent: bool) -> Any:
        with self._lock:
            if query not in self._prepared:
                prepared = self._session.prepare(placed(query, self.settings.keyspace))
                prepared.is_idempotent = is_idempotent
                if not is_idempotent:
                    prepared.retry_policy = FallthroughRetryPolicy()
                self._prepared[query] = prepared
            return self._prepared[query]

    def _batch(self, writes: Sequence[Write], kind: Any = BatchType.UNLOGGED) -> Any:
        bound = [self._statement(query, is_idempotent=True).bind(values) for query, values in writes]
        if len(bound) == 1:
            return bound[0]
        batch = BatchStatement(kind)
        batch.is_idempotent = True
        for each in bound:
            batch.add(each)
        return batch


def _bound(prepared: Any, values: Sequence[Any], serial: bool) -> Any:
    bound = prepared.bind(values)
    if serial:
        bound.consistency_level = ConsistencyLevel.LOCAL_SERIAL
    return bound


def _cluster(settings: CassandraSettings) -> Any:
    nodes = DCAwareRoundRobinPolicy(local_dc=settings.local_dc)
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(nodes, shuffle_replicas=True),
        consistency_level=ConsistencyLevel.name_to_value[settings.consistency],
        serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
        request_timeout=settings.timeout_s,
        row_factory=tuple_factory,
    )
    return Cluster(
        contact_points=list(settings.contact_points),
        protocol_version=PROTOCOL,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(RECONNECT_S, max_attempts=None),
        auth_provider=_credentials(settings),
        ssl_context=_ssl_context(settings.tls) if settings.tls is not None else None,
        idle_heartbeat_interval=HEARTBEAT_S,
        idle_heartbeat_timeout=HEARTBEAT_TIMEOUT_S,
        connect_timeout=min(5.0, settings.timeout_s),
        control_connection_timeout=min(5.0, settings.timeout_s),
        monitor_reporting_enabled=False,
        application_name="htas",
    )


class FilePassword(AuthProvider):  # type: ignore[misc] # the driver has no types
    """Name and password for each new connection. The password is read each time: it may be renewed while we run."""

    def __init__(self, username: str, file: Path) -> None:
        self._username = username
        self._file = file

    def new_authenticator(self, host: Any) -> Any:
        """Raises RefusedError where the file cannot be read."""
        try:
            password = read_file(self._file).decode().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise RefusedError(f"store.cassandra.passwordFile: {self._file}: cannot be read: {error}") from None
        return PlainTextAuthenticator(self._username, password)


def _credentials(settings: CassandraSettings) -> Any:
    """None where the servers ask for none."""
    if settings.username is None:
        return None
    if settings.password_file is None:
        raise RefusedError("store.cassandra.passwordFile: missing; a username needs a password")
    provider = FilePassword(settings.username, settings.password_file)
    provider.new_authenticator(None)  # what is wrong with the file is told now, not as a node that cannot be reached
    return provider


def _ssl_context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=str(tls.ca_file))
    except (OSError, ssl.SSLError) as error:
        raise RefusedError(f"store.cassandra.tls.caFile: {tls.ca_file}: cannot be used: {error}") from None
    context.check_hostname = tls.checks_hostname
    if tls.cert_file is not None:
        try:
            context.load_cert_chain(tls.cert_file, tls.key_file)
        except (OSError, ssl.SSLError) as error:
            raise RefusedError(f"store.cassandra.tls.certFile, keyFile: cannot be used: {error}") from None
    return context
