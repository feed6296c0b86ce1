"""The driver's errors in HTAS's kinds: what may pass by itself is transient, the rest says what to do.

What the driver raises in which case was tried on driver 3.30 and Cassandra 5.0.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cassandra
from cassandra import protocol
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionException
from cassandra.pool import NoConnectionsAvailable

from htas.adapters.cassandra.settings import CassandraSettings
from htas.ports import HTASError, PermanentError, RefusedError, TransientError

PASSING = (
    cassandra.Unavailable,
    cassandra.Timeout,
    cassandra.OperationTimedOut,
    cassandra.CoordinationFailure,
    protocol.ServerError,
    protocol.OverloadedErrorMessage,
    protocol.IsBootstrappingErrorMessage,
    protocol.TruncateError,
    ConnectionException,
    ConnectionBusy,
    NoConnectionsAvailable,
    OSError,
)
"""A node is down, slow or busy: the same call may succeed later."""
CAS_WRITE_UNKNOWN = 0x1700
"""A lightweight transaction that may or may not be done; the driver has no class for it."""

_MISSING = re.compile(r"keyspace .*does not exist|table .*does not exist|unconfigured table", re.IGNORECASE)
_RIGHT = re.compile(r"no (\w+) permission on <(all keyspaces|all tables in \S+|keyspace \S+|table \S+)>", re.IGNORECASE)
_LONGEST = 300


class NotThereError(RefusedError):
    """The keyspace or a table is not there, or is of another version: a matter of the store, not of what is written."""


class NotDoneError(TransientError):
    """Too few nodes are up: nothing was sent, or it was refused before anything was done."""


@contextmanager
def translating(settings: CassandraSettings, what: str) -> Iterator[None]:
    """Raise the driver's errors as HTAS's; `what` was being done, as in "writing claim c1"."""
    try:
        yield
    except HTASError:
        raise
    except Exception as error:
        raise translated(settings, what, error) from error


def translated(settings: CassandraSettings, what: str, error: Exception) -> HTASError:
    """The error to raise in place of the driver's, naming the place and what to do."""
    told = f"Cassandra at {settings.where}: {what}: {_short(error)}"
    match error:
        case NoHostAvailable():
            return _of_all_hosts(settings, what, error)
        case cassandra.AuthenticationFailed():
            return RefusedError(f"{told}; look at store.cassandra.username and passwordFile")
        case cassandra.Unauthorized():
            return RefusedError(f"{told}; {_grant(settings, str(error))}")
        case cassandra.InvalidRequest() if _MISSING.search(str(error)):
            return NotThereError(f"{told}; make keyspace and tables with: htas store init")
        case cassandra.UnresolvableContactPoints():
            return TransientError(
                f"Cassandra at {settings.where}: {what}: no such host; look at store.cassandra.contactPoints"
            )
        case cassandra.Unavailable():
            return NotDoneError(told)
        case _ if _is_of_tls(error):
            return RefusedError(f"{told}; look at store.cassandra.tls")
        case _ if isinstance(error, PASSING) or getattr(error, "code", None) == CAS_WRITE_UNKNOWN:
            return TransientError(told)
        case _:
            return PermanentError(told)


def _of_all_hosts(settings: CassandraSettings, what: str, error: Any) -> HTASError:
    """The driver tried every node; what says most of their answers is told. None answered: the map is empty."""
    found: dict[Any, Exception] = error.errors if isinstance(error.errors, dict) else {}
    for each in found.values():
        if isinstance(each, cassandra.AuthenticationFailed | cassandra.Unauthorized) or _is_of_tls(each):
            return translated(settings, what, each)
    kind = NotDoneError if all(map(_is_not_done, found.values())) else TransientError
    told = "; ".join(f"{host}: {_short(each)}" for host, each in found.items()) or "no node can be reached"
    return kind(
        f"Cassandra at {settings.where}: {what}: {told}; if it should be there, look at store.cassandra.contactPoints"
        f" and localDatacenter ({settings.local_dc})"
    )


def _is_of_tls(error: Exception) -> bool:
    """The driver wraps ssl's errors in an OSError that only quotes them."""
    return isinstance(error, ssl.SSLError) or (isinstance(error, OSError) and "[SSL" in str(error))


def _is_not_done(error: Exception) -> bool:
    return isinstance(error, cassandra.Unavailable) or "marked down" in str(error)


def _grant(settings: CassandraSettings, message: str) -> str:
    """The statement that gives the missing right."""
    found = _RIGHT.search(message)
    if found is None:
        return "let an administrator grant what is missing"
    right, is_all = found[1].upper(), found[2].lower() == "all keyspaces"
    place = "ALL KEYSPACES" if is_all else f"KEYSPACE {settings.keyspace}"
    hint = f" (or make the keyspace {settings.keyspace} yourself)" if is_all else ""
    return f"let an administrator run: GRANT {right} ON {place} TO {settings.username or 'the role'}{hint}"


def _short(error: Exception) -> str:
    text = " ".join((str(error) or type(error).__name__).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
