"""What the same work would have cost otherwise, as the HTAS paper compares: on machines of one flavour that come and
go with the work, and on as many of them as its peak needs, rented all the time (section 6.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from htas.model.flavours import Flavour
from htas.model.record import Bill, Run
from htas.model.resources import Resources


class TooSmallError(ValueError):
    """A pod asks for more than a whole machine of the flavour."""


def homogeneous(runs: Iterable[Run], flavour: Flavour) -> list[Bill]:
    """The bills of the same work on machines of one flavour: first fit, bought when needed, given back when empty.

    Machines are there at once and nothing is moved: what a real cluster adds in waiting is left out, in favour of the
    alternative. Raises TooSmallError.
    """
    free: dict[int, Resources] = {}
    holds: dict[int, int] = {}
    began: dict[int, float] = {}
    bills: list[Bill] = []
    numbers = count()
    machine_of: dict[tuple[str, str], int] = {}
    for at, starts, run in _events(runs):
        key, asked = (run.uid, run.node), Resources(run.cpu_m, run.memory_bytes, pods=1)
        if starts:
            _check(run, flavour)
            machine = next((each for each, room in free.items() if asked.fits_in(room)), None)
            if machine is None:
                machine = next(numbers)
                free[machine], holds[machine], began[machine] = flavour.allocatable, 0, at
            machine_of[key] = machine
            free[machine] -= asked
            holds[machine] += 1
            continue
        machine = machine_of.pop(key)
        free[machine] += asked
        holds[machine] -= 1
        if not holds[machine]:
            bills.append(_bill(machine, flavour, began[machine], at))
            del free[machine], holds[machine]
    return bills


def fixed_peak(runs: Iterable[Run], flavour: Flavour) -> list[Bill]:
    """As many machines of one flavour as the work's peak needs (see `homogeneous`), from its beginning to its end."""
    rented = homogeneous(runs, flavour)
    if not rented:
        return []
    start, end = min(bill.started_at for bill in rented), max(bill.ended_at or 0.0 for bill in rented)
    return [_bill(i, flavour, start, end) for i in range(_most_at_once(rented))]


def _events(runs: Iterable[Run]) -> list[tuple[float, bool, Run]]:
    """Starts and ends in order of time; of one instant, ends first: what leaves makes room for what comes."""
    events = [(run.came_at, True, run) for run in runs if run.ended_at > run.came_at]
    events += [(run.ended_at, False, run) for _, _, run in events]
    return sorted(events, key=lambda event: (event[0], event[1], event[2].uid))


def _check(run: Run, flavour: Flavour) -> None:
    if run.cpu_m > flavour.allocatable.cpu_m or run.memory_bytes > flavour.allocatable.memory_bytes:
        raise TooSmallError(f"{run.namespace}/{run.pod} does not fit a {flavour.name}; name a larger flavour")


def _bill(machine: int, flavour: Flavour, start: float, end: float) -> Bill:
    return Bill(
        f"{flavour.name}-{machine}", "alternative", flavour.name, flavour.nanos_per_hour, start, end, cap=flavour.cap
    )


def _most_at_once(bills: Iterable[Bill]) -> int:
    steps = sorted(step for bill in bills for step in ((bill.started_at, 1), (bill.ended_at or 0.0, -1)))
    most = running = 0
    for _, step in steps:
        running += step
        most = max(most, running)
    return most
