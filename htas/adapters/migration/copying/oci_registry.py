"""An OCI registry: checkpoint images are pushed to it and, when they are needed no more, removed from it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin, urlsplit

import msgspec
import urllib3

from htas.adapters.migration.copying.image import MANIFEST_TYPE, Blob, CheckpointImage
from htas.adapters.migration.method import shortened
from htas.files import read_file
from htas.ports import HTASError, NotFoundError, PermanentError, TransientError

CONNECT_S = 10.0
SILENT_S = 60.0
"""Between two bytes of an answer."""
_TAGGED = re.compile(r"/manifests/.*")
_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="?next"?')


class _Tags(msgspec.Struct):
    tags: list[str] | None = None


class OciRegistry:
    """One repository of it. Credentials are sent as they are (Basic): with https alone are they safe.

    Every call raises NotFoundError, TransientError (429, 5xx, no connection) or PermanentError.
    """

    def __init__(self, url: str, repository: str, credentials_file: str = "", ca_file: str = "") -> None:
        self._url = url.rstrip("/")
        self._repository = repository
        self._credentials_file = credentials_file
        self._pool = urllib3.PoolManager(retries=False, ca_certs=ca_file or None)

    def push(self, image: CheckpointImage, layer: BinaryIO, tag: str) -> None:
        """Push an image whose layer's bytes are read from a file. What the registry has already is not sent again."""
        self._push_blob(image.layer, layer)
        self._push_blob(image.config, image.config.content)
        path, sent = self._path(f"manifests/{tag}"), {"Content-Type": MANIFEST_TYPE}
        self._call("PUT", path, image.manifest.content, sent)

    def tags(self) -> list[str]:
        """All of them: a registry may answer with a part, and say in a header where the next one is."""
        found: list[str] = []
        seen: set[str] = set()
        url: str | None = self._path("tags/list")
        while url is not None and url not in seen:  # one that names itself as the next would be asked without end
            seen.add(url)
            try:
                answer = self._call("GET", url)
            except NotFoundError:
                return found  # nothing was ever pushed
            found += msgspec.json.decode(answer.data, type=_Tags).tags or []
            following = _NEXT.search(answer.headers.get("Link", ""))
            url = urljoin(f"{self._url}/", following[1]) if following is not None else None
        return found

    def remove(self, tag: str) -> None:
        """Remove an image and its layer; gone already is done. What is freed when is the registry's own matter."""
        try:
            found = self._call("GET", self._path(f"manifests/{tag}"), headers={"Accept": MANIFEST_TYPE})
            layers = msgspec.json.decode(found.data)["layers"]
            self._call("DELETE", self._path(f"manifests/{found.headers['Docker-Content-Digest']}"))
            for layer in layers:
                self._call("DELETE", self._path(f"blobs/{layer['digest']}"))
        except NotFoundError:
            return

    def _push_blob(self, blob: Blob, content: bytes | BinaryIO) -> None:
        digest = f"sha256:{blob.digest}"
        try:
            self._call("HEAD", self._path(f"blobs/{digest}"))
            return
        except NotFoundError:
            pass
        begun = self._call("POST", self._path("blobs/uploads/"))
        where = urljoin(f"{self._url}/", begun.headers["Location"])
        where += f"{'&' if urlsplit(where).query else '?'}digest={digest}"
        sent = {"Content-Type": "application/octet-stream", "Content-Length": str(blob.size)}
        self._call("PUT", where, content, sent)

    def _path(self, rest: str) -> str:
        return f"{self._url}/v2/{self._repository}/{rest}"

    def _call(
        self, method: str, url: str, body: bytes | BinaryIO | None = None, headers: Mapping[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        timeout = urllib3.Timeout(connect=CONNECT_S, read=SILENT_S)
        try:
            answer = self._pool.request(
                method, url, body=body, headers={**(headers or {}), **self._credentials(url)}, timeout=timeout
            )
        except urllib3.exceptions.HTTPError as error:
            raise TransientError(f"registry {self._url}: {shortened(str(error).rpartition('>: ')[2])}") from error
        if answer.status >= 300:
            raise _refused(method, urlsplit(url).path, answer)
        return answer

    def _credentials(self, url: str) -> Mapping[str, str]:
        """Only for the registry itself: an upload may be directed to a host of its own."""
        if not self._credentials_file or urlsplit(url).netloc != urlsplit(self._url).netloc:
            return {}
        try:
            pair = read_file(Path(self._credentials_file)).strip()
        except OSError as error:
            raise PermanentError(f"{self._credentials_file}: {error.strerror}") from error
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _refused(method: str, path: str, answer: urllib3.BaseHTTPResponse) -> HTASError:
    told = shortened(answer.data.decode("utf-8", "replace")) or answer.reason or ""
    where = _TAGGED.sub("/manifests/…", path)  # this is logged: who knows a tag can pull what a process had in memory
    message = f"registry: {method} {where}: {told} ({answer.status})"
    if answer.status == 404:
        return NotFoundError(message)
    if answer.status == 429 or answer.status >= 500:
        return TransientError(message)
    return PermanentError(message)
