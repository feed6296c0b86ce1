"""The agent on a node: pushes checkpoint archives to the registry, and removes them. It can do nothing else.

It needs no right in the cluster, reads one directory, and obeys who knows its token.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import structlog

from htas.adapters.checkpoint.archives import is_archive, is_archive_of
from htas.adapters.checkpoint.image import checkpoint_image
from htas.adapters.checkpoint.oci_registry import OciRegistry
from htas.ports import HTASError, NotFoundError, PermanentError

log = structlog.get_logger()

LONGEST_BODY = 65_536


class Push(msgspec.Struct, frozen=True):
    """Push the archive at a path, which is that of a container, under a tag."""

    archive: str
    container: str
    tag: str


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


class Problem(msgspec.Struct, frozen=True):
    """An answer to what could not be done."""

    message: str


class Agent:
    """What it does, whoever asks."""

    def __init__(self, registry: OciRegistry, directory: Path) -> None:
        self._registry = registry
        self._directory = directory

    def push(self, order: Push) -> Pushed:
        """Raises PermanentError for a path that is no archive, and what the registry answers."""
        path = Path(order.archive)
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
            self._registry.push(checkpoint_image(order.container, digest, size), archive, order.tag)
        return Pushed(digest, size)

    def clean(self, order: Clean) -> None:
        """Gone already is done."""
        since = time.time() - order.age_s
        for path in self._directory.iterdir():
            if not is_archive_of(path.name, order.namespace, order.pod, order.containers):
                continue
            if str(path) in order.archives or path.stat(follow_symlinks=False).st_mtime >= since:
                path.unlink(missing_ok=True)


def agent_server(agent: Agent, token_file: Path, host: str, port: int) -> ThreadingHTTPServer:
    """An HTTP server that obeys whoever sends `Authorization: Bearer TOKEN`; the file is read anew for each request."""
    orders: dict[str, Callable[[bytes], msgspec.Struct | None]] = {
        "/push": lambda body: agent.push(msgspec.json.decode(body, type=Push)),
        "/clean": lambda body: agent.clean(msgspec.json.decode(body, type=Clean)),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the library's own name
            wanted = f"Bearer {token_file.read_text().strip()}".encode()
            if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), wanted):
                self._answer(401, Problem("the token is wrong"))
                return
            length = int(self.headers.get("Content-Length") or 0)
            if self.path not in orders or length > LONGEST_BODY:
                self._answer(404, Problem(f"{self.path} is not done here"))
                return
            try:
                self._answer(200, orders[self.path](self.rfile.read(length)))
            except (HTASError, msgspec.DecodeError, OSError) as error:
                code = 404 if isinstance(error, NotFoundError) else 422
                log.warning("order not carried out", order=self.path, error=str(error))
                self._answer(code, Problem(str(error)))

        def _answer(self, code: int, body: msgspec.Struct | None) -> None:
            raw = msgspec.json.encode(body)
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *arguments: object) -> None:
            log.info("asked", what=format % arguments)

    return ThreadingHTTPServer((host, port), Handler)
