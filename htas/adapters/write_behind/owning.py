"""One process at a time owns a buffer: two that ship from one queue would ship it twice and out of order."""

from __future__ import annotations

import fcntl
import os

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from htas.ports import PermanentError


def owned(path: str, within_s: float) -> int:
    """A descriptor that locks a buffer until it is closed or the process ends, however it does.

    The process before us may still be ending: it is waited for. Raises PermanentError when it does not.
    """
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    trying = Retrying(
        retry=retry_if_exception_type(BlockingIOError), stop=stop_after_delay(within_s), wait=wait_fixed(0.05)
    )
    try:
        trying(fcntl.flock, lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except RetryError:
        os.close(lock)
        raise PermanentError(
            f"{path}: another process of htas uses this buffer; end it, or name another store.cassandra.buffer.path"
        ) from None
    return lock
