"""Tokens in files, as a mounted Secret holds them."""

from __future__ import annotations

import hmac
from pathlib import Path

from htas.files import read_file
from htas.ports import PermanentError


def read_token(path: Path, at_least: int = 1, *, takes_pipes: bool = False) -> str:
    """The token that a file holds in one line, of at least that many characters; for a command a pipe will do.

    Read it for each request, so that a Secret may be replaced. Raises PermanentError, which names the file and never
    what is in it.
    """
    try:
        held = read_file(path, takes_pipes=takes_pipes)
    except OSError as error:
        raise PermanentError(f"{path}: {error.strerror}") from error
    return token_of(held, str(path), at_least)


def token_of(held: bytes, where: str, at_least: int = 1) -> str:
    """The token that a file, or a Secret, holds; raises PermanentError as `read_token` does."""
    try:
        token = held.decode("ascii").strip()
    except UnicodeDecodeError:
        raise PermanentError(f"{where}: is no text in ASCII; write the token there, and nothing else") from None
    if not token.isprintable():
        raise PermanentError(f"{where}: is of several lines; write the token there, and nothing else")
    if not token:
        raise PermanentError(f"{where}: is empty; write the token there, as from openssl rand -hex 32")
    if len(token) < at_least:
        raise PermanentError(
            f"{where}: the token has less than {at_least} characters; write one as from openssl rand -hex 32"
        )
    return token


def shows(authorization: str, token: str) -> bool:
    """Whether a request's Authorization header shows a token; the comparison takes as long whatever is shown."""
    scheme, _, shown = authorization.partition(" ")
    is_same = hmac.compare_digest(shown.strip().encode("utf-8", "replace"), token.encode())
    return is_same and scheme.lower() == "bearer"
