"""A child process that ends with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def end_with(parent: int) -> None:
    """Have the kernel end this process when the thread that began it ends, however that may be (SIGKILL, too)."""
    if _LIBC is not None:
        _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before we could say so
        os._exit(1)
