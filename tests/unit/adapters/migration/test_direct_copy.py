"""Archives straight from node to node: nodes are this machine, ssh runs its commands here and lets in whom sshd would."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from htas.adapters.migration.copying.image import checkpoint_image, head, tail
from htas.adapters.migration.copying.secure_copy import NoWayError, SecureCopies, known_hosts
from htas.adapters.migration.copying.shell import Shell
from htas.adapters.migration.method import Delivered, StepFailedError
from htas.model.migrations import Failure, SecureCopy
from tests.programs import write_program
from tests.unit.adapters.migration.pods import a_record
from tests.waiting import until

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("ssh-keygen", "flock", "mkfifo", "timeout"))), reason="needs ssh-keygen and util-linux"
)

SSH = r"""#!/bin/sh
here=$(dirname "$0")
case "$*" in
  "-F /dev/null"*) ;;
  *) echo "$*" | head -n 1 >>"$here/asked"; for last; do :; done; exec sh -c "$last" ;;
esac
while [ $# -gt 0 ]; do
  case $1 in -i) id=$2 ;; -b) from=$2 ;; UserKnownHostsFile=*) cat "${1#*=}" >"$here/known-there" ;; esac
  shift
done
[ ! -e "$here/closed" ] || { cat "$here/closed" >&2; exit 255; }
line=$(grep -F "$(cut -d ' ' -f 2 "$id.pub")" "$HOME/.ssh/authorized_keys" | grep -F "from=\"$from\"") ||
  { echo 'Permission denied (publickey).' >&2; exit 255; }
printf '%s\n' "$line" >>"$here/let-in"
stat -c '%a %n' "$id" "${id%/*}" >>"$here/modes"
command=$(printf '%s' "$line" | sed 's/.*command="\([^"]*\)".*/\1/')
[ ! -e "$here/cut" ] || { head -c 1000 | sh -c "$command"; exit 255; }
[ ! -e "$here/slow" ] || { { head -c 1000; exec sleep 60; } | sh -c "$command"; exit; }
exec sh -c "$command"
"""
CTR = """#!/bin/sh
case "$*" in
  *import*) cat >"$(dirname "$0")/imported"; [ ! -e "$(dirname "$0")/cut" ] || { echo unexpected EOF >&2; exit 1; } ;;
esac
"""
KEYS = "ssh-rsa AAAA operator@desk\nssh-ed25519 AAAB backup"
"""An operator's, without a newline at its end: one more line must not become part of its last."""
ARCHIVE = b"memory" * 100_000


class Nodes:
    """What is on them, which are all this machine."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.place = directory, directory / "shm"
        self.keys = directory / ".ssh" / "authorized_keys"
        self.archive = directory / "checkpoint.tar"
        self.known = directory / "known_hosts"
        for path in (self.place, self.keys.parent):
            path.mkdir()
        for name, text in (("ssh", SSH), ("ctr", CTR)):
            write_program(directory / name, text)
        self.keys.write_text(KEYS)
        self.keys.chmod(0o640)
        self.archive.write_bytes(ARCHIVE)
        self.known.write_text("192.0.2.2 ssh-ed25519 AAAT\n192.0.2.9 ssh-ed25519 AAAX\n")

    @property
    def copies(self) -> SecureCopies:
        setting = SecureCopy("mover", 22, "/keys/id", str(self.known))
        address = {"a": "192.0.2.1", "b": "192.0.2.2"}.__getitem__
        return SecureCopies(Shell(setting), setting, address, place=str(self.place))

    def deliver(self, copies: SecureCopies | None = None) -> Delivered:
        return (copies or self.copies).deliver(a_record(), "main", str(self.archive), 20.0)

    def read(self, name: str) -> str:
        path = self.directory / name
        return path.read_text() if path.exists() else ""

    def is_clean(self) -> bool:
        """Nothing is left but the operator's keys, in their file, of its mode."""
        is_kept = self.keys.read_text().rstrip("\n") == KEYS and self.keys.stat().st_mode & 0o777 == 0o640
        return is_kept and not list(self.place.iterdir()) and len(list(self.keys.parent.iterdir())) == 1


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    return Nodes(tmp_path)


def test_an_archive_arrives_as_an_image_and_no_byte_of_it_passes_the_daemon(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shell, "stream", lambda *_: pytest.fail("it went through the daemon"))
    sent = nodes.deliver()
    name, digest = nodes.copies.image_of(a_record(), "main"), hashlib.sha256(ARCHIVE).hexdigest()
    assert sent == Delivered((name,), (digest,), len(ARCHIVE))
    image = checkpoint_image("main", digest, sent.size)
    assert (nodes.directory / "imported").read_bytes() == head(image, name) + ARCHIVE + tail(image)
    assert nodes.is_clean()


def test_a_key_is_let_in_for_one_pipe_from_one_address_for_a_while(nodes: Nodes) -> None:
    nodes.deliver()
    nodes.deliver()
    first, second = nodes.read("let-in").splitlines()
    options, _, key = first.partition(" ssh-ed25519 ")
    assert options.startswith('restrict,from="192.0.2.1",expiry-time="20')
    forced = options.partition('command="')[2]
    assert forced.startswith("exec timeout 20 sh -c 'echo here; exec cat >")
    assert f"{nodes.place}/htas-move-" in forced
    assert key.split()[0] not in second, "the next copy has another key"
    assert {line.split()[0] for line in nodes.read("modes").splitlines()} == {"600", "700"}


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        pytest.param("192.0.2.2 ssh-ed25519 AAAT", True, id="the target's own"),
        pytest.param("@cert-authority * ssh-ed25519 AAAC", True, id="an authority of all"),
        pytest.param("* ssh-ed25519 AAAS", True, id="one key for all"),
        pytest.param("192.0.2.9 ssh-ed25519 AAAX", False, id="another node's"),
    ],
)
def test_the_source_knows_the_target_by_what_the_daemon_knows_it_by(line: str, is_told: bool, nodes: Nodes) -> None:
    nodes.known.write_text(f"{line}\n")
    detour = nodes.deliver().detour
    assert (nodes.read("known-there").strip() == line) is is_told
    assert bool(detour) is not is_told, "where the daemon knows no key, nothing is accepted on trust"


def test_another_port_has_host_keys_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "known").write_text("[192.0.2.2]:2222 ssh-ed25519 AAAP\n192.0.2.2 ssh-ed25519 AAAT\n")
    setting = SecureCopy(port=2222, known_hosts_file=str(tmp_path / "known"))
    assert known_hosts(setting, "192.0.2.2") == ["[192.0.2.2]:2222 ssh-ed25519 AAAP"]
    with pytest.raises(NoWayError, match=r"no key of 192\.0\.2\.3"):
        known_hosts(setting, "192.0.2.3")


def test_where_the_source_cannot_reach_the_target_the_daemon_carries_and_says_why(nodes: Nodes) -> None:
    (nodes.directory / "closed").write_text("ssh: connect to host 192.0.2.2 port 22: Connection timed out\n")
    copies = nodes.copies
    sent = nodes.deliver(copies)
    assert sent.digests[0] == hashlib.sha256(ARCHIVE).hexdigest()
    assert "a cannot send to b: source: ssh: connect to host" in sent.detour
    (nodes.directory / "closed").unlink()
    (nodes.directory / "let-in").unlink(missing_ok=True)
    assert nodes.deliver(copies).detour == sent.detour
    assert not nodes.read("let-in"), "the way is not tried again at once: each try may take seconds"
    assert not nodes.deliver().detour
    assert nodes.is_clean()


def test_a_server_that_is_busy_for_a_moment_is_asked_directly_the_next_time(nodes: Nodes) -> None:
    (nodes.directory / "closed").write_text("kex_exchange_identification: read: Connection reset by peer\n")
    copies = nodes.copies
    assert nodes.deliver(copies).detour
    (nodes.directory / "closed").unlink()
    assert not nodes.deliver(copies).detour


@pytest.mark.parametrize(
    "said",
    [
        pytest.param('ssh-ed25519 AAAA",command="reboot', id="an option"),
        pytest.param("ssh-rsa " + "A" * 68, id="another kind"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_a_source_says_instead_of_a_key_is_let_in_nowhere(said: str, nodes: Nodes) -> None:
    # The first word tells a look-up: a random directory "htas-move-…-Fx" has "-F" in it once in 62 times.
    forged = f"#!/bin/sh\ncase $1 in -F) exec /usr/bin/ssh-keygen \"$@\" ;; esac\nfor f; do :; done; printf '%s\\n' '{said}' >$f.pub; : >$f\n"
    write_program(nodes.directory / "ssh-keygen", forged)
    assert nodes.deliver().detour
    assert not nodes.read("let-in")
    assert nodes.is_clean()


def test_a_copy_that_breaks_off_fails_its_attempt_and_the_next_goes_through_the_daemon(nodes: Nodes) -> None:
    (nodes.directory / "cut").touch()
    copies = nodes.copies
    with pytest.raises(StepFailedError) as failed:
        nodes.deliver(copies)
    assert failed.value.reason is Failure.TRANSFER_FAILED
    assert nodes.is_clean()
    (nodes.directory / "cut").unlink()
    assert "the copy before failed" in nodes.deliver(copies).detour


def test_an_archive_that_cannot_be_read_closes_no_way(nodes: Nodes) -> None:
    copies = nodes.copies
    nodes.archive.unlink()
    with pytest.raises(StepFailedError, match="the archive cannot be read"):
        nodes.deliver(copies)
    nodes.archive.write_bytes(ARCHIVE)
    assert not nodes.deliver(copies).detour
    assert nodes.is_clean()


def test_a_copy_that_stands_still_is_given_up_and_leaves_nothing(nodes: Nodes) -> None:
    (nodes.directory / "slow").touch()
    with pytest.raises(StepFailedError) as failed:
        nodes.copies.deliver(a_record(), "main", str(nodes.archive), 1.0)
    assert failed.value.reason is Failure.DEADLINE
    until(nodes.is_clean)


DAEMON = """
import sys
from pathlib import Path
from tests.unit.adapters.migration import test_direct_copy as t
nodes = t.Nodes.__new__(t.Nodes)
nodes.directory = Path(sys.argv[1])
nodes.place, nodes.known, nodes.archive = (nodes.directory / n for n in ("shm", "known_hosts", "checkpoint.tar"))
nodes.deliver()
"""


def test_a_daemon_that_is_killed_in_the_middle_leaves_nothing(nodes: Nodes) -> None:
    (nodes.directory / "slow").touch()
    daemon = subprocess.Popen([sys.executable, "-c", DAEMON, nodes.directory], env={**os.environ, "PYTHONPATH": "."})
    until(lambda: bool(nodes.read("modes")), within_s=60.0)  # a process starts, beside whatever else the machine does
    assert "htas-move-" in nodes.keys.read_text()
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    until(nodes.is_clean)


def test_what_a_killed_script_left_is_removed_at_the_next_start_and_no_more(nodes: Nodes) -> None:
    """Its own end was not given to it: a machine's memory was short, say."""
    one, two = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
    lines = [f"restrict ssh-ed25519 AAA{move} htas-move-{move}" for move in (one, two)]
    nodes.keys.write_text("\n".join([KEYS, *lines, ""]))
    for move in (one, two):
        (nodes.place / f"htas-move-{move}-x").mkdir()
        (nodes.place / f"htas-move-{move}-x" / "id").write_text("a key")
    mine = nodes.directory / "mine"
    mine.mkdir()
    (nodes.place / "htas-move-cccccccccccc-x").symlink_to(mine)
    nodes.copies.sweep("b", [two])
    assert nodes.keys.read_text() == "\n".join([KEYS, lines[1], ""])
    assert mine.exists(), "what somebody else made in that place leads nowhere"
    (nodes.place / "htas-move-cccccccccccc-x").unlink()
    assert [path.name for path in nodes.place.iterdir()] == [f"htas-move-{two}-x"]
    nodes.copies.clean_source(a_record(id=two))
    assert nodes.is_clean()


def test_what_a_move_has_under_way_ends_with_it(nodes: Nodes) -> None:
    """A daemon whose machine lost power keeps its connections, as far as the nodes know."""
    marked = ["sh", "-c", "trap 'exit 0' TERM; sleep 60 & wait", "htas-move-aaaaaaaaaaaa"]
    with subprocess.Popen(marked) as script, subprocess.Popen(["sleep", "60"]) as other:
        Thread(target=script.wait, daemon=True).start()  # its parent, to which it would stay a zombie
        for name, process in (("x", script), ("y", other)):
            (nodes.place / f"htas-move-aaaaaaaaaaaa-{name}").mkdir()
            (nodes.place / f"htas-move-aaaaaaaaaaaa-{name}" / "pid").write_text(str(process.pid))
        nodes.copies.forget("b", "aaaaaaaaaaaa")
        assert script.wait(10) == 0
        assert other.poll() is None, "another process has the number by now"
        other.kill()
    assert nodes.is_clean()
