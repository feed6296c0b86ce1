"""What a daemon asks Cassandra for, and that this is all it needs: one that starts on an empty disk goes on as before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from htas.adapters.cassandra.settings import CassandraSettings
from htas.adapters.cassandra.store import CassandraStore
from htas.adapters.write_behind.store import WriteBehindStore
from htas.model.pods import RunLengthSource
from tests.builders import batch_group, make_policy
from tests.contracts.test_store_port import opened
from tests.far_store import Line
from tests.real.conftest import Tell
from tests.stories.play import Story, job
from tests.stories.test_learning import nights

pytestmark = pytest.mark.timeout(180)

TAKEN_OVER = {"claims", "claims_made_since", "disruptions", "learned", "bills"}
"""Once, when it begins to lead: the journal, from which it goes on."""
REMEMBERED = {"cycles", "runs"}
"""Once, in its first cycle: how far the last daemon came, and how long work runs."""


@contextmanager
def daemon_on(disk: Path, story: Story, line: Line) -> Iterator[WriteBehindStore]:
    """A daemon with its buffer on a disk, which leads; at the end all that it wrote is in the remote store."""
    store = WriteBehindStore(str(disk), line.opened)
    story.store = store  # type: ignore[assignment] # the same port
    assert store.catch_up(30.0)
    story.crash()
    try:
        yield store
        assert store.flush(60.0)
    finally:
        store.close()


def reads(line: Line) -> set[str]:
    return {name for name in line.names() if not name.startswith(("put_", "add_", "delete_"))}


def test_a_daemon_on_an_empty_disk_plans_from_cassandra_alone(
    keyspace: CassandraSettings, tmp_path: Path, tell: Tell
) -> None:
    """Five nights taught how long a Job runs; while the sixth runs beside another, the daemon's disk is lost."""
    story = Story(make_policy([batch_group()]), *nights(7), job("beside", 4480.0, 1500))
    with opened(lambda: CassandraStore(keyspace)) as remote:
        with daemon_on(tmp_path / "lost.db", story, Line(remote)) as first:
            story.play(4600)
            claims = list(first.claims())
        before = len(story.seen)
        line = Line(remote)
        with daemon_on(tmp_path / "empty.db", story, line) as second:
            assert list(second.claims()) == claims
            story.play(4630)
            at_first = reads(line)
            line.calls.clear()
            story.play(5350)
            assert not reads(line), "no cycle waits for the remote store"
        first_cycle = story.seen[before]
    pods = {pod.name: pod.run_length for pod in first_cycle.snapshot.cluster.pods}
    assert {length.source for name, length in pods.items() if length and name.startswith("train")} == {
        RunLengthSource.LEARNED
    }
    assert first_cycle.snapshot.claims == tuple(claims)
    assert story.verbs["adopt", "done"] == 0, "it knows its machines by the journal"
    assert first_cycle.plan.is_empty, "nothing is bought twice, nor given back"
    assert at_first == TAKEN_OVER | REMEMBERED
    tell(f"a daemon on an empty disk asked Cassandra for {', '.join(sorted(at_first))}")
