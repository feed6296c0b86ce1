"""The transfer registry: the agent on the source's node pushes an archive as an image, the target's kubelet pulls it.

In the registry an image is removed as soon as the container runs that was restored from it; what was pulled stays on
the target until its kubelet collects unused images.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import urllib3

from htas.adapters.migration.copying.agent import AgentProblem, Clean, Push, Pushed
from htas.adapters.migration.copying.image import ARCHIVES, USUAL, archives_of, tag_of
from htas.adapters.migration.copying.oci_registry import OciRegistry
from htas.adapters.migration.method import Delivered, StepFailedError, copy_failure, shortened
from htas.adapters.tokens import read_token
from htas.model.migrations import Failure, ImageRegistry, MigrationRecord
from htas.ports import HTASError, PermanentError

CONNECT_S = 5.0
CLEAN_S = 20.0


class RegistryCopies:
    """Implements Copies. `address_of(node)` may raise what the API server answers."""

    pull_policy = "IfNotPresent"

    def __init__(
        self,
        setting: ImageRegistry,
        address_of: Callable[[str], str],
        clock: Callable[[], float] = time.time,
        archives: str = ARCHIVES,
    ) -> None:
        self.archives = archives
        self._clock = clock
        self._setting = setting
        self._address_of = address_of
        self._registry = registry_of(setting)
        self._pool = urllib3.PoolManager(retries=False)
        self.agent_port = setting.agent_port

    def complaint(self, node: str, words: str) -> str:
        """The kubelet's words alone: the agent may not read what else a container's runtime writes down."""
        return words

    def image_of(self, record: MigrationRecord, container: str) -> str:
        return f"{self._setting.pull_from}:{_tag(record, container)}"

    def deliver(
        self, record: MigrationRecord, container: str, archive: str, within_s: float, architecture: str = USUAL
    ) -> Delivered:
        """Have the agent push an archive; its sha256 and size are what the registry has verified."""
        order = Push(archive, container, _tag(record, container), architecture)
        pushed = msgspec.json.decode(self._ask(record.source, "/push", order, within_s), type=Pushed)
        return Delivered((self.image_of(record, container),), (pushed.digest,), pushed.size)

    def clean_source(self, record: MigrationRecord) -> None:
        namespace, _, pod = record.pod.partition("/")
        age_s = self._clock() - record.started_at + 1.0
        order = Clean(namespace, pod, list(record.containers), age_s, archives_of(record, self.archives))
        self._ask(record.source, "/clean", order, CLEAN_S)

    def clean_target(self, record: MigrationRecord) -> None:
        self.forget(record.target, record.id)

    def forget(self, node: str, move: str) -> None:
        self._remove(lambda tag: tag.startswith(f"{_place(node)}-{move}-"))

    def sweep(self, node: str, keep: Sequence[str]) -> None:
        kept = tuple(f"{_place(node)}-{move}-" for move in keep)
        self._remove(lambda tag: tag.startswith(f"{_place(node)}-") and not tag.startswith(kept))

    def _remove(self, is_unneeded: Callable[[str], bool]) -> None:
        try:
            for tag in filter(is_unneeded, self._registry.tags()):
                self._registry.remove(tag)
        except HTASError as error:
            raise StepFailedError(Failure.TRANSFER_FAILED, str(error)) from error

    def _ask(self, node: str, path: str, order: msgspec.Struct, within_s: float) -> bytes:
        address = self._address_of(node)
        host = f"[{address}]" if ":" in address else address  # IPv6
        url = f"http://{host}:{self.agent_port}{path}"
        headers = {"Authorization": f"Bearer {_token(self._setting.agent_token_file)}"}
        timeout = urllib3.Timeout(connect=CONNECT_S, read=max(0.1, within_s))
        try:
            answer = self._pool.request("POST", url, body=msgspec.json.encode(order), headers=headers, timeout=timeout)
        except urllib3.exceptions.ReadTimeoutError as error:
            raise StepFailedError(Failure.DEADLINE, f"agent of {node}: no answer in {within_s:.0f} s") from error
        except urllib3.exceptions.HTTPError as error:
            told = shortened(str(error).rpartition(">: ")[2])
            raise StepFailedError(Failure.TRANSFER_FAILED, f"agent of {node}: {told}") from error
        if answer.status >= 300:
            raise copy_failure(f"agent of {node}: {_told(answer.data)} ({answer.status})")
        return answer.data


def registry_of(setting: ImageRegistry) -> OciRegistry:
    """The repository that images are pulled from, as HTAS and its agents reach it."""
    repository = setting.pull_from.partition("/")[2]
    return OciRegistry(setting.url, repository, setting.credentials_file, setting.ca_file)


def _tag(record: MigrationRecord, container: str) -> str:
    return f"{_place(record.target)}-{tag_of(record)}-{container}"


def _place(node: str) -> str:
    """A node's name in eight characters: by it a sweep finds what was pushed for one node."""
    return hashlib.sha256(node.encode()).hexdigest()[:8]


def _token(path: str) -> str:
    try:
        return read_token(Path(path))
    except PermanentError as error:
        raise StepFailedError(Failure.TRANSFER_FAILED, str(error), is_final=True) from error


def _told(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=AgentProblem).message
    except msgspec.DecodeError:
        return shortened(body.decode("utf-8", "replace"))
