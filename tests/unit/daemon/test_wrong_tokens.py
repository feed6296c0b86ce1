"""A source that shows wrong tokens waits longer before each next one is judged, also where it shows many at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from htas.daemon.http.wrong_tokens import FIRST_S, FORGOTTEN_S, FREE, LONGEST_S, MOST_SOURCES, MOST_WAITING, WrongTokens
from htas.web.sent import RequestRefusedError

GUESSER, OTHER = "192.0.2.1", "192.0.2.2"


class VirtualSelector(selectors.DefaultSelector):
    """Moves a loop's time on instead of waiting."""

    now: float = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on virtual time."""

    def __init__(self) -> None:
        self.virtual = VirtualSelector()
        super().__init__(self.virtual)

    def time(self) -> float:
        return self.virtual.now


@dataclass
class Door:
    """Shows tokens, and notes when each was judged. Judging takes 10 ms, as a review by the API server does."""

    tokens: WrongTokens = field(default_factory=WrongTokens)
    judged: list[float] = field(default_factory=list)
    """Wrong tokens."""

    async def show(self, address: str, token: str = "wrong") -> int:
        """The status that is answered."""
        try:
            await self.tokens.judge(address, partial(self._check, token))
        except RequestRefusedError as refused:
            return refused.status
        return 200

    async def _check(self, token: str) -> str:
        await asyncio.sleep(0.01)
        if token == "right":
            return "somebody"
        self.judged.append(asyncio.get_running_loop().time())
        raise RequestRefusedError({"unknown": 503, "forbidden": 403}.get(token, 401), token)


def run(played: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(played)


async def taken_s(shown: Awaitable[int]) -> float:
    """How long an answer took, without what judging takes."""
    began = asyncio.get_running_loop().time()
    await shown
    return round(asyncio.get_running_loop().time() - began, 2) - 0.01


def test_a_few_mistakes_cost_nothing_and_more_cost_twice_as_much_each() -> None:
    async def played() -> None:
        door = Door()
        pauses = [await taken_s(door.show(GUESSER)) for _ in range(FREE + 8)]
        assert pauses[: FREE + 1] == pytest.approx([0.0] * (FREE + 1))
        assert pauses[FREE + 1 : FREE + 4] == pytest.approx([FIRST_S, 2 * FIRST_S, 4 * FIRST_S])
        assert pauses[-1] == pytest.approx(LONGEST_S)
        assert await taken_s(door.show(OTHER)) == pytest.approx(0.0), "another source"

    run(played())


@pytest.mark.parametrize("tries", [500, 5_000])
def test_parallel_tries_of_a_source_add_up(tries: int) -> None:
    async def played() -> None:
        door = Door()
        answered = await asyncio.gather(*(door.show(GUESSER) for _ in range(tries)))
        at_once = FREE + 1 + 5  # 0.25, 0.5, 1, 2 and 4 s
        assert len(door.judged) <= at_once
        assert answered.count(429) == tries - len(door.judged), "what would wait longer is refused, not kept"
        judged = len(door.judged)
        for _ in range(60):
            await asyncio.gather(*(door.show(GUESSER) for _ in range(tries // 10)))
            await asyncio.sleep(1.0)
        minute = asyncio.get_running_loop().time() - door.judged[judged - 1]
        assert len(door.judged) - judged <= minute / LONGEST_S + 1

    run(played())


def test_a_right_token_of_another_source_is_not_slowed() -> None:
    async def played() -> None:
        door = Door()
        sources = [f"198.51.100.{number}" for number in range(200)]
        guesses = [asyncio.ensure_future(door.show(source)) for source in sources for _ in range(40)]
        await asyncio.sleep(0.5)
        waiting = sum(not guess.done() for guess in guesses)
        assert 0 < waiting <= MOST_WAITING, "connections are left for others"
        assert await taken_s(door.show(OTHER, "right")) == pytest.approx(0.0)
        assert await asyncio.gather(*(door.show(OTHER, "right") for _ in range(50))) == [200] * 50
        await asyncio.gather(*guesses)

    run(played())


@pytest.mark.parametrize("token", ["unknown", "forbidden", "right"])
def test_what_is_not_wrong_is_not_counted(token: str) -> None:
    async def played() -> None:
        door = Door()
        for _ in range(30):
            assert await taken_s(door.show(GUESSER, token)) == pytest.approx(0.0)

    run(played())


def test_the_right_token_and_time_end_the_pause() -> None:
    async def played() -> None:
        door = Door()
        for source in (GUESSER, OTHER):
            for _ in range(20):
                await door.show(source)
        assert await taken_s(door.show(GUESSER, "right")) == pytest.approx(LONGEST_S), "the pause bounds guesses"
        assert await taken_s(door.show(GUESSER)) == pytest.approx(0.0)
        await asyncio.sleep(FORGOTTEN_S + 1)
        assert await taken_s(door.show(OTHER)) == pytest.approx(0.0)

    run(played())


def test_what_is_remembered_is_bounded_and_each_wrong_token_is_counted() -> None:
    async def played() -> None:
        heard: list[int] = []
        door = Door(WrongTokens(lambda: heard.append(1)))
        sources = [f"source {number}" for number in range(MOST_SOURCES + 50)]
        for source in sources:
            for _ in range(FREE + 1):
                await door.show(source)
        assert len(heard) == len(sources) * (FREE + 1)
        assert await taken_s(door.show(sources[-1])) == pytest.approx(FIRST_S)
        assert await taken_s(door.show(sources[0])) == pytest.approx(0.0), "the oldest is forgotten"

    run(played())
