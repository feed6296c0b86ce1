"""What a document takes from who asks for it, and what it reports while it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from htas.ports import GivenError

Progress = Callable[[str, int, int], None]
"""Told what is at hand, how many are done, and of how many."""


@contextmanager
def said_in(where: str) -> Iterator[None]:
    """What makes no sense is told with where it stands: a command's option, or a part of a query."""
    try:
        yield
    except GivenError as error:
        raise GivenError(f"{where}: {error}") from None
