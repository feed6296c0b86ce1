"""The store's contract, kept by a real Cassandra: the very tests that SQLite passes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from htas.adapters.cassandra.settings import CassandraSettings
from htas.adapters.cassandra.store import CassandraStore
from htas.ports import StorePort
from tests.contracts.test_store_port import *  # noqa: F403 # the contract's own tests
from tests.contracts.test_store_port import Opening

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def opening(keyspace: CassandraSettings) -> Opening:
    return partial(CassandraStore, keyspace)


@pytest.fixture
def store(opening: Opening) -> Iterator[StorePort]:
    made = opening()
    yield made
    made.close()
