"""Archives straight from the source's node to the target's: the daemon directs both by ssh, and no byte of them is its.

    daemon ── sending.sh ───> source   makes a key for this one copy; says its public half and the archive's digest
    daemon ── receiving.sh ─> target   lets that key in for one pipe, from one address; imports what comes out of it
    daemon ── host keys ────> source ════ the archive, by ssh ════> target

The image's head is from the daemon, with the digest that the source has announced: containerd refuses whatever else
comes out of the pipe. Both scripts end with their connection to the daemon, and clean up as they end; what a node keeps
whose script was killed, `ending` removes.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache
from importlib.resources import files
from math import ceil

import msgspec

from htas.adapters.migration.copying.shell import UNREACHED, Session, Shell
from htas.adapters.migration.failures import StepFailedError, copy_failure, shortened
from htas.model.migrations import Failure, SecureCopy

PLACE = "/dev/shm"
"""Where both ends have their keys and pipes: memory, so that a machine that starts anew has none of them."""
CONNECT_S = 5
_KEY = re.compile(r"(ssh-ed25519 [A-Za-z0-9+/]{68})( htas-move-[0-9a-f]{12})?")
"""A public key as ssh-keygen writes it, and nothing that sshd would take for an option or for another line."""
_FLEETING = ("kex_exchange_identification", "connection reset by", "connection closed by")
"""Words for a server with too many log-ins at that moment (sshd's MaxStartups: 10)."""


class Wrapping(msgspec.Struct, frozen=True):
    """An image archive around a layer of so many bytes: what comes before them, and how many zeros after."""

    size: int
    head: bytes
    zeros: int


class NoWayError(Exception):
    """The source cannot send to the target by itself, and nothing of the archive has left it.

    `is_lasting`: it will not be otherwise a moment later.
    """

    def __init__(self, why: str, *, is_lasting: bool = True) -> None:
        super().__init__(why)
        self.is_lasting = is_lasting


class BrokenOffError(StepFailedError):
    """A copy that had begun did not come to its end."""


class DirectCopy:
    """Has archives sent from node to node. Nodes need ssh, ssh-keygen, flock, awk and the coreutils."""

    def __init__(self, shell: Shell, setting: SecureCopy, place: str = PLACE) -> None:
        self._shell = shell
        self._setting = setting
        self._place = place

    def copy(
        self,
        move: str,
        archive: str,
        source: str,
        target: str,
        wrapped: Callable[[str], Wrapping],
        importing: str,
        within_s: float,
    ) -> str:
        """Have an archive sent from one address to another and imported there; returns what its source announced.

        `wrapped` makes the image of that. Raises NoWayError before the first byte is sent, BrokenOffError where the
        copy fails later or time is up, and StepFailedError where the archive cannot be read.
        """
        until = time.monotonic() + within_s
        known = known_hosts(self._setting, target)
        sending = (archive, source, self._setting.user, target, self._setting.port, CONNECT_S)
        with self._session(source, move, ("sending.sh",), sending, until) as sender:
            announced, key = sender.hear(), _KEY.fullmatch(sender.hear())
            if key is None:
                raise _no_way("source", sender)
            image = wrapped(announced)
            left_s = max(1, ceil(until - time.monotonic()))
            receiving = (self._setting.authorized_keys_file, source, image.size, image.zeros, left_s, importing)
            with self._session(target, move, ("keys.sh", "receiving.sh"), receiving, until) as receiver:
                _say(receiver, b64encode(image.head).decode(), key[1])
                if receiver.hear() != "open":
                    raise _no_way("target", receiver)
                _say(sender, *known, "")
                if sender.hear() != "here":
                    raise _no_way("source", sender)
                _finish(sender, receiver, until)
        return announced

    def ending(self, only: str = "", kept: Sequence[str] = ()) -> str:
        """A command that ends what copies have under way on a node, of one move, or of all but those that are kept."""
        return _command(
            ("keys.sh", "ending.sh"), "ending", self._place, self._setting.authorized_keys_file, only, " ".join(kept)
        )

    def _session(
        self, address: str, move: str, scripts: tuple[str, ...], words: Sequence[object], until: float
    ) -> AbstractContextManager[Session]:
        """A script in talk with us. It ends itself a little later than its time, should our end never be heard of."""
        left_s = until - time.monotonic()
        script = _command(scripts, f"htas-move-{move}", self._place, *words)
        return self._shell.session(address, f"exec timeout --foreground {max(1, ceil(left_s)) + 10} {script}", left_s)


def known_hosts(setting: SecureCopy, address: str) -> list[str]:
    """The lines by which we know a node ourselves, as known_hosts has them: keys, patterns, authorities, revocations.

    Raises NoWayError where there are none.
    """
    for host in [f"[{address}]:{setting.port}", address] if setting.port != 22 else [address]:
        command = ["ssh-keygen", "-F", host, "-f", setting.known_hosts_file]
        try:
            found = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise NoWayError(f"ssh-keygen: {error.strerror}") from error
        lines = [line for line in found.stdout.splitlines() if line and not line.startswith("#")]
        if lines:
            return lines
    raise NoWayError(f"{setting.known_hosts_file} has no key of {address}")


def _finish(sender: Session, receiver: Session, until: float) -> None:
    """Wait until the image is imported; raises BrokenOffError where either end fails.

    The sender ends first, whatever fails: the pipe ends with what reads it. A receiver that hears nothing of its end,
    as where the network between both is cut, is told.
    """
    sent = sender.wait()
    imported = receiver.wait() if sent == 0 else receiver.end()
    if sent == 0 == imported:
        return
    if time.monotonic() >= until:
        raise BrokenOffError(Failure.DEADLINE, "not copied in its time")
    said = " ".join(filter(None, (end.ended()[1] for end in (receiver, sender))))
    failure = copy_failure(said or f"the source ended with {sent}, the target with {imported}")
    raise BrokenOffError(failure.reason, failure.detail)


def _no_way(where: str, session: Session) -> NoWayError:
    code, said = session.ended()
    is_fleeting = code == UNREACHED or any(words in said.lower() for words in _FLEETING)
    return NoWayError(f"{where}: {shortened(said) or f'it ended with {code}'}", is_lasting=not is_fleeting)


def _say(session: Session, *lines: str) -> None:
    with suppress(OSError):  # it has ended: what it says next, or does not, tells
        session.say(*lines)


def _command(scripts: Sequence[str], name: str, *words: object) -> str:
    text = "\n".join(map(_text, scripts))
    return shlex.join(["sh", "-c", text, name, *map(str, words)])


@cache
def _text(script: str) -> str:
    return files("htas.adapters.migration.copying").joinpath(script).read_text()
