"""A daemon within a cluster, asked by its name: `--server NAMESPACE/RELEASE`, through `kubectl port-forward`.

kubectl knows the cluster, and who asks (KUBECONFIG, its context, its plugins for logging in): what it may, this may.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
from base64 import b64decode
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Generic, TypeVar

import msgspec

from htas.adapters.tokens import token_of
from htas.cli.console import InputError
from htas.daemon.wiring.parent_process import end_with
from htas.ports import PermanentError, TransientError

_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ")
ANSWER_S, ENDED_S = 30.0, 2.0
LEASES = "htas-"
PORT, CONFIG_AT, TOKEN_AT, CERTIFICATE_AT = "http", "/etc/htas", "/etc/htas-moves/token", "/etc/htas-http"
"""What the chart calls the daemon's port, and where its container finds configuration, token and certificate
(deploy/helm/htas/templates/deployment.yaml; the token of the API lies where that of moves does, being the same).
"""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """Where a daemon of a cluster is reached on this machine, for as long as this process lives. `host` is the name
    that its certificate bears, where it has one; `token` is empty where the chart made none.
    """

    url: str
    token: str
    host: str | None


# What is read of the objects.


class _Port(msgspec.Struct, frozen=True, rename="camel"):
    container_port: int
    name: str = ""


class _Mount(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    mount_path: str


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    ports: Sequence[_Port] = ()
    volume_mounts: Sequence[_Mount] = ()

    @property
    def mounts(self) -> Mapping[str, str]:
        return {mount.mount_path: mount.name for mount in self.volume_mounts}


class _SecretVolume(msgspec.Struct, frozen=True, rename="camel"):
    secret_name: str = ""


class _Volume(msgspec.Struct, frozen=True):
    name: str
    secret: _SecretVolume | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, frozen=True):
    containers: Sequence[_Container]
    volumes: Sequence[_Volume] = ()


class _Template(msgspec.Struct, frozen=True):
    spec: _Spec


class _Selector(msgspec.Struct, frozen=True, rename="camel"):
    match_labels: Mapping[str, str]


class _Replicas(msgspec.Struct, frozen=True):
    selector: _Selector
    template: _Template


class _Workload(msgspec.Struct, frozen=True):
    """A Deployment or a StatefulSet. What it says of its pods is its owner's word: a pod's own is whoever's made it."""

    metadata: _Metadata
    spec: _Replicas

    @property
    def daemon(self) -> _Container | None:
        """The container that HTAS runs in; None: this is another program of the release."""
        containers = self.spec.template.spec.containers
        return next((each for each in containers if CONFIG_AT in each.mounts and _port_of(each)), None)


def _port_of(container: _Container) -> int | None:
    return next((port.container_port for port in container.ports if port.name == PORT), None)


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True):
    conditions: Sequence[_Condition] = ()


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata
    status: _Status = _Status()

    @property
    def is_ready(self) -> bool:
        """And not on its way out."""
        is_said = any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)
        return is_said and self.metadata.deletion_timestamp is None


class _Holder(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _Holder


class _Secret(msgspec.Struct, frozen=True):
    data: Mapping[str, str] = {}


T = TypeVar("T")


class _List(msgspec.Struct, Generic[T], frozen=True):
    items: Sequence[T]


# How it is found, and forwarded to.


def forwarded(address: str, *, wants_token: bool) -> Forwarded:
    """Forward a port of this machine to the daemon that leads in a release, and read the chart's token if it is wanted.
    Raises InputError for a release that has no daemon, PermanentError and TransientError for what kubectl cannot do.
    """
    namespace, _, release = address.partition("/")
    workload, container, port = _workload(namespace, release)
    token = _token(workload, container, namespace) if wants_token else ""
    local = _forward(namespace, _leading(workload, namespace), port)
    if CERTIFICATE_AT in container.mounts:
        return Forwarded(f"https://127.0.0.1:{local}", token, f"{workload.metadata.name}.{namespace}.svc")
    return Forwarded(f"http://127.0.0.1:{local}", token, None)


def _workload(namespace: str, release: str) -> tuple[_Workload, _Container, int]:
    """What runs a release's daemons, their container and its port. The chart's Service is called as the former."""
    chosen = f"app.kubernetes.io/instance={release}"
    for workload in _asked(_List[_Workload], "get", "deployments,statefulsets", "-n", namespace, "-l", chosen).items:
        container = workload.daemon
        port = _port_of(container) if container is not None else None
        if container is not None and port is not None:
            return workload, container, port
    raise InputError(f"--server: namespace {namespace} has no daemon of a Helm release {release}; helm list -A")


def _leading(workload: _Workload, namespace: str) -> str:
    """The daemon's pod; of several that are Ready the one whose name a lease bears: a stand-by knows of no plan."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(workload.spec.selector.match_labels.items()))
    found = _asked(_List[_Pod], "get", "pods", "-n", namespace, "-l", labels).items
    ready = [pod.metadata.name for pod in found if pod.is_ready]
    if not ready:
        names = " ".join(sorted(pod.metadata.name for pod in found)) or "there is none"
        raise TransientError(f"no daemon is Ready in {namespace}: {names}; kubectl -n {namespace} describe pods")
    if len(ready) == 1:
        return ready[0]
    leases = _asked(_List[_Lease], "get", "leases", "-n", namespace).items
    ours = (lease for lease in leases if lease.metadata.name.startswith(LEASES))
    holders = {(lease.spec.holder_identity or "").partition("_")[0] for lease in ours}
    leader = next((name for name in ready if name in holders), None)
    if leader is None:
        raise TransientError(f"namespace {namespace}: none of its daemons leads just now; try again in a moment")
    return leader


def _token(workload: _Workload, container: _Container, namespace: str) -> str:
    """What the Secret holds that the daemon takes its token from; empty: it takes none."""
    volumes = workload.spec.template.spec.volumes
    secrets = {each.name: each.secret.secret_name for each in volumes if each.secret is not None}
    secret = secrets.get(container.mounts.get(TOKEN_AT, ""))
    if not secret:
        return ""
    try:
        held = _asked(_Secret, "get", "secret", secret, "-n", namespace).data.get("token", "")
        return token_of(b64decode(held, validate=True), f"secret {namespace}/{secret}")
    except PermanentError as error:
        raise PermanentError(f"{error}; name a token with --token-file") from None
    except ValueError:
        raise PermanentError(f"secret {namespace}/{secret}: its token is not in base64") from None


def _asked(kind: type[T], *words: str) -> T:
    """What kubectl answers."""
    told = f"kubectl {' '.join(words[:2])}"
    # A plugin of kubectl's may ask somebody to log in, and wait for that.
    is_watched = sys.stdin.isatty() and sys.stderr.isatty()
    command = ["kubectl", *words, "-o", "json", f"--request-timeout={ANSWER_S:.0f}s"]
    try:
        done = subprocess.run(
            command,
            stdin=None if is_watched else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if is_watched else subprocess.PIPE,
            timeout=None if is_watched else 2 * ANSWER_S,
            check=False,
        )
    except OSError as error:
        raise PermanentError(f"kubectl: {error.strerror}; a daemon is asked by name through kubectl") from error
    except subprocess.TimeoutExpired:
        raise TransientError(f"{told}: no answer within {2 * ANSWER_S:.0f} s") from None
    if done.returncode != 0:
        said = (done.stderr or b"").decode("utf-8", "replace").strip().splitlines()
        raise PermanentError(f"{told}: {said[-1] if said else 'it failed'}")
    try:
        return msgspec.json.decode(done.stdout, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PermanentError(f"{told}: what it printed is no answer ({str(error)[:200]})") from None


def _forward(namespace: str, pod: str, port: int) -> int:
    """Have kubectl forward a free port until this process ends; which one."""
    command = ["kubectl", "port-forward", "-n", namespace, f"pod/{pod}", f":{port}", "--address=127.0.0.1"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # kubectl may be a script around the real one: all of it ends
        preexec_fn=partial(end_with, os.getpid()),
    )
    atexit.register(_end, process)
    # Ended by a signal Python runs nothing that was registered, and kubectl would stay.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda given, _: sys.exit(128 + given))
    found, complaints = SimpleQueue[int | None](), deque[str](maxlen=1)
    assert process.stdout is not None and process.stderr is not None
    complaining = Thread(target=complaints.extend, args=(process.stderr,), daemon=True)
    complaining.start()
    Thread(target=_read, args=(process.stdout, found), daemon=True).start()
    try:
        local = found.get(timeout=ANSWER_S)
    except Empty:
        raise TransientError(f"kubectl port-forward pod/{pod}: no answer within {ANSWER_S:.0f} s") from None
    if local is None:
        complaining.join(ENDED_S)
        raise TransientError(f"kubectl port-forward pod/{pod}: {complaints[0].strip() if complaints else 'it ended'}")
    return local


def _read(pipe: IO[str], found: SimpleQueue[int | None]) -> None:
    """Which port it is; then kubectl writes a line for each connection, and must not wait for a reader."""
    for line in pipe:
        if (forwarding := _FORWARDING.match(line)) is not None:
            found.put(int(forwarding[1]))
    found.put(None)


def _end(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(ENDED_S)
            return
