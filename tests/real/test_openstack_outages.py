"""A cloud that forgets, hangs or goes away in the middle of things: nothing is lost, leaked or bought twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.real.conftest import Tell
from tests.real.harness import BATCH, PODS, Cluster, Htas, eventually
from tests.real.work import job
from tools.testenv.kubelets import Kubelets
from tools.testenv.openstack import OpenStack

pytestmark = pytest.mark.timeout(600)

AWAY_S = 60.0
CALL_S = "15s"
"""How long a call may take here: a cloud that hangs is noticed several times in an outage."""


class Trial:
    """A daemon at work while the cloud is not."""

    def __init__(self, cluster: Cluster, openstack: OpenStack, daemon: Htas) -> None:
        self.cluster, self.openstack, self.daemon = cluster, openstack, daemon
        self.begun = datetime.now(UTC).replace(microsecond=0)
        self.jobs = 0

    def work(self, count: int, runs: str = "20s", cpu: str = "900m") -> None:
        """Jobs, each of which wants most of a small machine."""
        for _ in range(count):
            self.cluster.create(job(f"job-{self.jobs:02d}", runs, cpu, "256Mi"))
            self.jobs += 1

    def done(self) -> int:
        items = self.cluster.items(f"{BATCH}/namespaces/default/jobs")
        return sum(bool(each["status"].get("succeeded")) for each in items)

    def ends_well(self) -> dict[str, int]:
        """All work is done, nothing is left, and no claim ever had two servers."""
        eventually(lambda: self.done() == self.jobs, 200, "all Jobs complete")
        eventually(lambda: not self.openstack.servers(), 200, "Nova lists no server any more")
        eventually(lambda: not self.cluster.nodes(), 60, "no Node is left")
        bought = self.openstack.ever_bought(self.begun)
        assert set(bought.values()) == {1}, bought
        assert self.daemon.process.poll() is None, "the daemon ran through"
        return bought


@pytest.fixture
def config(openstack: OpenStack, cloud_config: Callable[..., Path]) -> Path:
    """A server that Nova's API wrote down and told nobody of before it was killed stays in BUILD: given up after 90 s."""
    return cloud_config(provider={"timeout": CALL_S}, timeouts={"launch": "90s"})


def test_tokens_that_end_in_the_middle_are_renewed(
    cluster: Cluster, openstack: OpenStack, config: Path, tmp_path: Path
) -> None:
    """Twice: by a life of 150 s, which the SDK renews after 30, and by a key that is gone: 401 in the middle of work."""
    openstack.stop("keystone", "nova-api")
    openstack.start(HTAS_OS_TOKEN_TTL="150", HTAS_OS_TOKEN_CACHE="-1")
    try:
        with Htas(config, tmp_path / "log") as daemon, Kubelets(openstack, cluster):
            daemon.says("leads")
            trial = Trial(cluster, openstack, daemon)
            trial.work(2)
            eventually(lambda: len(openstack.servers()) == 2, 60, "servers are bought")
            openstack.expire_tokens()
            trial.work(2, cpu="1900m")
            trial.ends_well()
            told = [line.get("message", "") for line in daemon.said("launch", status="failed")]
            assert not [text for text in told if "401" in text or "credential" in text], told
    finally:
        openstack.stop("keystone", "nova-api")
        openstack.start()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("hangs", [False, True], ids=["refuses connections", "hangs"])
def test_nova_is_away_for_a_minute(
    hangs: bool, cluster: Cluster, openstack: OpenStack, config: Path, tmp_path: Path, tell: Tell
) -> None:
    with Htas(config, tmp_path / "log") as daemon, Kubelets(openstack, cluster):
        daemon.says("leads")
        trial = Trial(cluster, openstack, daemon)
        trial.work(2, runs="150s", cpu="400m")
        eventually(lambda: len(cluster.nodes()) == len(openstack.servers()) > 0, 60, "servers are bought")
        trial.work(3)
        time.sleep(0.5)  # requests are on their way
        with away(openstack, hangs):
            away_at = time.monotonic()
            cluster.create(job("fits", "5s", "100m", "64Mi"))
            trial.jobs += 1
            bound = eventually(lambda: _node_of(cluster, "fits"), 20, "what has room is placed meanwhile")
            placed_s = time.monotonic() - away_at
            eventually(lambda: daemon.metric("htas_cloud_away") == 1, 60, "the silence is noticed")
            time.sleep(max(0.0, away_at + AWAY_S - time.monotonic()))
        eventually(lambda: daemon.metric("htas_cloud_away") == 0, 60, "and its end")
        bought = trial.ends_well()
    tell(
        f"nova-api away for {AWAY_S:g} s: a pod was placed on {bound} after {placed_s:.1f} s; {len(bought)} servers in all"
    )


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("service", ["rabbitmq", "nova-compute-fake1"])
def test_the_cloud_loses_a_part_while_machines_come_and_go(
    service: str, cluster: Cluster, openstack: OpenStack, config: Path, tmp_path: Path, tell: Tell
) -> None:
    with Htas(config, tmp_path / "log") as daemon, Kubelets(openstack, cluster):
        daemon.says("leads")
        trial = Trial(cluster, openstack, daemon)
        trial.work(2, runs="15s")
        eventually(lambda: len(cluster.nodes()) == 2, 90, "servers are bought")
        openstack.stop(service, kill=True)
        trial.work(3, cpu="1900m")
        time.sleep(30)
        openstack.start()
        bought = trial.ends_well()
    tell(f"{service} killed for 30 s: {trial.jobs} Jobs done, {len(bought)} servers ever, none twice")


@contextmanager
def away(openstack: OpenStack, hangs: bool) -> Iterator[None]:
    """Nova's API refuses connections, or accepts them and never answers."""
    if hangs:
        openstack.freeze("nova-api")
    else:
        openstack.stop("nova-api", kill=True)
    try:
        yield
    finally:
        if hangs:
            openstack.thaw("nova-api")
        else:
            openstack.start()


def _node_of(cluster: Cluster, job_name: str) -> str:
    pods = cluster.items(PODS, labelSelector=f"job={job_name}")
    return str(pods[0]["spec"].get("nodeName", "")) if pods else ""
