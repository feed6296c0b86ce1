"""The method kubelet-checkpoint: the kubelet dumps, the archive becomes an image, the target's runtime restores it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import urllib3

from htas.adapters.kubernetes.access import Access
from htas.adapters.kubernetes.api import part
from htas.adapters.migration.copying.image import USUAL, archives_of
from htas.adapters.migration.documents import Json, containers_of, twin_of
from htas.adapters.migration.method import Delivered, Dump, StepFailedError, dump_failure, shortened
from htas.adapters.migration.objects import Objects
from htas.model.migrations import Failure, MigrationRecord
from htas.model.moves import MigrationMethod


class Copies(Protocol):
    """A transfer: how an archive on the source's node becomes an image that the target can restore."""

    pull_policy: str
    archives: str
    """The directory that kubelets write archives to."""

    def complaint(self, node: str, words: str) -> str:
        """What a kubelet said of a dump that failed, with the reason where the node tells it."""
        ...

    def image_of(self, record: MigrationRecord, container: str) -> str: ...

    def deliver(
        self, record: MigrationRecord, container: str, archive: str, within_s: float, architecture: str = USUAL
    ) -> Delivered:
        """Bring one archive to the target, of that architecture, as `image_of` names it."""
        ...

    def clean_source(self, record: MigrationRecord) -> None:
        """Remove all archives that were written of the record's containers since the move began."""
        ...

    def clean_target(self, record: MigrationRecord) -> None: ...

    def forget(self, node: str, move: str) -> None: ...

    def sweep(self, node: str, keep: Sequence[str]) -> None: ...


class KubeletCheckpoint:
    """Implements Method."""

    name = MigrationMethod.KUBELET_CHECKPOINT

    def __init__(
        self, objects: Objects, kubelets: Kubelets, copies: Copies, clock: Callable[[], float] = time.time
    ) -> None:
        self._objects = objects
        self._kubelets = kubelets
        self._copies = copies
        self._clock = clock

    def checkpoint(self, record: MigrationRecord, source: Json, within_s: float) -> Dump:
        namespace, _, pod = record.pod.partition("/")
        address, until = self._objects.address(record.source), time.monotonic() + within_s
        dumped_at = self._clock()
        archives = []
        for container in containers_of(source):
            left_s = until - time.monotonic()
            try:
                archives.append(self._kubelets.checkpoint(record.source, address, namespace, pod, container, left_s))
            except DumpRefusedError as error:
                raise dump_failure(self._copies.complaint(record.source, str(error))) from error
        return Dump(" ".join(archives), dumped_at)

    def deliver(self, record: MigrationRecord, source: Json, within_s: float) -> Delivered:
        until = time.monotonic() + within_s
        containers = containers_of(source)
        archives = archives_of(record, self._copies.archives)
        if len(archives) != len(record.archive.split()) or len(archives) != len(containers):
            what = f"{record.archive!r} are no archives of {record.pod} in {self._copies.archives}"
            raise StepFailedError(Failure.TRANSFER_FAILED, what)
        architecture = self._objects.architecture(record.target)
        sent = [
            self._copies.deliver(record, container, archive, until - time.monotonic(), architecture)
            for container, archive in zip(containers, archives, strict=True)
        ]
        images = tuple(image for each in sent for image in each.images)
        digests = tuple(digest for each in sent for digest in each.digests)
        return Delivered(images, digests, sum(each.size for each in sent))

    def discard(self, record: MigrationRecord) -> None:
        self._copies.clean_target(record)

    def restore(self, record: MigrationRecord, source: Json, within_s: float) -> str:
        images = record.image.split()
        own = [self._copies.image_of(record, container) for container in containers_of(source)]
        if images != own:
            what = f"the journal names other images than were delivered for containers {' '.join(record.containers)}"
            raise StepFailedError(Failure.REFUSED, what, is_final=True)
        twin = twin_of(source, record, images, self._copies.pull_policy)
        self._objects.create(twin)
        name: str = twin["metadata"]["name"]
        return name

    def clean(self, record: MigrationRecord, source: Json | None, *, keep_image: bool) -> None:
        """Both nodes are tried, whichever of them is away. The twin lives without its image, once it runs."""
        failed: StepFailedError | None = None
        try:
            self._copies.clean_source(record)
        except StepFailedError as error:
            failed = error
        if not keep_image or not record.needs_image:
            self._copies.clean_target(record)
        if failed is not None:
            raise failed

    def clean_again(self, record: MigrationRecord, *, keep_image: bool) -> None:
        """Images are not touched: a later attempt of the same move may live of one; a sweep knows which are needed."""
        self._copies.clean_source(record)

    def forget(self, node: str, move: str) -> None:
        self._copies.forget(node, move)

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        self._copies.sweep(node, keep)


# The kubelet's checkpoint call. Its right is `create nodes/checkpoint`, and no other: not nodes/proxy.

CONNECT_S = 5.0


class DumpRefusedError(Exception):
    """The kubelet answered that the container could not be checkpointed; the text is its answer."""


class _Answer(msgspec.Struct):
    items: list[str] = []


class Kubelets:
    """Asks kubelets over HTTPS, with the credentials that the API server is asked with.

    Their certificates must be signed with one of those in the file `trusted` or, where a kubelet has signed its own, be
    what `certificate_of(node)` returns as PEM text; empty: it has signed none.
    """

    def __init__(
        self, access: Access, port: int, trusted: Path | None, certificate_of: Callable[[str], str] | None
    ) -> None:
        self._access = access
        self._port = port
        self._trusted = trusted
        self._certificate_of = certificate_of
        self._pools: dict[str, urllib3.HTTPSConnectionPool] = {}

    def checkpoint(self, node: str, address: str, namespace: str, pod: str, container: str, within_s: float) -> str:
        """Checkpoint a container, which runs on; returns the archive's path on the node.

        Raises DumpRefusedError with the kubelet's words, and StepFailedError where it gives no usable answer.
        """
        path = f"/checkpoint/{part(namespace)}/{part(pod)}/{part(container)}?timeout={max(1, int(within_s))}"
        try:
            answer = self._post(node, address, path, within_s)
        except urllib3.exceptions.SSLError as error:
            self._pools.pop(f"{node}/{address}", None)  # a machine made anew has another certificate: read it again
            raise StepFailedError(Failure.CHECKPOINT_FAILED, f"kubelet of {node}: {_words(error)}") from error
        except urllib3.exceptions.TimeoutError as error:
            raise StepFailedError(Failure.DEADLINE, f"kubelet of {node}: no answer in {within_s:.0f} s") from error
        except urllib3.exceptions.HTTPError as error:
            raise StepFailedError(Failure.CHECKPOINT_FAILED, f"kubelet of {node}: {_words(error)}") from error
        words = answer.data.decode("utf-8", "replace")
        if answer.status == 404:
            raise StepFailedError(Failure.SOURCE_ENDED, f"kubelet of {node}: {shortened(words)}")
        if answer.status in (401, 403):
            what = f"kubelet of {node}: {shortened(words)} ({answer.status}); grant create nodes/checkpoint"
            raise StepFailedError(Failure.CHECKPOINT_FAILED, what, is_final=True)
        if answer.status >= 300:
            raise DumpRefusedError(words)
        try:
            return msgspec.json.decode(answer.data, type=_Answer).items[0]
        except (msgspec.DecodeError, IndexError) as error:
            what = f"kubelet of {node} named no archive: {shortened(words)}"
            raise StepFailedError(Failure.CHECKPOINT_FAILED, what) from error

    def _post(self, node: str, address: str, path: str, within_s: float) -> urllib3.BaseHTTPResponse:
        headers: Mapping[str, str] = {"User-Agent": "htas", **self._access.headers()}
        timeout = urllib3.Timeout(connect=CONNECT_S, read=within_s)
        return self._pool(node, address).request("POST", path, headers=headers, timeout=timeout, retries=False)

    def _pool(self, node: str, address: str) -> urllib3.HTTPSConnectionPool:
        """A kubelet signs its own certificate unless told otherwise, and to the node's name, not to its address."""
        key = f"{node}/{address}"
        if key not in self._pools:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if self._trusted is not None:
                context.load_verify_locations(self._trusted)
            own = self._certificate_of(node) if self._certificate_of is not None else ""
            if own:
                context.load_verify_locations(cadata=own)
            if self._access.client_certificate is not None:
                context.load_cert_chain(*self._access.client_certificate)
            self._pools[key] = urllib3.HTTPSConnectionPool(
                address, self._port, ssl_context=context, server_hostname=node, assert_hostname=node
            )
        return self._pools[key]


def _words(error: Exception) -> str:
    return shortened(str(error).rpartition(">: ")[2] or type(error).__name__)
