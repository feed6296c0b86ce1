"""SIGKILL between a purchase or a release and its record: no server is lost, left behind or bought twice."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from htas.execution.crash_points import VARIABLE
from tests.real.harness import BATCH, Cluster, Htas, eventually
from tests.real.work import job
from tools.testenv.kubelets import Kubelets
from tools.testenv.openstack import OpenStack

pytestmark = pytest.mark.timeout(300)

STEPS = ("launch.created", "release.asked", "openstack.server-created", "openstack.server-deleted")
"""The others are the same with every provider: test_kill.py has them all."""


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("point", STEPS)
def test_a_server_is_bought_once_and_returned(
    point: str, cluster: Cluster, openstack: OpenStack, cloud_config: Callable[..., Path], tmp_path: Path
) -> None:
    begun = datetime.now(UTC).replace(microsecond=0)
    config = cloud_config()
    with Kubelets(openstack, cluster):
        with Htas(config, tmp_path / "killed.log", {VARIABLE: point}) as killed:
            killed.says("leads")
            cluster.create(job("train", "3s"))
            eventually(lambda: killed.process.poll() is not None, 90, "the daemon gets to the step and is killed")
            assert killed.process.returncode == -signal.SIGKILL, killed.tail()
        with Htas(config, tmp_path / "again.log") as daemon:
            jobs = f"{BATCH}/namespaces/default/jobs/train"
            eventually(lambda: b'"succeeded":1' in cluster.api.get(jobs), 120, "the Job completes")
            eventually(lambda: not openstack.servers() and not cluster.nodes(), 90, "server and Node are gone")
            assert list(openstack.ever_bought(begun).values()) == [1]
            assert daemon.stop() == 0
