"""Archives from node to node by ssh: nodes are this machine, and ssh runs its commands here."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from htas.adapters.migration.copying import scp
from htas.adapters.migration.copying.image import checkpoint_image, head, tail
from htas.adapters.migration.copying.scp import SecureCopies, known_host
from htas.adapters.migration.method import Delivered, StepFailedError
from htas.model.migrations import Failure, SecureCopy
from tests.programs import write_program
from tests.unit.adapters.migration.pods import a_record
from tests.waiting import until

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("ssh-keygen", "timeout", "base64"))), reason="needs ssh-keygen and the coreutils"
)

SSH = r"""#!/bin/sh
here=$(dirname "$0")
case "$*" in
  "-F /dev/null"*) mark=sent ;;
  *) mark=asked ;;
esac
printf '%s\n' "$*" | head -n 1 >>"$here/$mark"
for last; do case $last in UserKnownHostsFile=/dev/shm/*) cat "${last#*=}" >"$here/known-there" ;; esac; done
[ $mark = asked ] || [ ! -e "$here/closed" ] || { cat "$here/closed" >&2; exit 255; }
[ $mark = asked ] || [ ! -e "$here/cut" ] || { head -c 1000 | sh -c "$last"; exit 255; }
exec sh -c "$last"
"""
AGENT = '#!/bin/sh\nprintf "%s\\n" "$*" >>"$(dirname "$0")/lent"\nexec "$@"\n'
ADD = '#!/bin/sh\nprintf "%s\\n" "$*" >>"$(dirname "$0")/added"\n'
CTR = """#!/bin/sh
here=$(dirname "$0")
case "$*" in
  *import*)
    [ ! -e "$here/slow" ] || { echo $$ >"$here/importing"; head -c 1000 >/dev/null; exec sleep 60; }
    cat >"$here/imported"
    [ ! -e "$here/cut" ] || { echo unexpected EOF >&2; exit 1; }
    [ ! -e "$here/full" ] || { echo No space left on device >&2; exit 1; } ;;
  *" ls") echo "REF TYPE DIGEST"; cat "$here/images";;
  *" rm "*) printf '%s\\n' "$*" >>"$here/removed";;
esac
"""
ARCHIVE = b"memory" * 100_000


class Nodes:
    """What is on them, which are all this machine."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.archive, self.known = directory / "checkpoint.tar", directory / "known_hosts"

    def make(self) -> None:
        for name, text in (("ssh", SSH), ("ssh-agent", AGENT), ("ssh-add", ADD), ("ctr", CTR)):
            write_program(self.directory / name, text)
        self.archive.write_bytes(ARCHIVE)
        self.known.write_text("192.0.2.1 ssh-ed25519 AAAS\n192.0.2.2 ssh-ed25519 AAAT\n192.0.2.9 ssh-ed25519 AAAX\n")

    def copies(self, **options: Any) -> SecureCopies:
        setting = SecureCopy("mover", 22, "/keys/id", str(self.known))
        address = {"a": "192.0.2.1", "b": "192.0.2.2"}.__getitem__
        return SecureCopies(setting, address, **options)

    def deliver(self, within_s: float = 60.0) -> Delivered:
        return self.copies().deliver(a_record(), "main", str(self.archive), within_s)

    def read(self, name: str) -> str:
        path = self.directory / name
        return path.read_text() if path.exists() else ""


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    found = Nodes(tmp_path)
    found.make()
    return found


def left_behind() -> list[Path]:
    return list(Path("/dev/shm").glob(f"htas-move-{a_record().id}-*"))


def test_an_archive_arrives_as_an_image(nodes: Nodes) -> None:
    sent = nodes.deliver()
    name, digest = nodes.copies().image_of(a_record(), "main"), hashlib.sha256(ARCHIVE).hexdigest()
    assert sent == Delivered((name,), (digest,), len(ARCHIVE))
    image = checkpoint_image("main", digest, sent.size)
    assert (nodes.directory / "imported").read_bytes() == head(image, name) + ARCHIVE + tail(image)
    assert not left_behind()


def test_the_source_sends_it_with_a_key_lent_for_that_way_alone(nodes: Nodes) -> None:
    nodes.deliver()
    looked, sending = (nodes.read("asked").splitlines()[i] for i in (0, 1))
    assert " -a " in looked and " -A " in sending
    assert "-l mover -- 192.0.2.1 timeout" in sending
    ways = "-h mover@192.0.2.1 -h 192.0.2.1>mover@192.0.2.2"
    assert nodes.read("added").strip() == f"-q -H {nodes.known} {ways} /keys/id"
    assert "-o IdentityFile=none" in nodes.read("sent")
    assert "-l mover -- 192.0.2.2 sh -c" in nodes.read("sent")


def test_host_keys_are_pinned_and_nobody_is_asked(nodes: Nodes) -> None:
    nodes.deliver()
    for said in (*nodes.read("asked").splitlines()[:1], nodes.read("sent")):
        assert "StrictHostKeyChecking=yes" in said and "BatchMode=yes" in said
    assert f"UserKnownHostsFile={nodes.known}" in nodes.read("asked")
    assert nodes.read("known-there") == "192.0.2.2 ssh-ed25519 AAAT\n", "the target's lines alone"


@pytest.mark.parametrize(
    ("text", "hosts", "lines"),
    [
        pytest.param("[192.0.2.2]:2222 ssh-ed25519 AAAP", ["[192.0.2.2]:2222"], 1, id="by its port"),
        pytest.param("192.0.2.2 ssh-ed25519 AAAT", ["192.0.2.2"], 1, id="without a port"),
        pytest.param(
            "@cert-authority * ssh-ed25519 AAAC", ["[192.0.2.2]:2222", "192.0.2.2"], 1, id="an authority of all"
        ),
        pytest.param("192.0.2.2 ssh-ed25519 A\n* ssh-ed25519 B", ["[192.0.2.2]:2222", "192.0.2.2"], 2, id="two keys"),
    ],
)
def test_a_node_is_known_by_its_lines(text: str, hosts: list[str], lines: int, tmp_path: Path) -> None:
    (tmp_path / "known").write_text(f"{text}\n")
    found = known_host(SecureCopy("m", 2222, known_hosts_file=str(tmp_path / "known")), "192.0.2.2")
    assert found[0] == hosts and len(found[1]) == lines


def test_a_target_whose_key_is_unknown_gets_nothing(nodes: Nodes) -> None:
    nodes.known.write_text("192.0.2.1 ssh-ed25519 AAAS\n")
    with pytest.raises(StepFailedError, match="has no key of 192"):
        nodes.deliver()
    assert not nodes.read("sent")


@pytest.mark.parametrize(
    ("trouble", "said", "reason"),
    [
        pytest.param(
            "closed", "ssh: connect to host 192.0.2.2 port 22: No route to host", Failure.TRANSFER_FAILED, id="no way"
        ),
        pytest.param("cut", "", Failure.TRANSFER_FAILED, id="cut off"),
        pytest.param("full", "", Failure.NO_SPACE, id="no space at the target"),
    ],
)
def test_a_copy_that_fails_says_why(trouble: str, said: str, reason: Failure, nodes: Nodes) -> None:
    (nodes.directory / trouble).write_text(said)
    with pytest.raises(StepFailedError) as failed:
        nodes.deliver()
    assert failed.value.reason is reason and said in failed.value.detail
    assert not left_behind()


def test_an_archive_that_is_gone_is_told(nodes: Nodes) -> None:
    nodes.archive.unlink()
    with pytest.raises(StepFailedError, match="No such file"):
        nodes.deliver()


def test_a_copy_that_stands_still_is_given_up_and_leaves_nothing(nodes: Nodes) -> None:
    (nodes.directory / "slow").touch()
    with pytest.raises(StepFailedError) as failed:
        nodes.deliver(3.0)
    assert failed.value.reason is Failure.DEADLINE
    until(lambda: not left_behind(), within_s=60.0)


DAEMON = """
import sys
from pathlib import Path
from tests.unit.adapters.migration import test_scp
test_scp.Nodes(Path(sys.argv[1])).deliver(100.0)
"""


def test_a_daemon_that_is_killed_in_the_middle_leaves_nothing(nodes: Nodes) -> None:
    (nodes.directory / "slow").touch()
    daemon = subprocess.Popen([sys.executable, "-c", DAEMON, nodes.directory], env={**os.environ, "PYTHONPATH": "."})
    until(lambda: bool(nodes.read("importing")), within_s=100.0)  # a process starts, beside whatever else there is
    assert left_behind()
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    until(lambda: not left_behind(), within_s=60.0)


def test_both_names_of_a_moves_images_are_removed_and_no_others(nodes: Nodes) -> None:
    one, two = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
    ours = {f"localhost/htas-checkpoint/main:{one}-1": "sha256:a", "sha256:id-a": "sha256:a"}
    others = {f"localhost/htas-checkpoint/main:{two}-1": "sha256:b", "app:1": "sha256:c"}
    images, removed = nodes.directory / "images", nodes.directory / "removed"
    images.write_text("".join(f"{name} type {digest}\n" for name, digest in (ours | others).items()))
    nodes.copies().forget("b", one)
    assert set(removed.read_text().split()[4:]) == set(ours)
    removed.unlink()
    nodes.copies().sweep("b", [one])
    assert set(removed.read_text().split()[4:]) == {f"localhost/htas-checkpoint/main:{two}-1"}


@pytest.mark.parametrize("forged", ["............", "x'; touch owned; '", "", "AAAAAAAAAAAA"])
def test_what_is_no_id_is_no_part_of_a_command(forged: str, nodes: Nodes) -> None:
    image = "localhost/htas-checkpoint/main:bbbbbbbbbbbb-1"
    (nodes.directory / "images").write_text(f"{image} type sha256:b\n")
    nodes.copies().forget("b", forged)
    assert not nodes.read("removed")
    nodes.copies().sweep("b", [forged])
    assert image in nodes.read("removed"), "nothing is kept by a pattern"


NAMES = [
    "checkpoint-train-x_default-main-2026-11-21T10:00:00Z.tar",
    "checkpoint-train-x_default-main-2026-11-21T10:00:00+01:00.tar",
    "checkpoint-train-x_default-main-log-2026-11-21T10:00:00Z.tar",
    "checkpoint-train-x_default-b-main-2026-11-21T10:00:00Z.tar",
    "checkpoint-train-x_default-main-notes.tar",
]


def test_archives_of_a_moves_containers_are_removed_whatever_the_nodes_clock_says(nodes: Nodes) -> None:
    """HTAS's own is an hour ahead. Containers and namespaces whose names begin alike keep theirs."""
    began = 1000.0
    directory = nodes.directory / "checkpoints"
    directory.mkdir()
    for name in NAMES:
        (directory / name).write_text("memory")
    old = directory / NAMES[0].replace("10:00:00", "09:00:00")
    old.write_text("from before the move")
    os.utime(old, (time.time() - 600, time.time() - 600))
    copies = nodes.copies(clock=lambda: began + 60.0, archives=str(directory))
    copies.clean_source(a_record(started_at=began))
    assert {path.name for path in directory.iterdir()} == {old.name, *NAMES[2:]}


def test_only_a_pods_own_archives_are_removed_by_their_paths(nodes: Nodes) -> None:
    directory = nodes.directory / "checkpoints"
    directory.mkdir()
    known, other = directory / NAMES[0], directory / NAMES[3]
    for path in (known, other):
        path.write_text("memory")
        os.utime(path, (500.0, 500.0))
    paths = f"{known} {other} {nodes.directory}/{NAMES[0]} /etc/shadow"
    nodes.copies(archives=str(directory)).clean_source(a_record(archive=paths, started_at=time.time()))
    assert list(directory.iterdir()) == [other]


def test_a_kubelet_that_has_signed_no_certificate_has_none_of_its_own(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With serverTLSBootstrap the cluster's CA signs it."""
    monkeypatch.setattr(scp, "CERTIFICATE", str(nodes.directory / "kubelet.crt"))
    assert nodes.copies().certificate("a") == ""
    (nodes.directory / "kubelet.crt").write_text("PEM")
    assert nodes.copies().certificate("a") == "PEM"
