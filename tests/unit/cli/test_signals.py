"""Signals in any number: none is handled within another, and the process still ends cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

STORM = """
import signal, sys
from threading import Event
from htas.cli import signals
done, asked = Event(), Event()
signals.handle({**dict.fromkeys(signals.ENDING, done.set), signal.SIGHUP: asked.set})
print("ready", flush=True)
done.wait()
print("asked" if asked.is_set() else "not asked", flush=True)
"""


def test_a_storm_of_signals_neither_blocks_nor_recurses() -> None:
    process = subprocess.Popen([sys.executable, "-c", STORM], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(20_000):
            os.kill(process.pid, signal.SIGHUP)
        os.kill(process.pid, signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (said, process.returncode) == ("asked\n", 0)


ELSEWHERE = """
import signal, threading
from threading import Event, Timer
from htas.cli import signals
done = Event()
signals.handle(dict.fromkeys(signals.ENDING, done.set))
Timer(0.5, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)).start()
done.wait()
"""


def test_a_signal_that_the_kernel_gives_to_another_thread_ends_a_main_thread_that_waits() -> None:
    assert subprocess.run([sys.executable, "-c", ELSEWHERE], timeout=60, check=False).returncode == 0
