"""The agent on a node: pushes checkpoint archives to the registry, and removes them. It can do nothing else.

It needs no right in the cluster, reads one directory, and obeys who knows its token (AgentServer).
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from pathlib import Path

import msgspec

from htas.adapters.migration.copying.image import USUAL, checkpoint_image, is_archive, is_archive_of
from htas.adapters.migration.copying.oci_registry import OciRegistry
from htas.ports import NotFoundError, PermanentError

_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
"""A tag's form in the distribution specification: what has another would be another path of the registry."""
_CONTAINER = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""A DNS label, as every container's name is."""


class Push(msgspec.Struct, frozen=True):
    """Push the archive at a path, which is that of a container, under a tag, for nodes of an architecture."""

    archive: str
    container: str
    tag: str
    architecture: str = USUAL


class Pushed(msgspec.Struct, frozen=True):
    digest: str
    size: int


class Clean(msgspec.Struct, frozen=True):
    """Remove the archives of a pod's containers: those named, and those that are no older than so many seconds.

    By the node's own clock, which may differ from the daemon's.
    """

    namespace: str
    pod: str
    containers: list[str]
    age_s: float
    archives: list[str] = []


class AgentProblem(msgspec.Struct, frozen=True):
    """An answer to what could not be done."""

    message: str


class Agent:
    """What it does, whoever asks."""

    def __init__(self, registry: OciRegistry, directory: Path) -> None:
        self._registry = registry
        self._directory = directory

    def push(self, order: Push) -> Pushed:
        """Raises PermanentError for what is no archive, tag or container's name, and what the registry answers."""
        path = Path(order.archive)
        if not _TAG.fullmatch(order.tag) or not _CONTAINER.fullmatch(order.container):
            raise PermanentError(f"{order.tag!r} is no tag, or {order.container!r} no container's name")
        if path.parent != self._directory or not is_archive(path.name):
            raise PermanentError(f"{order.archive} is no checkpoint archive in {self._directory}")
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            raise NotFoundError(f"{path}: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as archive:
            digest = hashlib.file_digest(archive, "sha256").hexdigest()
            size = archive.tell()
            archive.seek(0)
            image = checkpoint_image(order.container, digest, size, order.architecture)
            self._registry.push(image, archive, order.tag)
        return Pushed(digest, size)

    def clean(self, order: Clean) -> None:
        """Gone already is done."""
        since = time.time() - order.age_s
        for path in self._directory.iterdir():
            if not is_archive_of(path.name, order.namespace, order.pod, order.containers):
                continue
            if str(path) in order.archives or path.stat(follow_symlinks=False).st_mtime >= since:
                path.unlink(missing_ok=True)
