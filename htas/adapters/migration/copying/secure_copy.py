"""Archives from node to node by ssh: read on the source, wrapped into an image on the way, imported at the target.

They go straight from the one to the other (`DirectCopy`), where the daemon directs both and no byte of them is its:

    daemon ── sending.sh ───> source   makes a key for this one copy; says its public half and the archive's digest
    daemon ── receiving.sh ─> target   lets that key in for one pipe, from one address; imports what comes out of it
    daemon ── host keys ────> source ════ the archive, by ssh ════> target

The image's head is from the daemon, with the digest that the source has announced: containerd refuses whatever else
comes out of the pipe. Both scripts end with their connection to the daemon, and clean up as they end; what a node keeps
whose script was killed, `ending` removes.

They go through this process where that is asked for, or where the source cannot reach the target. The memory of a
process is in an archive. It is never written where HTAS itself runs, its files are of mode 0600, and each is removed as
soon as the next one is there.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, partial
from importlib.resources import files
from math import ceil

import msgspec
import structlog

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
from htas.adapters.migration.copying.shell import UNREACHED, CommandFailedError, Session, Shell
from htas.adapters.migration.documents import IDS
from htas.adapters.migration.method import Delivered, StepFailedError, copy_failure, shortened
from htas.model.migrations import Failure, MigrationRecord, Route, SecureCopy

log = structlog.get_logger()

CERTIFICATE = "/var/lib/kubelet/pki/kubelet.crt"
REPOSITORY = "localhost/htas-checkpoint"
"""What the names of checkpoint images begin with: whatever is so called on a node is ours."""
LOOK_S = 20.0
"""For a command that looks or removes, and moves no bytes."""
AGAIN_S = 600.0
"""Until a way that was closed is tried again: where packets are dropped, each try costs 5 s."""
IMPORT = "trap '' HUP; ctr -n k8s.io images import --local - >/dev/null"
"""Where the connection breaks, it reads the end of the file and tidies up, instead of being killed."""
_FOUND = re.compile(r"([0-9a-f]{64}) -? ?([0-9]+)")
INSTANT = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*"
"""A pattern for RFC 3339. Names of containers have no capital T: that of another container does not match."""
PINNED = "io.cri-containerd.pinned=pinned"
"""Without it the kubelet may take the image for unused: the restored container says that it runs its base image."""
PLACE = "/dev/shm"
"""Where both ends have their keys and pipes: memory, so that a machine that starts anew has none of them."""
CONNECT_S = 5
_KEY = re.compile(r"(ssh-ed25519 [A-Za-z0-9+/]{68})( htas-move-[0-9a-f]{12})?")
"""A public key as ssh-keygen writes it, and nothing that sshd would take for an option or for another line."""
_FLEETING = ("kex_exchange_identification", "connection reset by", "connection closed by")
"""Words for a server with too many log-ins at that moment (sshd's MaxStartups: 10)."""


class SecureCopies:
    """Moves archives by ssh. `address_of(node)` may raise what the API server answers.

    `place` is where nodes have the keys and pipes of direct copies.
    """

    pull_policy = "Never"

    def __init__(
        self,
        shell: Shell,
        setting: SecureCopy,
        address_of: Callable[[str], str],
        clock: Callable[[], float] = time.time,
        archives: str = ARCHIVES,
        place: str = PLACE,
    ) -> None:
        self._shell = shell
        self._setting = setting
        self._address_of = address_of
        self._clock = clock
        self.archives = archives
        self._direct = DirectCopy(shell, setting, place)
        self._closed: dict[tuple[str, str], tuple[float, str]] = {}

    def certificate(self, node: str) -> str:
        """The certificate that a kubelet has signed for itself, read from the node: its ssh key vouches for it.

        Empty where it has signed none, as with serverTLSBootstrap.
        """
        return self._at(node, f"test ! -e {CERTIFICATE} || cat {CERTIFICATE}", Failure.CHECKPOINT_FAILED)

    def complaint(self, node: str, words: str) -> str:
        """What a kubelet said of a dump that failed, and the end of the log that it names."""
        match = re.search(r"path=\s*(/\S+?\.log)", words)
        if match is None:
            return words
        try:
            log = self._at(node, f"grep -i error {shlex.quote(match[1])} | tail -n 5", Failure.CHECKPOINT_FAILED)
        except StepFailedError:
            return words
        return log or words

    def image_of(self, record: MigrationRecord, container: str) -> str:
        return f"{REPOSITORY}/{container.lower()}:{tag_of(record)}"

    def deliver(
        self, record: MigrationRecord, container: str, archive: str, within_s: float, architecture: str = USUAL
    ) -> Delivered:
        """Bring an archive to the target as an image. Raises StepFailedError.

        containerd refuses an image of which the layer has another digest than its manifest says, and the manifest says
        what the source's own node has found.
        """
        until = time.monotonic() + within_s
        detour = self._why_not(record) if self._setting.route is Route.DIRECT else ""
        if self._setting.route is Route.DIRECT and not detour:
            try:
                return self._sent_directly(record, container, archive, within_s, architecture)
            except NoWayError as error:
                detour = record.without_names(f"{record.source} cannot send to {record.target}: {error}")
                log.warning("an archive goes through the daemon", move=record.id, pod=record.pod, why=detour)
                if error.is_lasting:
                    self._close(record, detour)
        sent = self._sent_through_us(record, container, archive, until - time.monotonic(), architecture)
        return msgspec.structs.replace(sent, detour=detour)

    def _sent_directly(
        self, record: MigrationRecord, container: str, archive: str, within_s: float, architecture: str
    ) -> Delivered:
        """A way that is open and carries no archive to its end, as with packets too large for it, is not gone twice."""
        name, image_of = self.image_of(record, container), partial(_image, container, architecture)
        source, target = self._address_of(record.source), self._address_of(record.target)
        try:
            image = self._direct.copy(record.id, archive, source, target, name, image_of, within_s)
        except BrokenOffError as failure:
            if failure.reason in (Failure.TRANSFER_FAILED, Failure.DEADLINE):
                self._close(record, record.without_names(f"the copy before failed: {failure}"))
            raise
        return Delivered((name,), (image.layer.digest,), image.layer.size)

    def _sent_through_us(
        self, record: MigrationRecord, container: str, archive: str, within_s: float, architecture: str
    ) -> Delivered:
        name = self.image_of(record, container)

        def around(announced: str) -> tuple[bytes, bytes]:
            image = _image(container, architecture, announced)
            return head(image, name), tail(image)

        path = shlex.quote(archive)
        streamed = self._shell.stream(
            self._address_of(record.source),
            f"echo $(sha256sum < {path}) $(stat -c %s {path}) && exec cat {path}",
            self._address_of(record.target),
            _importing(name),
            around,
            within_s,
        )
        digest, size = _announced(streamed.announced)
        if streamed.size != size:
            what = f"{archive}: {size} bytes were announced, {streamed.size} arrived"
            raise StepFailedError(Failure.DIGEST_WRONG, what)
        return Delivered((name,), (digest,), size)

    def _why_not(self, record: MigrationRecord) -> str:
        """Why the way from source to target is not tried now; empty: it is."""
        since, why = self._closed.get((record.source, record.target), (0.0, ""))
        return why if why and time.monotonic() - since < AGAIN_S else ""

    def _close(self, record: MigrationRecord, why: str) -> None:
        self._closed[record.source, record.target] = time.monotonic(), why

    def clean_source(self, record: MigrationRecord) -> None:
        """Remove the archives of a move; raises StepFailedError while its source cannot be reached.

        A kubelet may have written one that we were never told of: each that is no older than the move, by the node's
        own clock, whatever ours says.
        """
        namespace, _, pod = record.pod.partition("/")
        known = map(shlex.quote, archives_of(record, self.archives))
        removing = [self._direct.ending(record.id), *(f"rm -f -- {path}" for path in known)]
        age_s = max(1, int(self._clock() - record.started_at) + 2)
        for container in record.containers:
            pattern = shlex.quote(f"checkpoint-{pod}_{namespace}-{container}-{INSTANT}.tar")
            where = f"find {shlex.quote(self.archives)} -maxdepth 1 -name {pattern}"
            removing.append(f"{where} -newermt '-{age_s} seconds' -delete 2>/dev/null")
        self._at(record.source, "; ".join([*removing, "true"]))

    def clean_target(self, record: MigrationRecord) -> None:
        """Remove what a move has brought to its target; raises StepFailedError while that cannot be reached."""
        self.forget(record.target, record.id)

    def forget(self, node: str, move: str) -> None:
        """Remove the images of a move that is over, once the pod they were restored for runs no more."""
        if IDS.fullmatch(move):
            self._clear(node, self._direct.ending(move), _forgetting(f"{REPOSITORY}/.*:{move}-"))

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        """Remove whatever moves have left on a node, but for those of which the ids are given."""
        ids = list(filter(IDS.fullmatch, keep))
        kept = "|".join([*ids, "no-move"])
        self._clear(node, self._direct.ending(kept=ids), _forgetting(f"{REPOSITORY}/", f":({kept})-"))

    def _clear(self, node: str, ending: str, forgetting: str) -> None:
        """End first: what is still being imported would be left. The images go, whatever comes of that."""
        self._at(node, f"{ending}; ended=$?; {forgetting} && exit $ended")

    def _at(self, node: str, command: str, otherwise: Failure = Failure.TRANSFER_FAILED) -> str:
        try:
            return self._shell.run(self._address_of(node), command, LOOK_S)
        except CommandFailedError as error:
            raise copy_failure(f"{node}: {shortened(error.said) or error}", otherwise) from error


def _importing(name: str) -> str:
    """What an image archive is piped into."""
    return f"{IMPORT} && ctr -n k8s.io images label {shlex.quote(name)} {PINNED} >/dev/null"


def _announced(line: str) -> tuple[str, int]:
    """The digest and the size that the source's node has found; raises StepFailedError where it found none."""
    match = _FOUND.fullmatch(line.strip())
    if match is None:
        raise StepFailedError(Failure.TRANSFER_FAILED, f"the archive cannot be read: {shortened(line)}")
    return match[1], int(match[2])


def _image(container: str, architecture: str, announced: str) -> CheckpointImage:
    return checkpoint_image(container, *_announced(announced), architecture)


def _forgetting(pattern: str, but: str = "$^") -> str:
    """Remove images by their names. Each has a second name, by its id: removing one name alone frees nothing."""
    listing = "ctr -n k8s.io images ls"
    ours = f'$1 ~ "^{pattern}" && $1 !~ "{but}" {{ours[$3]}} {{all[$1] = $3}}'
    program = f"{ours} END {{for (name in all) if (all[name] in ours) print name}}"
    names = f"{listing} | awk {shlex.quote(program)}"
    return f'names=$({names}) && {{ [ -z "$names" ] || ctr -n k8s.io images rm $names >/dev/null; }}'


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
        name: str,
        image_of: Callable[[str], CheckpointImage],
        within_s: float,
    ) -> CheckpointImage:
        """Have an archive sent from one address to another and imported there by a name, as the image that is returned.

        `image_of` makes it of what the source announces. Raises NoWayError before the first byte is sent,
        BrokenOffError where the copy fails later or time is up, and StepFailedError where the archive cannot be read.
        """
        until = time.monotonic() + within_s
        known = known_hosts(self._setting, target)
        sending = (archive, source, self._setting.user, target, self._setting.port, CONNECT_S)
        with self._session(source, move, ("sending.sh",), sending, until) as sender:
            announced, key = sender.hear(), _KEY.fullmatch(sender.hear())
            if key is None:
                raise _no_way("source", sender)
            image = image_of(announced)
            left_s, zeros = max(1, ceil(until - time.monotonic())), len(tail(image))
            keys, importing = self._setting.authorized_keys_file, _importing(name)
            receiving = (keys, source, image.layer.size, zeros, left_s, importing)
            with self._session(target, move, ("keys.sh", "receiving.sh"), receiving, until) as receiver:
                _say(receiver, b64encode(head(image, name)).decode(), key[1])
                if receiver.hear() != "open":
                    raise _no_way("target", receiver)
                _say(sender, *known, "")
                if sender.hear() != "here":
                    raise _no_way("source", sender)
                _finish(sender, receiver, until)
        return image

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
