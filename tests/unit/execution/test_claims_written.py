"""Several claims written at once, while another daemon writes some of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from htas.adapters.sqlite.store import SqliteStore
from htas.adapters.write_behind.store import WriteBehindStore
from htas.execution.journal import put_singly, put_together
from htas.model.claims import ClaimState
from htas.model.outcomes import OutcomeStatus
from htas.ports import ConflictError, StorePort
from tests.contracts.test_store_port import claim
from tests.far_store import PATIENT, Line, far_store


@pytest.fixture(params=["all or nothing", "one by one"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorePort]:
    """A file writes all or nothing; one in front of a remote store writes some before it meets another's."""
    if request.param == "all or nothing":
        with_file = SqliteStore(":memory:")
        yield with_file
        with_file.close()
        return
    far = far_store(tmp_path)
    behind = WriteBehindStore(str(tmp_path / "mine.db"), Line(far).opened, timing=PATIENT)
    behind.catch_up(10.0)
    yield behind
    behind.close()
    far.close()


def test_new_claims_of_which_another_writer_has_one_are_ours_but_for_that_one(store: StorePort) -> None:
    store.put_claim(msgspec.structs.replace(claim("b"), flavour="another"))
    wanted = [claim("a"), claim("b"), claim("c")]
    together = put_together(store, wanted)
    singly, outcomes = put_singly(store, [each for each in wanted if each.id not in together])
    ours = {each.id: each for each in (*together.values(), *singly)}
    assert sorted(ours) == ["a", "c"]
    assert [(told.subject, told.status) for told in outcomes] == [("b", OutcomeStatus.DROPPED)]
    assert {each.id: each for each in store.claims()}.items() >= ours.items()


def test_what_was_written_can_be_written_on(store: StorePort) -> None:
    first, second = store.put_claims([claim("a"), claim("b")])
    theirs = store.put_claim(msgspec.structs.replace(second, state=ClaimState.FAILED))
    active = [msgspec.structs.replace(each, state=ClaimState.REQUESTED) for each in (first, second)]
    with pytest.raises(ConflictError):
        store.put_claim(active[1])
    for each in put_together(store, active).values():
        store.put_claim(each)
    assert theirs in store.claims()
