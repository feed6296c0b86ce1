"""The daemon's disk is full: what has room is bound, what needs a machine waits, and both go on when there is room again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.harness import Cluster, Htas, configuration, eventually
from tests.real.work import deployment, node

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 KB. Needs root."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def fill(disk: Path) -> Path:
    """Not a byte is left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as stream:
        for size in (4096, 1):
            try:
                while True:
                    stream.write(b"x" * size)
            except OSError:
                continue
    return filler


def test_work_is_bound_while_the_disk_is_full_and_machines_are_bought_afterwards(
    cluster: Cluster, tmp_path: Path, disk: Path
) -> None:
    config = configuration(tmp_path, cluster.kubeconfig, store={"sqlite": {"path": str(disk / "htas.db")}})
    cluster.create(node("there", "2", "4Gi"))
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        filler = fill(disk)
        cluster.create(deployment("small"), deployment("large", cpu="4", memory="4Gi"))
        eventually(lambda: _bound(cluster, "small"), 60, "what has room is bound")
        eventually(lambda: daemon.metric("htas_store_unwritable") == 1, 60, "a metric tells")
        code, said = daemon.get("/readyz")
        assert (code, "the store cannot be written" in said) == (200, True)
        assert daemon.get("/healthz")[0] == 200
        cluster.create(deployment("later"))
        eventually(lambda: _bound(cluster, "later"), 60, "nor does what comes later wait")
        assert (_bound(cluster, "large"), len(cluster.nodes())) == ([], 1)
        assert (
            len(
                daemon.said(
                    "the journal cannot be written: HTAS schedules pods, but launches, drains and deletes nothing"
                )
            )
            == 1
        )
        filler.unlink()
        eventually(lambda: _bound(cluster, "large"), 90, "a machine is bought when there is room again")
        eventually(lambda: daemon.metric("htas_store_unwritable") == 0, 60, "and the metric tells")
        assert len(cluster.nodes()) == 2
        assert daemon.stop() == 0


def _bound(cluster: Cluster, app: str) -> list[str]:
    return [pod["spec"]["nodeName"] for pod in cluster.pods(labelSelector=f"app={app}") if pod["spec"].get("nodeName")]
