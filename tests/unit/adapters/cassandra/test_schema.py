"""The schema that is shipped for administrators is the one that `htas store init` makes."""

from __future__ import annotations

from pathlib import Path

from htas.adapters.cassandra.schema import schema_text

SHIPPED = Path(__file__).parents[4] / "deploy" / "cassandra" / "schema.cql"


def test_the_shipped_schema_is_the_one_that_is_made() -> None:
    told, _, statements = SHIPPED.read_text().partition("\n\n")
    assert all(line.startswith("--") for line in told.splitlines())
    assert statements == schema_text("htas", {"datacenter1": 3})
