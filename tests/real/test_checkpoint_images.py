"""What becomes of a checkpoint's image on real nodes, and of a restored container that ends when it is gone."""

from __future__ import annotations

import pytest

from htas.model.migrations import MigrationState, is_checkpoint
from tests.real.counting import bare_pod, container, goes_on, last, pod
from tests.real.harness import eventually
from tests.real.moving import World, over
from tools.testenv.real_nodes import IMAGE

pytestmark = pytest.mark.timeout(240)
KILL = "for p in $(grep -l 'urandom [|] base64' /proc/[0-9]*/cmdline | cut -d/ -f3); do kill -9 $p; done"


def test_a_restored_container_that_dies_begins_anew_from_its_own_image(world: World) -> None:
    """Also where the pod had been moved twice: its second image took the place of a checkpoint's."""
    world.counting(bare_pod("lone", "real-a", container(1)))
    with world.engine() as engine:
        engine.start(world.model_of("lone"), "real-b")
        (first,) = over(engine)
        assert first.state is MigrationState.DONE, first
        engine.start(world.model_of("lone"), "real-a")
        (_, second) = over(engine, count=2)
        assert second.state is MigrationState.DONE, second
        assert world.is_clean()
        name = second.twin
        before = last(world.cluster, name)
        assert is_checkpoint(pod(world.cluster, name)["spec"]["containers"][0]["image"])
        world.nodes.on("real-a", KILL)
        eventually(lambda: last(world.cluster, name).process != before.process, 60, "it counts anew")
        assert goes_on(world.cluster, name)
    found = pod(world.cluster, name)
    assert found["spec"]["containers"][0]["image"] == IMAGE
    assert world.is_clean()


def test_whatever_is_on_a_node_can_be_had_by_the_beginning_of_its_id(world: World) -> None:
    """What containerd does for anybody, and why the chart's admission policy refuses images that are named by an id."""
    names = world.nodes.on("real-a", "ctr -n k8s.io images ls -q").split()
    some = next(name for name in names if name.startswith("sha256:"))
    short = bare_pod(
        "short", "real-a", {**container(), "image": some[: len("sha256:") + 8], "command": ["sleep", "99"]}
    )
    world.cluster.create(short)

    def image_id() -> str:
        statuses = pod(world.cluster, "short").get("status", {}).get("containerStatuses") or [{}]
        return str(statuses[0].get("imageID", ""))

    eventually(lambda: image_id() == some, 30, "the image is had")
