"""HTAS as people install it: its image in the containerds of real nodes, its chart by helm, its daemons in pods."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import urllib3
import yaml

import htas
from htas.ports import HTASError
from tests.real.harness import ROOT, TESTENV, Json, eventually
from tests.real.moving import World
from tests.real.test_chart import ACTING
from tools.testenv.real_nodes import NAMES

CHART = ROOT / "deploy" / "helm" / "htas"
SPACE = "htas-system"
NAME = "docker.io/library/htas"
API = "kubernetes.default.svc"
"""The name of the API server's certificate by which pods call it: the nodes have neither kube-proxy nor DNS."""


def built() -> Path:
    """The archive of the image, made from deploy/Dockerfile unless what is in it has been built before."""
    done = subprocess.run([TESTENV / "image-build.sh"], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return Path(done.stdout.strip().splitlines()[-1])


def imported(world: World, archive: Path, node: str) -> None:
    """Put the image into a node's containerd; the node sees this machine's files.

    Only where it is to run: unpacked, it takes forty seconds to be removed again with the node's disk.
    """
    world.nodes.on(node, f"ctr -n k8s.io images import --index-name {NAME}:{htas.__version__} {archive}", 180)


class Release:
    """One installation. `log` is given what happens, with the seconds since its beginning."""

    def __init__(self, world: World, helm: Path, log: Callable[[str], None]) -> None:
        self.world, self.cluster, self._helm = world, world.cluster, helm
        self._log, self._began = log, time.monotonic()

    def tell(self, text: str) -> None:
        self._log(f"{time.monotonic() - self._began:6.1f} s  {text}")

    def helm(self, verb: str, *arguments: str, values: Json | None = None) -> tuple[int, str]:
        """Exit status and what helm said."""
        command = [self._helm, verb, "htas", *arguments, "--namespace", SPACE, "--kubeconfig", self.cluster.kubeconfig]
        command += ["--values", "-"] if values is not None else []
        done = subprocess.run(
            command, input=yaml.safe_dump(values or {}), capture_output=True, text=True, timeout=240, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def put(self, verb: str, values: Json, chart: Path = CHART) -> None:
        """`helm install` or `helm upgrade`; fails with what helm said."""
        status, said = self.helm(verb, str(chart), values=values)
        assert status == 0, said
        self.tell(f"helm {verb}")

    def values(self, **changes: Json) -> Json:
        """What someone would write for these nodes; `changes` replace whole sections of the configuration."""
        cleaning = {"underutilizedFor": "5s", "queueEmptyFor": "5s", "migrationTime": "2s"}
        config = {
            "mode": "automatic",
            "cluster": "trial",
            "provider": {"kwok": {"startupDelay": "2s"}},
            "leaderElection": {"leaseDuration": "10s", "renewDeadline": "7s", "retryPeriod": "1s"},
            "cycles": {"scheduling": "2s", "autoscaling": "2s", "cleaning": "2s"},
            "lookAhead": "0s",
            "limits": {"maxNodes": 20, "maxPricePerHour": "10"},
            "nodeGroups": [
                {"name": "simulated", "workload": "any", "labels": {"machines": "simulated"}, "cleaning": cleaning},
                {
                    "name": "real",
                    "workload": "batch",
                    "maxNodes": 1,
                    "cleaning": {**cleaning, "migration": "kubelet-checkpoint"},
                },
            ],
            "migration": {"scp": {"user": "root"}},
            **changes,
        }
        return {**ACTING, **self.where(), "config": config, "moves": {"sshSecret": "htas-ssh"}}

    def where(self) -> Json:
        """What every installation on these nodes needs: image, prices, and the way to the API server."""
        return {
            "image": {"repository": NAME, "pullPolicy": "Never"},
            "flavours": prices("0.0686"),
            "nodeSelector": {"kubernetes.io/hostname": NAMES[1]},  # the one that HTAS did not launch
            "hostAliases": [{"ip": self.world.nodes.gateway, "hostnames": [API]}],
            "extraEnv": [
                {"name": "KUBERNETES_SERVICE_HOST", "value": API},
                {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"},
            ],
        }

    def packaged(self, directory: Path) -> Path:
        """The chart as people get it: one file."""
        command = [self._helm, "package", CHART, "--destination", directory]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        (found,) = directory.glob("htas-*.tgz")
        return found

    def secrets(self) -> None:
        """The namespace, and the key by which checkpoints are copied."""
        self.cluster.kubectl("create", "namespace", SPACE)
        files = (f"id={self.world.nodes.identity_file}", f"known_hosts={self.world.nodes.known_hosts_file}")
        sources = [f"--from-file={each}" for each in files]
        self.cluster.kubectl("create", "secret", "generic", "htas-ssh", "-n", SPACE, *sources)

    # What can be seen of it.

    def items(self, kind: str) -> list[Json]:
        """Objects of a kind in its namespace."""
        found: list[Json] = msgspec.json.decode(self.cluster.kubectl("get", kind, "-n", SPACE, "-o", "json"))["items"]
        return found

    def names(self, kind: str) -> set[str]:
        return {each["metadata"]["name"] for each in self.items(kind)}

    def daemons(self) -> dict[str, Json]:
        """Its pods that run, by name."""
        pods = self.items("pods")
        return {
            pod["metadata"]["name"]: pod
            for pod in pods
            if pod["metadata"]["labels"].get("app.kubernetes.io/name") == "htas"
            and not pod["metadata"].get("deletionTimestamp")
        }

    def running(self) -> set[str]:
        """Its pods that have not ended, those of hooks too."""
        return {
            pod["metadata"]["name"] for pod in self.items("pods") if pod["status"]["phase"] in ("Pending", "Running")
        }

    def log_of_the_hook(self) -> str:
        """What the Job said that hands back; helm tells only that it failed."""
        return self.cluster.kubectl("logs", "-n", SPACE, "-l", "app.kubernetes.io/name=htas-handback", "--tail=-1")

    def leader(self) -> str:
        """The pod that leads; empty: none of those that run does."""
        leases = [each for each in self.items("lease") if each["metadata"]["name"] == "htas-trial"]
        holder = (leases[0]["spec"].get("holderIdentity") or "").rpartition("_")[0] if leases else ""
        return holder if holder in self.daemons() else ""

    def says(self, event: str, within_s: float = 60.0, **facts: object) -> Json:
        """Wait for a line in the log of whoever leads."""

        def look() -> list[Json]:
            return [
                each
                for each in self.lines(self.leader())
                if each.get("event") == event and facts.items() <= each.items()
            ]

        return eventually(look, within_s, f"the leader says {event!r} {facts}")[0]

    def lines(self, pod: str) -> list[Json]:
        """What a pod has logged."""
        if not pod:
            return []
        try:
            log = self.cluster.api.get(f"/api/v1/namespaces/{SPACE}/pods/{pod}/log").decode()
        except HTASError:  # its container is being created
            return []
        return [msgspec.json.decode(line) for line in log.splitlines() if line.startswith("{")]

    def asks(self, pod: str, path: str) -> str:
        """What a daemon's HTTP server answers."""
        address = self.daemons()[pod]["status"]["podIP"]
        return urllib3.request("GET", f"http://{address}:8080{path}", timeout=10.0).data.decode()

    @contextmanager
    def forwarded(self, pod: str) -> Iterator[str]:
        """Where this machine reaches a daemon as people do: through the API server and the pod's kubelet."""
        kubectl = [self.cluster.binaries / "kubectl", f"--kubeconfig={self.cluster.kubeconfig}", "--namespace", SPACE]
        command = [*kubectl, "port-forward", f"pod/{pod}", ":8080"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            try:
                said = process.stdout.readline()
                port = re.search(r"127\.0\.0\.1:(\d+) -> 8080", said)
                assert port is not None, said
                yield f"http://127.0.0.1:{port[1]}"
            finally:
                process.terminate()

    @contextmanager
    def volume(self, name: str) -> Iterator[None]:
        """A claim of that name, bound to a directory of the node that the daemons are on, for as long as this lasts."""
        path = f"/var/lib/{name}"
        self.world.nodes.on(NAMES[1], f"rm -rf {path} && mkdir -p {path} && chown 65532:65532 {path}")
        room = {"storageClassName": "", "accessModes": ["ReadWriteOnce"]}
        volume = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": path}, "persistentVolumeReclaimPolicy": "Retain"}
        claim = {"volumeName": f"{SPACE}-{name}", "resources": {"requests": {"storage": "1Gi"}}}
        made = [
            {"kind": "PersistentVolume", "metadata": {"name": f"{SPACE}-{name}"}, "spec": room | volume},
            {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": SPACE}, "spec": room | claim},
        ]
        said = yaml.safe_dump_all([{"apiVersion": "v1", **each} for each in made])
        self.cluster.kubectl("create", "-f", "-", input=said)
        try:
            yield
        finally:
            self.cluster.kubectl("delete", "-f", "-", "--wait=false", input=said)

    def machines(self) -> set[str]:
        """Nodes that HTAS owns."""
        return {each["metadata"]["name"] for each in self.cluster.nodes(labelSelector="htas.io/cluster=trial")}


def prices(small: str) -> Json:
    """Two flavours, the smaller at a price; seconds are billed, else no move of seconds would pay."""
    flavours = [
        {"name": "m3.small", "cpu": 2, "memory": "4Gi", "pricePerHour": small},
        {"name": "m1.large", "cpu": 4, "memory": "16Gi", "pricePerHour": "0.2746"},
    ]
    return {"currency": "USD", "billing": {"granularity": "1s", "minimum": "1s"}, "flavours": flavours}


def inside(release: Release, pod: str) -> Json:
    """The security context that a daemon's container has, as the API server shows it."""
    spec = release.daemons()[pod]["spec"]
    context: Json = spec["containers"][0]["securityContext"]
    return context | {"runAsUser": spec["securityContext"]["runAsUser"]}
