"""One daemon, a little work: bought, bound, released; explained; stopped cleanly."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from tests.real.conftest import Tell
from tests.real.harness import CONFIG_MAPS, LEASES, NODES, PODS, Cluster, Htas, eventually, htas
from tests.real.work import deployment, job, pod

IMPOSSIBLE = pod("impossible", cpu="500")


def test_work_gets_machines_and_batch_machines_go_when_it_ends(
    cluster: Cluster, config: Path, tmp_path: Path, tell: Tell
) -> None:
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        cluster.create(job("train", "5s", count=3), deployment("web", 2))
        eventually(lambda: daemon.metric("htas_actions_total", verb="bind", status="done") == 5, 60, "five pods bound")
        eventually(
            lambda: {node["metadata"]["labels"]["htas.io/group"] for node in cluster.nodes()} == {"services"},
            60,
            "batch machines go",
        )
        assert daemon.get("/healthz") == (200, "ok\n")
        assert daemon.metric("htas_cost_total") > 0
        status = cluster.kubectl("get", "configmap", "htas-trial-status", "-o", "jsonpath={.data.status}")
        assert "leader:" in status
        seen = htas("top", config=config)
        assert re.search(r"^next by period: .*scheduling (in \d+s|now)", seen.stdout, re.MULTILINE), seen
        assert daemon.stop() == 0
    assert daemon.said("htas ended")
    lease = cluster.kubectl("get", "lease", "htas-trial", "-o", "jsonpath={.spec.holderIdentity}")
    assert lease == "", "the lease was given up"
    spent = htas("cost", config=config)
    tell(spent.stdout)
    assert "total" in spent.stdout


def test_plan_and_explain_change_nothing(cluster: Cluster, config: Path, tmp_path: Path, tell: Tell) -> None:
    with Htas(config, tmp_path / "log") as daemon:
        cluster.create(deployment("web", 2))
        eventually(lambda: daemon.metric("htas_actions_total", verb="bind", status="done") == 2, 60, "two pods bound")
        assert daemon.stop() == 0
    cluster.create(IMPOSSIBLE, job("later", "60s"))

    def versions() -> dict[str, str]:
        everything = [item for path in (PODS, NODES, CONFIG_MAPS, LEASES) for item in cluster.items(path)]
        return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in everything}

    eventually(lambda: len(cluster.pods()) == 4, 30, "the Job has made its pod")
    before = versions()
    plan = htas("plan", config=config)
    assert plan.returncode == 0, plan.stderr
    assert "batch" in plan.stdout  # a machine for the Job that waits
    why_pending = htas("explain", "pod", "default/impossible", config=config)
    assert (why_pending.returncode, "no flavour" in why_pending.stdout.lower()) == (0, True), why_pending
    kept = cluster.nodes()[0]["metadata"]["name"]
    why_kept = htas("explain", "node", kept, config=config)
    assert why_kept.returncode == 0, why_kept.stderr
    tell(plan.stdout + why_pending.stdout + why_kept.stdout)
    assert versions() == before


def test_a_changed_configuration_is_adopted_or_refused_as_a_whole(config: Path, tmp_path: Path) -> None:
    with Htas(config, tmp_path / "log") as daemon:
        daemon.says("leads")
        right = config.read_text()
        config.write_text(right.replace("maxNodes: 100", "maxNodes: 7"))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.says("configuration adopted")
        eventually(lambda: daemon.metric("htas_limit", group="", resource="nodes") == 7, 20, "it holds")
        config.write_text(right.replace("maxNodes: 100", "maxNodes: 8").replace("cluster: trial", "cluster: other"))
        daemon.says("configuration refused, the old one stays", where="cluster")
        assert daemon.metric("htas_limit", group="", resource="nodes") == 7
        assert daemon.metric("htas_config_reloads_total", result="refused") == 1
        assert daemon.stop() == 0
