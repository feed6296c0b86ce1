"""A daemon asked over HTTP, so that commands work from outside its pod: `--server URL [--token-file F] [--ca F]`, or
by its release's name, through kubectl: `--server NAMESPACE/RELEASE`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import typer

import htas
from htas.cli.console import InputError
from htas.ports import PermanentError, TransientError

T = TypeVar("T")
ANSWER_S = 60.0
_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_RELEASE = re.compile(rf"{_LABEL}/{_LABEL}(?:\.{_LABEL})*")
VARIABLE, TOKEN_VARIABLE = "HTAS_SERVER", "HTAS_TOKEN_FILE"

ServerUrl = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar=VARIABLE,
        metavar="URL|NAMESPACE/RELEASE",
        help="Use a daemon instead of its files: https://htas.example:8080, or its release, htas-system/htas.",
    ),
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", envvar=TOKEN_VARIABLE, help="With --server: the token to show.")
]
Authority = Annotated[Path | None, typer.Option("--ca", help="With --server: who signed its certificate (PEM).")]


class DaemonClient:
    """Asks one daemon. Raises InputError for what is wrong with the question, PermanentError and TransientError for
    what is wrong with the answer.
    """

    def __init__(
        self,
        url: str,
        token_file: Path | None,
        authority: Path | None,
        token: str = "",
        host: str | None = None,
        answer_s: float = ANSWER_S,
    ) -> None:
        import urllib3

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InputError(
                f"--server: {url!r} is no address; write such as https://htas.example:8080 or htas-system/htas"
            )
        self._url = url.rstrip("/")
        self._headers = {
            "Accept-Encoding": "gzip",
            "Connection": "close",
            "User-Agent": f"htas/{htas.__version__}",
        }
        if token_file is not None:
            from htas.adapters.tokens import read_token

            token = read_token(token_file, takes_pipes=True)
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if authority is not None and not authority.is_file():
            raise InputError(f"--ca: {authority}: there is no such file")
        self._pool = urllib3.PoolManager(
            ca_certs=str(authority) if authority is not None else None,
            # Of a forwarded port the certificate bears another name than this machine's.
            server_hostname=host,
            assert_hostname=host,
            timeout=answer_s,
            retries=False,
        )

    def get(self, path: str, kind: type[T], **query: Any) -> T:
        """A document. Arguments that are None, or infinite, are not sent."""
        sent = {
            name: _text(value)
            for name, value in query.items()
            if value is not None and not (isinstance(value, float) and math.isinf(value))
        }
        told = f"?{urlencode(sent, quote_via=quote)}" if sent else ""
        return self._asked("GET", f"{path}{told}", self._headers, None, kind)

    def post(self, path: str, body: Any, kind: type[T]) -> T:
        """Send a document, and read the answer."""
        headers = {**self._headers, "Content-Type": "application/json"}
        return self._asked("POST", path, headers, msgspec.json.encode(body), kind)

    def _asked(self, method: str, path: str, headers: dict[str, str], body: bytes | None, kind: type[T]) -> T:
        import urllib3

        try:
            answer = self._pool.request(method, f"{self._url}/api/v1{path}", headers=headers, body=body)
        except urllib3.exceptions.HTTPError as error:
            raise TransientError(f"{self._url}: {_reason(error)}") from error
        if answer.status != 200:
            raise _refusal(answer.status, answer.data.decode("utf-8", "replace").strip(), self._url)
        try:
            return msgspec.json.decode(answer.data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PermanentError(
                f"{self._url}: its answer to {path.partition('?')[0]} is no such document of htas {htas.__version__}"
                f" ({str(error)[:200]}); is this a daemon of that version? curl {self._url}/api/v1/openapi.json"
            ) from None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reason(error: Exception) -> str:
    told = str(error.args[-1]) if error.args else str(error)
    return told.rpartition(">: ")[2]


def _refusal(status: int, said: str, url: str) -> Exception:
    """The server's own words: 400, 404 and 409 are of what was asked for."""
    if status in (400, 404, 409):
        return InputError(said)
    if status in (401, 403):
        return PermanentError(f"{url}: {said}; name a token with --token-file")
    if status in (429, 503):
        return TransientError(f"{url}: {said}")
    return PermanentError(f"{url}: answered {status}: {said[:200]}")


def server_at(url: str | None, token_file: Path | None, authority: Path | None) -> DaemonClient | None:
    """The daemon to ask; None: the files are read. Raises InputError for options that have no effect."""
    if url is None:
        if authority is not None:
            raise InputError("--ca: goes with --server")
        return None
    if _RELEASE.fullmatch(url):
        from htas.cli.forwarding import forwarded

        there = forwarded(url, wants_token=token_file is None)
        if authority is not None and there.host is None:
            raise InputError(f"--ca: {url} serves HTTP; have it serve HTTPS (http.tlsSecret), or leave --ca out")
        return DaemonClient(there.url, token_file, authority, there.token, there.host)
    return DaemonClient(url, token_file, authority)


def asked_instead(
    server: str | None,
    token_file: Path | None,
    ca: Path | None,
    dump: Path | None,
    at: str | None,
    steady: bool,
    types: Sequence[str] | None = None,
) -> DaemonClient | None:
    """The daemon to ask; None: a dump or the cluster is read. What a daemon sees is no dump's."""
    asked = server_at(server, token_file, ca)
    if asked is not None and (dump is not None or at is not None or steady or types):
        raise InputError("--server: a daemon reports its own cluster; leave out --from, --at, --steady and --type")
    return asked
