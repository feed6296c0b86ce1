"""Real nodes, by the scripts beside this file: kubelets, containerd and CRIU in a cluster; and what breaks there."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tools.testenv.cluster import ROOT, Cluster, eventually, run_script

NAMES = ("real-a", "real-b")
IMAGE = "localhost/htas/busybox:1"
"""Is on each node; its pods need `imagePullPolicy: Never`."""
REGISTRY = "10.94.0.1:26790"
"""Where nodes of that network may pull from without TLS; `registry` starts one there."""
PROVIDER = ROOT / "deploy" / "nodes" / "credential-providers.yaml"
ARCHIVES = "/var/lib/kubelet/checkpoints"


class RealNodes:
    """Two nodes in `directory`, beside whatever else the cluster has; further options: nodes-up.sh's."""

    def __init__(self, directory: Path, cluster: Cluster, **options: str) -> None:
        self.directory = directory
        self._env = {
            **os.environ,
            "HTAS_KUBE_BIN": str(cluster.binaries),
            "KUBECONFIG": str(cluster.kubeconfig),
            "HTAS_NODES_DIR": str(directory),
            "HTAS_NODES": " ".join(NAMES),
            **options,
        }
        self._net = options.get("HTAS_NODES_NET", "10.93")
        with (
            ExitStack() as failing
        ):  # a script that is killed leaves a bridge, and whoever starts nodes next is refused for it
            failing.callback(self.stop)
            self.start()
            failing.pop_all()

    def stop(self) -> None:
        """Take the nodes down; their logs stay."""
        run_script("nodes-down.sh", env=self._env, timeout_s=60)

    def start(self) -> None:
        """Start the nodes that do not run; returns when all are Ready."""
        self._install_credential_provider()
        run_script("nodes-up.sh", env=self._env, timeout_s=240)

    def _install_credential_provider(self) -> None:
        """The one that docs/migration.md describes, which finds nothing before a test writes the credentials."""
        programs = self.directory / "providers"
        programs.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROVIDER.with_name("htas-registry-credentials"), programs)
        said = PROVIDER.read_text().replace("registry.example:5000", REGISTRY)
        said = said.replace("/etc/htas/registry-credentials", str(self.credentials_file))
        (self.directory / "credential-providers.yaml").write_text(said)

    @property
    def credentials_file(self) -> Path:
        """What kubelets pull checkpoints with."""
        return self.directory / "registry-credentials"

    def purge(self) -> None:
        run_script("nodes-down.sh", "--purge", env=self._env, timeout_s=60)

    # What HTAS needs to reach them.

    @property
    def identity_file(self) -> Path:
        return self.directory / "ssh" / "id"

    @property
    def known_hosts_file(self) -> Path:
        return self.directory / "ssh" / "known_hosts"

    def address(self, node: str) -> str:
        return f"{self._net}.0.{11 + NAMES.index(node)}"

    @property
    def gateway(self) -> str:
        """Where nodes and pods reach this machine; the API server is on its port 6443."""
        return f"{self._net}.0.1"

    @contextmanager
    def registry(self, users: str = "") -> Iterator[str]:
        """An OCI registry for as long as the context lasts; its url. With lines of htpasswd it is for these alone."""
        env = {
            "REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY": str(self.directory / "registry"),
            "REGISTRY_STORAGE_DELETE_ENABLED": "true",
            "REGISTRY_HTTP_ADDR": REGISTRY,
        }
        if users:
            known = self.directory / "htpasswd"
            known.write_text(users)
            env |= {"REGISTRY_AUTH": "htpasswd", "REGISTRY_AUTH_HTPASSWD_REALM": "r"}
            env |= {"REGISTRY_AUTH_HTPASSWD_PATH": str(known)}
        settings = self.directory / "registry.yaml"
        settings.write_text("version: 0.1\nstorage: {filesystem: {}}\nhttp: {addr: x}\n")
        command = [f"{self._prefix}/bin/docker-registry", "serve", settings]
        with (self.directory / "log" / "registry.log").open("ab") as log:
            process = subprocess.Popen(command, env={**os.environ, **env}, stdout=log, stderr=log)
        try:
            eventually(lambda: _answers(REGISTRY), 20, "the registry answers")
            yield f"http://{REGISTRY}"
        finally:
            process.kill()
            process.wait(10)

    @contextmanager
    def agents(self, token_file: Path, url: str, *more: str) -> Iterator[None]:
        """`htas agent` on each node, as its DaemonSet would run it."""
        htas = Path(sys.executable).with_name("htas")
        options = ["agent", "--registry", url, "--token-file", token_file, *more]
        processes = []
        try:
            for node in NAMES:
                with (self.directory / "log" / f"agent-{node}.log").open("ab") as log:
                    listen = ["--listen", f"{self.address(node)}:10270"]
                    command = [*self._enter(node, "--mount", "--net"), htas, *options, *listen]
                    processes.append(subprocess.Popen(command, stdout=log, stderr=log))
                eventually(
                    lambda node=node: _answers(f"{self.address(node)}:10270"), 30, f"the agent of {node} listens"
                )
            yield
        finally:
            for process in processes:
                process.kill()
                process.wait(10)

    # Outsiders' looks and deeds, in a node's own namespaces.

    def on(self, node: str, command: str, timeout_s: float = 60.0) -> str:
        """What a shell command on the node prints; raises AssertionError where it fails."""
        done = self._shell(node, command, timeout_s)
        assert done.returncode == 0, f"{node}: {command}: {done.stdout}{done.stderr}"
        return done.stdout

    def _shell(self, node: str, command: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        path = {"PATH": f"{self._prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        return subprocess.run(
            [*self._enter(node), "sh", "-c", command],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=path,
        )

    def _enter(self, node: str, *spaces: str) -> list[str]:
        """Without its PID namespace nsenter becomes the command, and who kills it kills that."""
        chosen = spaces or ("--mount", "--net", "--uts", "--ipc", "--pid")
        return ["nsenter", "--target", str(self._first_process(node)), *chosen]

    @property
    def _prefix(self) -> str:
        cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "htas"
        return self._env.get("HTAS_CRIU_PREFIX", str(cache / "criu"))

    def _first_process(self, node: str) -> int:
        """The node's process 1, as this machine numbers it: the child of the `unshare` that made the namespaces."""
        unshare = (self.directory / "pid" / node).read_text().strip()
        children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
        return int(children[0])

    def kill(self, node: str) -> None:
        """The machine is gone from one moment to the next; `start` brings another of its name."""
        with suppress(ProcessLookupError):
            os.kill(int((self.directory / "pid" / node).read_text()), 9)
        eventually(lambda: not self.runs(node), 10, f"{node} is gone")

    def runs(self, node: str) -> bool:
        with suppress(OSError, IndexError):
            return Path(f"/proc/{self._first_process(node)}/root").exists()
        return False

    @contextmanager
    def without_containerd(self, node: str) -> Iterator[None]:
        """containerd is stopped on the node; its containers run on. It runs again at the end."""
        hold = self.directory / node / "hold"
        hold.touch()
        self.on(node, "kill -9 $(pidof containerd)")
        try:
            yield
        finally:
            hold.unlink()
            eventually(lambda: self._shell(node, "ctr version").returncode == 0, 30, f"containerd of {node} answers")

    @contextmanager
    def without_space(self, node: str, directory: str, leave: str, folder: str = ".") -> Iterator[None]:
        """A file system of `leave` bytes, with a folder, lies over a directory of the node; it goes at the end."""
        mounting = f"mkdir -p {directory} && mount -t tmpfs -o size={leave} tmpfs {directory}"
        self.on(node, f"{mounting} && mkdir -p {directory}/{folder}")
        try:
            yield
        finally:
            self.on(node, f"umount -l {directory}")

    def checkpoint_images(self, node: str) -> list[str]:
        """Names in the node's image store of images that are checkpoints, their second names by id included."""
        rows = [line.split() for line in self.on(node, "ctr -n k8s.io images ls").splitlines()[1:]]
        digests = {row[2] for row in rows if "checkpoint" in row[0]}
        return [row[0] for row in rows if row[2] in digests]

    def copies_under_way(self, node: str) -> list[str]:
        """Files and processes of archives' copies from node to node, as they are on a node just now."""
        looks = (
            "ls -d /dev/shm/htas-*",
            "grep -l 'htas-mov[e]-' /proc/[0-9]*/cmdline",
        )
        return self.on(node, f"{{ {'; '.join(looks)}; }} 2>/dev/null || true").split()

    def files(self, node: str, directory: str) -> list[str]:
        return self.on(node, f"ls -A {directory} 2>/dev/null || true").split()


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), 1.0):
        return True
    return False
