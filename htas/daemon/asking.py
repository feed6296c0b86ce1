"""Who may ask a daemon for something over HTTP, and how it says no."""

from __future__ import annotations

import hmac
from pathlib import Path


class RequestRefusedError(Exception):
    """A request that is not taken: an HTTP status, and why in words."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def check_token(token_file: Path, authorization: str) -> None:
    """Compare what was shown with the token, read anew so that a Secret may be replaced; raises RequestRefusedError."""
    try:
        token = token_file.read_text().strip()
    except OSError as error:
        raise RequestRefusedError(500, f"http.tokenFile: {token_file}: {error.strerror}") from error
    if not token or not hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
        raise RequestRefusedError(401, "show the token of http.tokenFile (Authorization: Bearer …)")
