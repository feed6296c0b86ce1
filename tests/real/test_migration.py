"""Running pods move between two real kubelets with CRIU, and lose nothing."""

from __future__ import annotations

import pytest

from htas.model.migrations import MigrationState
from tests.real.conftest import Tell
from tests.real.counting import (
    bare_pod,
    container,
    counts,
    goes_on,
    last,
    longest_pause,
    pod,
)
from tests.real.harness import Json, eventually
from tests.real.moving import World, over

pytestmark = pytest.mark.timeout(240)


def moved(world: World, app: str, tell: Tell | None = None, what: str = "") -> Json:
    """Move the pod of an app from real-a to real-b; returns the pod that has its place."""
    source = world.model_of(app)
    with world.engine() as engine:
        engine.start(source, "real-b")
        (record,) = over(engine)
        assert record.state is MigrationState.DONE, record
        if tell is not None:
            took = [
                record.took(before, after) or 0.0
                for before, after in (
                    (MigrationState.PREPARED, MigrationState.CHECKPOINTED),
                    (MigrationState.CHECKPOINTED, MigrationState.TRANSFERRED),
                    (MigrationState.TRANSFERRED, MigrationState.RESTORED),
                    (MigrationState.PREPARED, MigrationState.DONE),
                )
            ]
            dump, copy, restore, total = took
            size = record.archive_bytes / 1e6
            tell(
                f"{what}: {size:.1f} MB; dump {dump:.2f} s, copy {copy:.2f} s, restore {restore:.2f} s, total {total:.2f} s"
            )
        eventually(lambda: world.is_clean(but_images_on="real-b"), 10, "nothing is left on the way")
    assert pod(world.cluster, source.name).get("metadata", {}).get("uid") != source.uid
    return pod(world.cluster, record.twin)


@pytest.mark.parametrize("megabytes", [1, 100, 500])
def test_a_bare_pods_count_goes_on(megabytes: int, world: World, tell: Tell) -> None:
    world.counting(bare_pod("lone", "real-a", container(megabytes)))
    before = last(world.cluster, "lone")
    twin = moved(world, "lone", tell, f"{megabytes} MB of memory")
    name = twin["metadata"]["name"]
    assert twin["spec"]["nodeName"] == "real-b"
    assert twin["metadata"]["labels"]["app"] == "lone"
    assert goes_on(world.cluster, name)
    told = counts(world.cluster, name)
    assert {each.process for each in told} == {before.process}, "the same process, not a new one"
    assert told[-1].number > before.number, "not from zero"
    tell(f"{megabytes} MB: longest pause in the count {longest_pause(told):.2f} s")
