"""Signals of a process that lives long, handled by a thread of their own.

A Python signal handler runs in the main thread, between any two of its instructions, and inside another handler.
One that takes a lock (`Event.set` does) waits for a lock that its own thread holds, and each further signal nests
one handler deeper. And where the kernel gives a signal to another thread, which it does while the main thread has
one already, a main thread that waits for a lock is not woken: its handler never runs, and SIGTERM is lost.
So the interpreter's own handler writes the number to a pipe, in whichever thread it runs (`signal.set_wakeup_fd`).
"""

from __future__ import annotations

import operator
import os
import signal
from collections.abc import Callable, Mapping
from threading import Thread

ENDING = (signal.SIGTERM, signal.SIGINT)
MOST_AT_ONCE = 65_536
"""Bytes, one for each signal: as many as a pipe holds. What came more than once since is acted upon once."""


def handle(actions: Mapping[int, Callable[[], None]]) -> None:
    """Call the action of each signal that comes, in a thread: once for all of its kind that wait.

    Call it from the main thread.
    """
    came, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    for number in actions:
        signal.signal(number, operator.is_)  # any function of two arguments that runs no Python, so that none nests
    Thread(target=_act, args=(came, actions), name="signals", daemon=True).start()


def _act(came: int, actions: Mapping[int, Callable[[], None]]) -> None:
    while True:
        for number in sorted(set(os.read(came, MOST_AT_ONCE)) & actions.keys()):
            actions[number]()
