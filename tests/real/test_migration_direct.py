"""Archives straight from node to node: what the daemon carries of them, and what is left where they cannot go."""

from __future__ import annotations

from pathlib import Path

import pytest

from htas.model.migrations import Failure, MigrationRecord, MigrationState
from tests.real.conftest import Tell
from tests.real.counting import bare_pod, container, goes_on, job, last, pods_of
from tests.real.harness import Htas, eventually
from tests.real.moving import World, over
from tests.real.owned_nodes import busy, cleaning, expected_to_run_on, own
from tests.real.test_migration_kill import is_settled
from tests.real.wire import wire

pytestmark = pytest.mark.timeout(360)  # 200 MB, on a machine that others use

AT_ONCE = 4
"""With ten at once on two busy cores runc cannot freeze some of their cgroups within its time, at every attempt."""
PER_MOVE = 300_000
"""What directing an attempt may take of the wire: six log-ins or so, scripts and an image's head."""


@pytest.mark.parametrize(
    ("count", "megabytes"),
    [pytest.param(count, megabytes, id=f"{count} of {megabytes} MB") for count, megabytes in ((1, 200), (10, 30))],
)
def test_what_the_daemon_carries_of_archives(count: int, megabytes: int, world: World, tell: Tell) -> None:
    apps = [f"lone-{number}" for number in range(count)]
    world.counting(*(bare_pod(app, "real-a", container(megabytes)) for app in apps))
    before = {app: last(world.cluster, app) for app in apps}
    with wire(world.nodes) as counted, world.engine() as engine:
        for first in range(0, count, AT_ONCE):
            for app in apps[first : first + AT_ONCE]:
                engine.start(world.model_of(app), "real-b")
            records = over(engine, count=min(first + AT_ONCE, count))
        assert {each.state for each in records} == {MigrationState.DONE}, records
        carried = counted.bytes()
        eventually(world.is_clean, 10, "nothing is left on the way, nor where it runs")
    size = sum(each.archive_bytes for each in records)
    told(tell, f"{count} of {megabytes} MB", records, size, carried)
    assert 0 < carried < sum(each.attempt for each in records) * PER_MOVE
    for record in records:
        process = before[record.pod.partition("/")[2]].process
        assert last(world.cluster, record.twin).process == process, "the same process, not a new one"


def told(tell: Tell, what: str, records: list[MigrationRecord], size: int, carried: int) -> None:
    copies = sorted(each.took(MigrationState.CHECKPOINTED, MigrationState.TRANSFERRED) or 0.0 for each in records)
    began = min(each.reached[MigrationState.PREPARED] for each in records)
    ended = max(each.reached[MigrationState.DONE] for each in records)
    spans = f"copies {copies[0]:.2f} to {copies[-1]:.2f} s, all in {ended - began:.2f} s"
    tell(f"{what}: archives {size / 1e6:.1f} MB; {spans}; on the daemon's wire {carried / 1e6:.3f} MB")


def test_where_the_source_cannot_reach_the_target_the_record_says_why(world: World) -> None:
    world.counting(bare_pod("lone", "real-a", container(1)))
    world.nodes.on("real-a", f"ip route add unreachable {world.nodes.address('real-b')}")
    try:
        with world.engine() as engine:
            engine.start(world.model_of("lone"), "real-b")
            (record,) = over(engine)
            assert (record.state, record.reason) == (MigrationState.ROLLED_BACK, Failure.TRANSFER_FAILED), record
            assert "No route to host" in record.detail
            eventually(world.is_clean, 10, "nothing is left")
    finally:
        world.nodes.on("real-a", f"ip route del unreachable {world.nodes.address('real-b')}")


def test_a_target_with_another_host_key_than_the_daemon_knows_gets_nothing(world: World) -> None:
    """Somebody between both nodes: the source asks the target's address, and another sshd answers there."""
    world.counting(bare_pod("lone", "real-a", container(1)))
    between = f"DNAT --to-destination {world.nodes.address('real-a')}:22"
    rule = f"OUTPUT -p tcp -d {world.nodes.address('real-b')} --dport 22 -j {between}"
    world.nodes.on("real-a", f"iptables -t nat -I {rule}")
    try:
        with world.engine() as engine:
            engine.start(world.model_of("lone"), "real-b")
            (record,) = over(engine)
            assert (record.state, record.reason) == (MigrationState.ROLLED_BACK, Failure.TRANSFER_FAILED), record
            assert "Host key verification failed" in record.detail
            eventually(world.is_clean, 10, "nothing is left")
    finally:
        world.nodes.on("real-a", f"iptables -t nat -D {rule}")


def test_a_daemon_that_is_killed_while_nodes_copy_leaves_no_key_and_no_pipe(world: World, tmp_path: Path) -> None:
    """Not even until another begins: both ends notice. The archive stays until then, of mode 0600 as kubelets make it."""
    world.counting(busy("real-b"), expected_to_run_on(job("train", None, container(200))))
    own(world)
    (source,) = pods_of(world.cluster, "train")
    before = last(world.cluster, source["metadata"]["name"])
    config = cleaning(world, tmp_path, "kubelet-checkpoint")
    with Htas(config, tmp_path / "killed.log") as daemon:
        eventually(lambda: all(map(world.nodes.copies_under_way, ("real-a", "real-b"))), 90, "the copy is under way")
        daemon.process.kill()
        daemon.process.wait()
    for node in ("real-a", "real-b"):
        eventually(lambda node=node: not world.nodes.copies_under_way(node), 20, f"nothing is left on {node}")
    with Htas(tmp_path / "htas.yaml", tmp_path / "again.log") as daemon:
        eventually(lambda: daemon.said("move", state="Done") or is_settled(world), 90, "the move ends")
        eventually(lambda: is_settled(world), 60, "one pod is left, and nothing moves")
        eventually(lambda: not world.nodes.checkpoint_images("real-b"), 60, "no image is left where it runs")
        daemon.stop()
    (only,) = pods_of(world.cluster, "train")
    assert last(world.cluster, only["metadata"]["name"]).process == before.process
    assert goes_on(world.cluster, only["metadata"]["name"])
