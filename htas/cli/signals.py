"""Signals of a process that lives long, handled by a thread of their own.

A Python signal handler runs in the main thread, between any two of its instructions, and inside another handler.
A handler that takes a lock (`Event.set` does) waits for a lock that its own thread holds, and each further signal
nests one handler deeper. So a handler here only puts the number into a `SimpleQueue`, which is reentrant.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from threading import Thread

ENDING = (signal.SIGTERM, signal.SIGINT)


def handle(actions: Mapping[int, Callable[[], None]]) -> None:
    """Call the action of each signal that comes, one after the other, in a thread. Call it from the main thread."""
    came = SimpleQueue[int]()
    for number in actions:
        signal.signal(number, lambda given, _: came.put(given))
    Thread(target=_act, args=(came, actions), name="signals", daemon=True).start()


def _act(came: SimpleQueue[int], actions: Mapping[int, Callable[[], None]]) -> None:
    while True:
        actions[came.get()]()
