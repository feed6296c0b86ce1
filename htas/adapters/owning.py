"""One process at a time owns a file: two that ship from one queue, or act by one journal, would do everything twice."""

from __future__ import annotations

import fcntl
import os
import socket

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from htas.ports import PermanentError


def owned(path: str, within_s: float, what_to_do: str, *, is_shared: bool = False) -> int:
    """A descriptor that locks a file until it is closed or the process ends, however it does.

    The process before us may still be ending: it is waited for. Else PermanentError is raised, which names it.
    `is_shared`: others may have it as well, but not as their own.
    """
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    trying = Retrying(
        retry=retry_if_exception_type(BlockingIOError), stop=stop_after_delay(within_s), wait=wait_fixed(0.05)
    )
    try:
        trying(fcntl.flock, lock, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except RetryError:
        owner = os.pread(lock, 300, 0).decode(errors="replace").strip() or "another process of htas"
        os.close(lock)
        raise PermanentError(f"{path}: {owner} uses it; {what_to_do}") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    return lock
