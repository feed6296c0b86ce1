"""The transfer scp: an archive goes by ssh from its node to the target's, which imports it as an image.

    daemon ── ssh ──> source ══ ssh, the archive ══> target

No byte of an archive passes the daemon. The source logs in to the target with the daemon's key: an ssh-agent lends it
for this way alone, and the key itself never leaves the daemon. Both ends stop when their connection to the daemon ends.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from math import ceil

from htas.adapters.migration.copying.image import (
    ARCHIVES,
    USUAL,
    CheckpointImage,
    archives_of,
    checkpoint_image,
    head,
    tag_of,
    tail,
)
from htas.adapters.migration.documents import IDS
from htas.adapters.migration.method import Delivered, StepFailedError, copy_failure, shortened
from htas.model.migrations import Failure, MigrationRecord, SecureCopy

CERTIFICATE = "/var/lib/kubelet/pki/kubelet.crt"
REPOSITORY = "localhost/htas-checkpoint"
"""The prefix of checkpoint images' names on nodes."""
LOOK_S = 20.0
"""Limit for a command that moves no bytes."""
INSTANT = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*"
"""A pattern for RFC 3339. Container names have no capital T, so another container's archive does not match."""
IMPORT = "trap '' HUP; ctr -n k8s.io images import --local - >/dev/null && ctr -n k8s.io images label {} {} >/dev/null"
"""A broken connection is the end of the file to the importer, which then cleans up."""
PINNED = "io.cri-containerd.pinned=pinned"
"""Keeps the kubelet from removing the image as unused: the restored container reports its base image."""
OPTIONS = shlex.split(
    "-o BatchMode=yes -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null -o UpdateHostKeys=no"
    " -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o LogLevel=ERROR"
    " -o Ciphers=^aes128-gcm@openssh.com"  # several times as fast as the default
)
SEND = r"""
known=$(mktemp "/dev/shm/$0-XXXXXX") && printf '%s\n' "$1" >"$known" || exit 1
trap 'rm -f "$known"' EXIT
trap "trap '' HUP INT TERM PIPE; exit 1" HUP INT TERM PIPE
archive=$2 head=$3 zeros=$4
shift 4
exec 3<&0
{ printf %s "$head" | base64 -d && cat "$archive" && head -c "$zeros" /dev/zero; } 3<&- |
  ssh -F /dev/null -T -o IdentityFile=none -o UserKnownHostsFile="$known" "$@" 3<&- &
sender=$!
{ read -r _; kill 0; } <&3 >/dev/null 2>&1 &
wait "$sender"
code=$?
kill $!
exit "$code"
"""
"""On the source: KNOWN_HOSTS ARCHIVE HEAD ZEROS and the words of ssh. The end of standard input ends it."""


class SecureCopies:
    """Implements Copies. `address_of(node)` may raise what the API server answers."""

    pull_policy = "Never"

    def __init__(
        self,
        setting: SecureCopy,
        address_of: Callable[[str], str],
        clock: Callable[[], float] = time.time,
        archives: str = ARCHIVES,
    ) -> None:
        self.archives = archives
        self._setting = setting
        self._address_of = address_of
        self._clock = clock

    def certificate(self, node: str) -> str:
        """The certificate that a kubelet has signed for itself; empty where it has none."""
        return self._at(node, f"test ! -e {CERTIFICATE} || cat {CERTIFICATE}", Failure.CHECKPOINT_FAILED)

    def complaint(self, node: str, words: str) -> str:
        """What a kubelet said of a dump that failed, and the end of the log that it names."""
        match = re.search(r"path=\s*(/\S+?\.log)", words)
        if match is None:
            return words
        try:
            return self._at(node, f"grep -i error {shlex.quote(match[1])} | tail -n 5") or words
        except StepFailedError:
            return words

    def image_of(self, record: MigrationRecord, container: str) -> str:
        return f"{REPOSITORY}/{container.lower()}:{tag_of(record)}"

    def deliver(
        self, record: MigrationRecord, container: str, archive: str, within_s: float, architecture: str = USUAL
    ) -> Delivered:
        """Bring an archive to the target as an image; containerd verifies the digest that the source reported."""
        until, name = time.monotonic() + within_s, self.image_of(record, container)
        path = shlex.quote(archive)
        said = self._at(record.source, f"sha256sum < {path} && stat -c %s {path}", within_s=within_s)
        match = re.fullmatch(r"([0-9a-f]{64})\s+-\s+([0-9]+)\s*", said)
        if match is None:
            raise StepFailedError(Failure.TRANSFER_FAILED, f"the archive cannot be read: {shortened(said)}")
        image = checkpoint_image(container, match[1], int(match[2]), architecture)
        self._send(record, archive, image, name, until - time.monotonic())
        return Delivered((name,), (image.layer.digest,), image.layer.size)

    def _send(self, record: MigrationRecord, archive: str, image: CheckpointImage, name: str, within_s: float) -> None:
        """Through the source, with a key for two log-ins alone: to it, and from it to the target (OpenSSH 8.9)."""
        setting, mark = self._setting, f"htas-move-{record.id}"
        address = self._address_of(record.target)
        sources, _ = known_host(setting, self._address_of(record.source))
        targets, keys = known_host(setting, address)
        importing = shlex.join(["sh", "-c", IMPORT.format(shlex.quote(name), PINNED), mark])
        there = [*OPTIONS, "-p", str(setting.port), "-l", setting.user, "--", address, importing]
        words = ["\n".join(keys), archive, b64encode(head(image, name)).decode(), str(len(tail(image))), *there]
        command = shlex.join(["timeout", str(ceil(within_s) + 10), "sh", "-c", SEND, mark, *words])
        ways = [f"{setting.user}@{host}" for host in sources]
        ways += [f"{host}>{setting.user}@{other}" for host in sources for other in targets]
        constraints = ["-H", setting.known_hosts_file, *(word for way in ways for word in ("-h", way))]
        adding = shlex.join(["ssh-add", "-q", *constraints, setting.identity_file])
        lending = ["ssh-agent", "sh", "-c", f'{adding} && exec "$@"', "lend"]
        self._at(record.source, command, within_s=within_s, lending=lending)

    def clean_source(self, record: MigrationRecord) -> None:
        """Remove the archives of a move, also those no older than it that the kubelet never reported."""
        namespace, _, pod = record.pod.partition("/")
        removing = [f"rm -f -- {shlex.quote(path)}" for path in archives_of(record, self.archives)]
        age_s = max(1, int(self._clock() - record.started_at) + 2)  # by the node's own clock
        for container in record.containers:
            pattern = shlex.quote(f"checkpoint-{pod}_{namespace}-{container}-{INSTANT}.tar")
            where = f"find {shlex.quote(self.archives)} -maxdepth 1 -name {pattern}"
            removing.append(f"{where} -newermt '-{age_s} seconds' -delete 2>/dev/null")
        self._at(record.source, "; ".join([*removing, "true"]))

    def clean_target(self, record: MigrationRecord) -> None:
        self.forget(record.target, record.id)

    def forget(self, node: str, move: str) -> None:
        """Remove the images of a move."""
        if IDS.fullmatch(move):
            self._at(node, _forgetting(f"{REPOSITORY}/.*:{move}-"))

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        """Remove the images of all moves but those whose ids are given."""
        kept = "|".join([*filter(IDS.fullmatch, keep), "no-move"])
        self._at(node, _forgetting(f"{REPOSITORY}/", f":({kept})-"))

    def _at(
        self,
        node: str,
        command: str,
        otherwise: Failure = Failure.TRANSFER_FAILED,
        within_s: float = LOOK_S,
        lending: Sequence[str] = (),
    ) -> str:
        """What a command prints on a node; raises StepFailedError. Its standard input ends with this process."""
        setting = self._setting
        known = ["-o", f"UserKnownHostsFile={setting.known_hosts_file}", "-o", "IdentitiesOnly=yes"]
        to = ["-i", setting.identity_file, "-p", str(setting.port), "-l", setting.user, "--", self._address_of(node)]
        ssh = [*lending, "ssh", *OPTIONS, *known, "-A" if lending else "-a", *to, command]
        ours, theirs = os.pipe()
        try:
            done = subprocess.run(ssh, stdin=ours, capture_output=True, timeout=max(0.1, within_s), check=False)
        except subprocess.TimeoutExpired as error:
            raise StepFailedError(Failure.DEADLINE, f"{node} did not answer within {within_s:.0f} s") from error
        finally:
            os.close(ours)
            os.close(theirs)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace")
            raise copy_failure(f"{node}: {shortened(said) or f'exit code {done.returncode}'}", otherwise)
        return done.stdout.decode("utf-8", "replace")


def known_host(setting: SecureCopy, address: str) -> tuple[list[str], list[str]]:
    """What the file of known hosts calls a node, and its lines: keys, patterns, authorities, revocations."""
    found: dict[str, list[str]] = {}
    for host in [f"[{address}]:{setting.port}", address] if setting.port != 22 else [address]:
        command = ["ssh-keygen", "-F", host, "-f", setting.known_hosts_file]
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
        found[host] = [line for line in told if line and not line.startswith("#")]
    lines = list(dict.fromkeys(line for each in found.values() for line in each))
    if not lines:
        raise StepFailedError(Failure.TRANSFER_FAILED, f"{setting.known_hosts_file} has no key of {address}")
    return [host for host, each in found.items() if each], lines


def _forgetting(pattern: str, but: str = "$^") -> str:
    """Remove images by their names. Each has a second name, by its id: removing one name alone frees nothing."""
    listing = "ctr -n k8s.io images ls"
    ours = f'$1 ~ "^{pattern}" && $1 !~ "{but}" {{ours[$3]}} {{all[$1] = $3}}'
    program = f"{ours} END {{for (name in all) if (all[name] in ours) print name}}"
    names = f"{listing} | awk {shlex.quote(program)}"
    return f'names=$({names}) && {{ [ -z "$names" ] || ctr -n k8s.io images rm $names >/dev/null; }}'
