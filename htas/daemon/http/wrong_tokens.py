"""Wrong tokens: a source that shows many of them is answered ever more slowly."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from htas.model.pauses import doubled_s
from htas.web.sent import RequestRefusedError

FREE = 5
"""Wrong tokens in a row without a pause: a Secret that was just replaced, a mistake while typing."""
FIRST_S, LONGEST_S = 0.25, 4.0
FORGOTTEN_S = 300.0
MOST_SOURCES = 1_000
MOST_WAITING = 32
"""Tries that wait at a time, of all sources: a quarter of the connections, so that other sources have the rest."""


@dataclass(slots=True)
class Source:
    """Tries of one source address since its last right token, and when its next one may be judged."""

    tries: int = 0
    last: float = 0.0
    next_at: float = 0.0
    lanes: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FREE))
    """Only so many tokens are judged at a time, so that the next ones know how these were judged."""

    def wait_s(self, now: float) -> float:
        """How long a token that is shown now has to wait, after those of this source that wait already."""
        if now - self.last > FORGOTTEN_S:
            self.tries = 0
        if self.tries <= FREE:
            return 0.0
        return max(self.next_at - now, 0.0) + doubled_s(self.tries - FREE, FIRST_S, LONGEST_S)

    def count(self, now: float) -> float:
        """Count a try before it is judged, so that parallel ones add up. How long it has to wait."""
        wait_s = self.wait_s(now)
        self.tries, self.last, self.next_at = self.tries + 1, now, now + wait_s
        return wait_s


class WrongTokens:
    """Counts wrong tokens by source address, in memory, of the last `MOST_SOURCES` sources. `on_wrong` hears of each.

    The pause comes before the token is judged, so that it bounds reviews by the API server, too. Parallel tries wait
    one after another, and a try that would wait for longer than `LONGEST_S` is refused at once: guesses hold few
    connections. People behind the same proxy share its address: while somebody there guesses, their tokens wait or are
    refused, too.
    """

    def __init__(self, on_wrong: Callable[[], None] = lambda: None) -> None:
        self._on_wrong = on_wrong
        self._sources: OrderedDict[str, Source] = OrderedDict()
        self._waiting = 0

    async def judge(self, address: str, check: Callable[[], Awaitable[str]]) -> str:
        """What `check` finds once it is this token's turn. Raises RequestRefusedError."""
        source = self._source(address)
        async with self._turn(source):
            try:
                who = await check()
            except RequestRefusedError as refused:
                if refused.status == 401:
                    self._on_wrong()
                else:  # the token was not found to be wrong
                    source.tries = max(source.tries - 1, 0)
                raise
            source.tries = 0
            return who

    @asynccontextmanager
    async def _turn(self, source: Source) -> AsyncIterator[None]:
        self._refuse_late(source)
        self._waiting += 1
        try:
            await source.lanes.acquire()
        finally:
            self._waiting -= 1
        try:
            self._refuse_late(source)
            await self._pause(source.count(_now()))
            yield
        finally:
            source.lanes.release()

    async def _pause(self, wait_s: float) -> None:
        if wait_s:
            self._waiting += 1
            try:
                await asyncio.sleep(wait_s)
            finally:
                self._waiting -= 1

    def _refuse_late(self, source: Source) -> None:
        wait_s = source.wait_s(_now())
        if wait_s > LONGEST_S or (wait_s and self._waiting >= MOST_WAITING):
            raise RequestRefusedError(429, "too many wrong tokens from your address: try again in some seconds")

    def _source(self, address: str) -> Source:
        source = self._sources.pop(address, None) or Source()
        self._sources[address] = source
        while len(self._sources) > MOST_SOURCES:
            self._sources.popitem(last=False)
        return source


def _now() -> float:
    return asyncio.get_running_loop().time()
