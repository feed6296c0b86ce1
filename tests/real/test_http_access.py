"""Who gets in over HTTP where the API server knows them, and what a crowd of half-open connections stops: nothing."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import urllib3
import yaml

from tests.real.conftest import Tell
from tests.real.harness import Cluster, Htas, configuration, eventually
from tests.real.work import node, pod

CROWD = 1_500


def reader(cluster: Cluster, path: str) -> None:
    """The account `reader` may get one path, and nothing else."""
    cluster.kubectl("create", "serviceaccount", "reader")
    cluster.kubectl("create", "serviceaccount", "stranger")
    cluster.kubectl("create", "clusterrole", "htas-reader", "--verb=get", f"--non-resource-url={path}")
    cluster.kubectl(
        "create", "clusterrolebinding", "htas-reader", "--clusterrole=htas-reader", "--serviceaccount=default:reader"
    )


def forget(cluster: Cluster) -> None:
    cluster.kubectl("delete", "serviceaccount", "reader", "stranger", "--ignore-not-found")
    for kind in ("clusterrolebinding", "clusterrole"):
        cluster.kubectl("delete", kind, "htas-reader", "--ignore-not-found")


def test_tokens_of_the_api_server_open_what_their_rules_name(cluster: Cluster, tmp_path: Path) -> None:
    config = configuration(tmp_path, cluster.kubeconfig)
    document = yaml.safe_load(config.read_text())
    listen = document["http"]["listen"]
    document["http"] = {"listen": listen, "tokenReview": True}
    config.write_text(yaml.safe_dump(document))
    forget(cluster)
    reader(cluster, "/planz")
    try:
        tokens = {name: cluster.kubectl("create", "token", name).strip() for name in ("reader", "stranger")}
        with Htas(config, tmp_path / "log") as daemon:
            daemon.says("leads")

            def status(name: str, path: str, method: str = "GET") -> int:
                headers = {"Authorization": f"Bearer {tokens[name]}"} if name else {}
                return urllib3.request(method, f"http://{listen}{path}", headers=headers, timeout=10.0).status

            eventually(lambda: status("reader", "/planz") == 200, 30, "the reader sees the plan")
            assert status("reader", "/snapshotz") == 403
            assert status("reader", "/api/optimize", "POST") == 403
            assert status("stranger", "/planz") == 403
            assert status("", "/planz") == 401
            assert status("", "/healthz") == 200
            assert daemon.stop() == 0
    finally:
        forget(cluster)


def test_a_crowd_of_half_open_connections_stops_nothing(cluster: Cluster, tmp_path: Path, tell: Tell) -> None:
    config = configuration(tmp_path, cluster.kubeconfig)
    with ExitStack() as crowd, Htas(config, tmp_path / "log") as daemon:
        port = daemon.says("leads") and daemon.says("listens")["port"]
        for _ in range(CROWD):
            connection = crowd.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10.0))
            connection.sendall(b"GET /planz HTTP/1.1\r\nHost: ")
        lines = len(daemon.lines)
        assert daemon.get("/healthz")[0] == 200
        cluster.create(node("free"), pod("one"))
        eventually(lambda: cluster.pods()[0]["spec"].get("nodeName"), 30, "a pod is bound meanwhile")
        assert daemon.get("/planz")[0] == 200
        assert not [line for line in daemon.lines if line.get("level") in ("error", "warning")], daemon.tail()
        tell(f"{CROWD} half-open connections: health answers, a pod is bound, {len(daemon.lines) - lines} lines logged")
        assert daemon.stop() == 0
