"""A daemon within a cluster, asked by its name: `--server NAMESPACE/RELEASE`, through `kubectl port-forward`.

kubectl knows the cluster, and who asks (KUBECONFIG, its context, its plugins for logging in): what it may, this may.
"""

from __future__ import annotations

import atexit
import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from htas.cli.console import InputError
from htas.ports import PermanentError, TransientError

_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ")
ANSWER_S = 30.0
PORT, TOKEN_AT, CERTIFICATE_AT = "http", "/etc/htas-moves/token", "/etc/htas-http"
"""What the chart calls the daemon's port, and where its container finds the token and its certificate."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """Where a daemon of a cluster is reached on this machine, for as long as this process lives. `host` is the name
    that its certificate bears, where it has one; `token` is empty where the chart made none.
    """

    url: str
    token: str
    host: str | None


def forwarded(address: str, *, wants_token: bool) -> Forwarded:
    """Forward a port of this machine to the daemon that leads in a release, and read the chart's token if it is wanted.
    Raises InputError for a release that has no daemon, PermanentError and TransientError for what kubectl cannot do.
    """
    namespace, release = address.split("/")
    daemon = _leading(_daemons(namespace, release), namespace)
    container = _container(daemon)
    assert container is not None  # _daemons looks
    token = _token(daemon, container, namespace) if wants_token else ""
    port = next(port["containerPort"] for port in container["ports"] if port.get("name") == PORT)
    is_tls = any(mount["mountPath"] == CERTIFICATE_AT for mount in container.get("volumeMounts", ()))
    local = _forward(namespace, daemon["metadata"]["name"], port)
    scheme = "https" if is_tls else "http"
    return Forwarded(f"{scheme}://127.0.0.1:{local}", token, f"{_service(daemon)}.{namespace}.svc" if is_tls else None)


def _daemons(namespace: str, release: str) -> list[dict[str, Any]]:
    """The pods of a release that have HTAS's port and are Ready; an agent of its nodes has none."""
    chosen = f"app.kubernetes.io/instance={release}"
    pods = _asked("get", "pods", "-n", namespace, "-l", chosen)["items"]
    found = [pod for pod in pods if _container(pod) is not None]
    ready = [pod for pod in found if _is_ready(pod)]
    if not found:
        raise InputError(f"--server: namespace {namespace} has no daemon of a Helm release {release}; helm list -A")
    if not ready:
        names = ", ".join(sorted(pod["metadata"]["name"] for pod in found))
        raise TransientError(f"{namespace}/{release}: not Ready: {names}; kubectl -n {namespace} describe pod {names}")
    return ready


def _container(pod: Mapping[str, Any]) -> dict[str, Any] | None:
    for container in pod["spec"]["containers"]:
        if any(port.get("name") == PORT for port in container.get("ports", ())):
            return dict(container)
    return None


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _leading(pods: Sequence[dict[str, Any]], namespace: str) -> dict[str, Any]:
    """Of several the one whose name a lease of the namespace bears: a stand-by knows of no plan."""
    if len(pods) == 1:
        return pods[0]
    leases = _asked("get", "leases", "-n", namespace)["items"]
    holders = {str(lease["spec"].get("holderIdentity", "")).partition("_")[0] for lease in leases}
    leader = next((pod for pod in pods if pod["metadata"]["name"] in holders), None)
    if leader is None:
        raise TransientError(f"namespace {namespace}: none of its daemons leads just now; try again in a moment")
    return leader


def _service(pod: Mapping[str, Any]) -> str:
    """The chart's Service is called as what makes its pods: of a Deployment's `htas-5d4f`, `htas`."""
    owner = next((each["name"] for each in pod["metadata"].get("ownerReferences", ())), pod["metadata"]["name"])
    revision = pod["metadata"].get("labels", {}).get("pod-template-hash", "")
    return str(owner).removesuffix(f"-{revision}")


def _token(pod: Mapping[str, Any], container: Mapping[str, Any], namespace: str) -> str:
    """What the Secret holds that the daemon takes its token from; empty: it takes none."""
    from base64 import b64decode

    mounts = {mount["mountPath"]: mount["name"] for mount in container.get("volumeMounts", ())}
    volumes = [each for each in pod["spec"].get("volumes", ()) if "secret" in each]
    secrets = {each["name"]: each["secret"]["secretName"] for each in volumes}
    secret = secrets.get(mounts.get(TOKEN_AT, ""))
    if secret is None:
        return ""
    try:
        held = _asked("get", "secret", secret, "-n", namespace).get("data", {})
    except PermanentError as error:
        raise PermanentError(f"{error}; name a token with --token-file") from None
    return b64decode(held.get("token", "")).decode("ascii", "replace").strip()


def _asked(*words: str) -> dict[str, Any]:
    """What kubectl answers, as JSON."""
    command = ["kubectl", *words, "-o", "json", f"--request-timeout={ANSWER_S:.0f}s"]
    try:
        # No deadline beside kubectl's own: a plugin of its may send somebody to a page to log in.
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise PermanentError(f"kubectl: {error.strerror}; a daemon is asked by name through kubectl") from error
    if done.returncode != 0:
        raise PermanentError(f"kubectl {' '.join(words[:2])}: {_last_line(done.stderr)}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _last_line(said: str) -> str:
    return next(reversed(said.strip().splitlines()), "it failed, and says nothing")


def _forward(namespace: str, pod: str, port: int) -> int:
    """Have kubectl forward a free port until this process ends; which one."""
    command = ["kubectl", "port-forward", "-n", namespace, f"pod/{pod}", f":{port}", "--address=127.0.0.1"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    atexit.register(_end, process)
    # Ended by a signal Python runs nothing that was registered, and kubectl would stay.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    lines: SimpleQueue[str] = SimpleQueue()
    assert process.stdout is not None
    Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    try:
        said = lines.get(timeout=ANSWER_S)
    except Empty:
        raise TransientError(f"kubectl port-forward pod/{pod}: no answer within {ANSWER_S:.0f} s") from None
    local = _FORWARDING.match(said)
    if local is None:
        raise TransientError(f"kubectl port-forward pod/{pod}: {said.strip() or 'it ended'}")
    return int(local[1])


def _read(pipe: IO[str], lines: SimpleQueue[str]) -> None:
    """The first line is what matters; kubectl writes one for each connection, and must not wait for a reader."""
    lines.put(pipe.readline())
    for _ in pipe:
        pass


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()
