"""Trying inputs one by one: how many, how long each takes of the processor, and how much memory it needs."""

from __future__ import annotations

import resource
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import process_time
from types import FrameType

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tools.fuzz.targets import Target

MOST_CPU_S = 2.0
MOST_MB = 300.0


class HangError(BaseException):
    """An input has taken too long of the processor. No Exception: nobody may catch it on the way."""


class TooMuchMemoryError(Exception):
    """An input needed too much."""


@dataclass(slots=True)
class Tally:
    """What became of a target's inputs. `defects` holds one input for each place that fails."""

    inputs: int = 0
    slowest_s: float = 0.0
    largest_mb: float = 0.0
    defects: dict[str, str] = field(default_factory=dict)


def try_some(
    target: Target, tally: Tally, number: int, count: int, *, shrinks: bool = True, most_cpu_s: float = MOST_CPU_S
) -> None:
    """Try so many inputs, drawn by the seed `number`; a defect that is known by now is passed over."""
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)

    @seed(number)
    @settings(max_examples=count, database=None, deadline=None, phases=phases, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def each(data: st.DataObject) -> None:
        drawn = data.draw(target.inputs)
        try:
            _measured(target, drawn, tally, most_cpu_s)
        except (Exception, HangError) as error:
            place = place_of(error)
            if place in tally.defects:
                return
            found.append((place, f"{drawn!r}\n{''.join(traceback.format_exception(error))}"))
            raise AssertionError(place) from error

    found: list[tuple[str, str]] = []
    try:
        each()
    except BaseException as error:
        if not found or isinstance(error, KeyboardInterrupt):
            raise
        tally.defects[found[-1][0]] = found[-1][1]  # the last one is the smallest


def _measured(target: Target, drawn: object, tally: Tally, most_cpu_s: float) -> None:
    began, before = process_time(), _peak_mb()
    tally.inputs += 1
    with _ended_after(most_cpu_s):
        target.take(drawn)
    took, grown = process_time() - began, _peak_mb() - before
    tally.slowest_s = max(tally.slowest_s, took)
    tally.largest_mb = max(tally.largest_mb, grown)
    if grown > MOST_MB:
        raise TooMuchMemoryError(f"{grown:.0f} MB")
    if took > most_cpu_s:
        raise HangError(f"{took:.1f} s of the processor")


@contextmanager
def _ended_after(cpu_s: float) -> Iterator[None]:
    """Raise HangError in the block once the process has used so much of the processor."""

    def end(_: int, __: FrameType | None) -> None:
        raise HangError(f"more than {cpu_s:g} s of the processor")

    former = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, former)


def _peak_mb() -> float:
    """The most memory that this process has had so far: an input's is seen where it needs more than all before it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def place_of(error: BaseException) -> str:
    """The kind of an error and the place in htas it came from: what makes two failures one defect."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/htas/" in frame.filename]
    where = f"{ours[-1].filename.rpartition('/htas/')[2]}:{ours[-1].lineno}" if ours else "outside htas"
    return f"{type(error).__name__} at {where}"
