"""A real control plane with KWOK, by the scripts beside this file."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from htas.adapters.kubernetes.access import load_access
from htas.adapters.kubernetes.api import ApiServer
from htas.adapters.kubernetes.rate_limit import RateLimit
from htas.ports import NotFoundError

ROOT = Path(__file__).parents[2]
TESTENV = ROOT / "tools" / "testenv"
CORE, APPS, BATCH, POLICY = "/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/policy/v1"
PODS, NODES = f"{CORE}/pods", f"{CORE}/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CONFIG_MAPS = f"{CORE}/namespaces/default/configmaps"
Json = dict[str, Any]
T = TypeVar("T")


PATIENCE = 2.0
"""How many times longer than a story states is waited before it fails: two cores carry two control planes, a cloud and
a ring, and what starves takes twice its usual time. A story that passes costs nothing by it."""


def eventually(look: Callable[[], T], within_s: float, what: str) -> T:
    """What `look` returns, as soon as it is true; fails after so long (times `PATIENCE`), saying what it last was.

    After two seconds it looks twice a second: many wait at once on two cores, and each look lists objects.
    """
    begun = time.monotonic()
    deadline = begun + within_s * PATIENCE
    while True:
        found = look()
        if found:
            return found
        now = time.monotonic()
        assert now < deadline, f"{what}: not within {within_s * PATIENCE:g} s (last: {found!r})"
        time.sleep(0.1 if now < begun + 2.0 else 0.5)


def run_script(name: str, *arguments: str | Path, env: Mapping[str, str], timeout_s: float) -> None:
    """Run a script that stands beside this file; raises AssertionError with what it said where it fails."""
    done = subprocess.run(
        [TESTENV / name, *arguments], env=env, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"


class Cluster:
    """etcd, API server, controller manager, scheduler and KWOK in `directory`."""

    def __init__(self, directory: Path, binaries: Path, **options: str) -> None:
        self.directory, self.binaries = directory, binaries
        self.env = {**os.environ, "HTAS_KUBE_BIN": str(binaries), "HTAS_KUBE_DIR": str(directory), **options}
        self.kubeconfig = directory / "admin.kubeconfig"
        self.start()
        self.api = ApiServer(load_access(self.kubeconfig, None, 16), RateLimit(10_000, 10_000))

    def start(self) -> None:
        """Start what does not run."""
        self._script("kube-up.sh")

    def stop(self, *names: str, kill: bool = False) -> None:
        """Stop some of the processes, or all."""
        self._script("kube-down.sh", *(["--kill"] if kill else []), *names)

    def purge(self) -> None:
        self._script("kube-down.sh", "--purge")

    def _script(self, name: str, *arguments: str) -> None:
        run_script(name, *arguments, env=self.env, timeout_s=180)

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        command = [self.binaries / "kubectl", f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def items(self, path: str, **query: str) -> list[Json]:
        found: list[Json] = msgspec.json.decode(self.api.get(path, query))["items"]
        return found

    def pods(self, **query: str) -> list[Json]:
        return self.items(PODS, **query)

    def nodes(self, **query: str) -> list[Json]:
        return self.items(NODES, **query)

    def create(self, *manifests: Json) -> None:
        for manifest in manifests:
            self.api.post(_collection(manifest), manifest)

    def delete(self, path: str) -> None:
        with suppress(NotFoundError):
            self.api.delete(path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    def wipe(self) -> None:
        """Leave nothing of a test behind: controllers first, or they would make their pods anew."""
        space = "namespaces/default"
        for kind in ("deployments", "replicasets", "statefulsets", "daemonsets"):
            self.delete(f"{APPS}/{space}/{kind}")
        self.delete(f"{BATCH}/{space}/jobs")
        self.delete(f"{POLICY}/{space}/poddisruptionbudgets")
        eventually(lambda: self._is_swept(), 90, "the cluster is swept")

    def _is_swept(self) -> bool:
        self.delete(f"{CORE}/namespaces/default/pods")
        self.delete(NODES)
        for path in (LEASES, CONFIG_MAPS):
            for item in self.items(path):
                if item["metadata"]["name"] != "kube-root-ca.crt":
                    self.delete(f"{path}/{item['metadata']['name']}")
        owners = (f"{APPS}/{kind}" for kind in ("replicasets", "statefulsets", "daemonsets"))
        return not (self.pods() or self.nodes() or any(map(self.items, owners)))


def _collection(manifest: Json) -> str:
    version, kind = manifest["apiVersion"], manifest["kind"]
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    plural = f"{kind.lower()}s" if not kind.endswith("ss") else f"{kind.lower()}es"
    if kind in ("Node", "PriorityClass", "Namespace"):
        return f"{root}/{plural}"
    return f"{root}/namespaces/{manifest['metadata'].get('namespace', 'default')}/{plural}"
