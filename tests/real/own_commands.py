"""What an operator's own executable may look like: one program for all steps (docs/migration.md), by kubectl and ssh.

It is started with the variables of the contract, and with KUBECTL, KUBECONFIG and SSH (a command and its options).
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys

from htas.adapters.migration.copying.image import checkpoint_image, head, tail

REFUSED = 77
REPOSITORY = "localhost/own-checkpoint"


def told(name: str) -> str:
    return os.environ[f"HTAS_{name}"]


def on(address: str, command: str, stdin: bytes = b"") -> bytes:
    """What a command on a node prints."""
    ssh = [*shlex.split(os.environ["SSH"]), address, command]
    return subprocess.run(ssh, input=stdin, stdout=subprocess.PIPE, check=True).stdout


def kubectl(*arguments: str, stdin: bytes = b"") -> bytes:
    command = [os.environ["KUBECTL"], *arguments]
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True).stdout


def checkpoint() -> None:
    if " " in told("CONTAINERS"):
        sys.stderr.write("pods of several containers are not moved here\n")
        sys.exit(REFUSED)
    pod = f"{told('NAMESPACE')}/{told('POD')}/{told('CONTAINERS')}"
    answer = kubectl("create", "--raw", f"/api/v1/nodes/{told('SOURCE_NODE')}/proxy/checkpoint/{pod}", "-f", "-")
    sys.stdout.write(f"{json.loads(answer)['items'][0]}\n")


def transfer() -> None:
    archive = on(told("SOURCE_ADDRESS"), f"cat {told('ARCHIVE')}")
    name = f"{REPOSITORY}:{told('MIGRATION')}-{told('ATTEMPT')}"
    image = checkpoint_image(told("CONTAINERS"), hashlib.sha256(archive).hexdigest(), len(archive))
    on(told("TARGET_ADDRESS"), "ctr -n k8s.io images import --local -", head(image, name) + archive + tail(image))
    sys.stdout.write(f"{name}\n{len(archive)}\n")


def restore() -> None:
    manifest = sys.stdin.buffer.read()
    if not kubectl("get", "pod", told("TWIN"), "-n", told("NAMESPACE"), "--ignore-not-found"):
        kubectl("create", "-f", "-", stdin=manifest)


def abort() -> None:
    if told("WHY") != "gone":
        on(told("SOURCE_ADDRESS"), f"rm -f {told('ARCHIVE')}")
    if told("WHY") != "done":
        target = os.environ.get("HTAS_TARGET_ADDRESS") or address_of(told("TARGET_NODE"))
        ours = f'$1 ~ ":{told("MIGRATION")}-" {{ours[$3]}} {{all[$1] = $3}}'
        names = f"ctr -n k8s.io images ls | awk '{ours} END {{for (n in all) if (all[n] in ours) print n}}'"
        on(target, f"{names} | xargs -r ctr -n k8s.io images rm")


def address_of(node: str) -> str:
    path = "jsonpath={.status.addresses[?(@.type=='InternalIP')].address}"
    return kubectl("get", "node", node, "-o", path).decode()


{"checkpoint": checkpoint, "transfer": transfer, "restore": restore, "abort": abort}[told("STEP")]()
