"""The schema that is shipped for administrators is the one that `htas store init` makes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from htas.adapters.cassandra.schema import init
from htas.adapters.cassandra.session import Session
from htas.adapters.cassandra.settings import CassandraSettings

SHIPPED = Path(__file__).parents[4] / "deploy" / "cassandra" / "schema.cql"


class EmptyRing:
    """A session to a ring that has nothing yet: it notes what is defined, and the version that is stamped last."""

    def __init__(self) -> None:
        self.settings = CassandraSettings((("127.0.0.1", 9042),), "datacenter1", "htas")
        self.defined: list[str] = []
        self.version = 0

    def rows_of_any_keyspace(self, what: str, query: str, values: Sequence[Any]) -> list[Any]:
        return []

    def define(self, what: str, statement: str, within_s: float) -> None:
        self.defined.append(f"{statement};\n")

    def write(self, what: str, query: str, values: Sequence[Any]) -> None:
        self.version = values[0]


def test_the_shipped_schema_is_the_one_that_is_made() -> None:
    ring = EmptyRing()
    assert init(cast(Session, ring), {"datacenter1": 3})
    told, _, statements = SHIPPED.read_text().partition("\n\n")
    assert all(line.startswith("--") for line in told.splitlines())
    stamp = (
        f"INSERT INTO htas.schema_version (name, version, since) VALUES ('htas', {ring.version}, toTimestamp(now()));"
    )
    assert statements == "".join((*ring.defined, f"{stamp}\n"))
