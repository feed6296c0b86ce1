"""Who may ask a daemon for something over HTTP, and how it says no."""

from __future__ import annotations

from pathlib import Path

from htas.adapters.tokens import read_token, shows
from htas.ports import PermanentError


class RequestRefusedError(Exception):
    """A request that is not taken: an HTTP status, and why in words."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def check_token(token_file: Path, authorization: str) -> None:
    """Compare what was shown with the token, read anew so that a Secret may be replaced; raises RequestRefusedError."""
    try:
        token = read_token(token_file)
    except PermanentError as error:
        raise RequestRefusedError(500, f"http.tokenFile: {error}") from error
    if not shows(authorization, token):
        raise RequestRefusedError(401, "show the token of http.tokenFile (Authorization: Bearer …)")
