"""Files whose place somebody names: never waited for, and read to an end, which a pipe or a device may not have."""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from pathlib import Path

SMALL = 64 * 2**10
"""Tokens, addresses and passwords are far shorter."""


class RefusedFileError(OSError):
    """What is no file, or is too long; `why`, and so `strerror`, says which, and what to do."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(number, why)
        self.why = why


def read_file(path: Path, most: int = SMALL, *, takes_pipes: bool = False) -> bytes:
    """All of a file of at most so many bytes; raises OSError, a RefusedFileError for what it would not read."""
    with opened(path, takes_pipes=takes_pipes) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise RefusedFileError(errno.EFBIG, f"has {size:,} bytes; such a file has at most {most:,}")
        return file.read(most)


def opened(path: Path, *, takes_pipes: bool = False) -> FileIO:
    """A file that is read from its beginning. `takes_pipes`: commands are given what another prints, as by `<(…)`.

    Opening a pipe that nobody writes to would wait until somebody does; so it is empty.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = os.fstat(number).st_mode
        is_file = stat.S_ISREG(kind) or stat.S_ISDIR(kind)  # of a folder, FileIO tells
        if not (is_file or (takes_pipes and stat.S_ISFIFO(kind))):
            raise RefusedFileError(errno.EINVAL, "is no file; name one")
        os.set_blocking(number, True)
        return FileIO(number)
    except OSError:
        os.close(number)
        raise
