"""Host ports taken, by node row.

Source: kube-scheduler, plugins/nodeports: a port is free where no pod has it with the same protocol and an overlapping
address; 0.0.0.0 (and an empty address) overlaps with every address.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.model.constraints import HostPort
from htas.planning.cluster.classes import Bools, Ints

ANY_ADDRESS = "0.0.0.0"


def conflict(one: HostPort, other: HostPort) -> bool:
    if (one.port, one.protocol) != (other.port, other.protocol):
        return False
    return one.ip == other.ip or ANY_ADDRESS in (one.ip, other.ip)


class PortsTaken:
    """A count by port and row; ports and rows are added, and counts taken back exactly."""

    def __init__(self) -> None:
        self._numbers: dict[HostPort, int] = {}
        self._alike: dict[tuple[int, str], list[HostPort]] = {}
        """Those of a number and protocol: of 60,000 ports taken a pod asks after its own alone."""
        self._counts = np.zeros((0, 0), dtype=np.int32)
        self._conflicting: dict[tuple[HostPort, ...], tuple[int, Ints]] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, port: HostPort, row: int, count: int) -> None:
        """Count `count` pods with a port on a row (negative: take them away)."""
        number = self._numbers.get(port)
        if number is None:
            number = self._numbers[port] = len(self._numbers)
            self._alike.setdefault((port.port, port.protocol), []).append(port)
            if number == len(self._counts):
                self._reserve(max(16, 2 * number), self._counts.shape[1])
        self._counts[number, row] += count

    def items(self) -> Iterator[tuple[HostPort, Ints]]:
        """Each port that was ever taken, with its counts by row."""
        return ((port, self._counts[number].astype(np.int64)) for port, number in self._numbers.items())

    def grow(self, rows: int) -> None:
        """Make room for `rows` node rows."""
        self._reserve(len(self._counts), rows)

    def taken(self, wanted: tuple[HostPort, ...], rows: slice) -> Bools | None:
        """Rows where one of the ports is taken; None: none is anywhere."""
        numbers = self._conflicts(wanted)
        return np.asarray((self._counts[numbers, rows] > 0).any(axis=0)) if len(numbers) else None

    def _conflicts(self, wanted: tuple[HostPort, ...]) -> Ints:
        """Numbers of the ports that some of those wanted conflict with; asked anew once there are more ports."""
        known, numbers = self._conflicting.get(wanted, (-1, None))
        if numbers is None or known != len(self._numbers):
            alike = ((own, port) for own in wanted for port in self._alike.get((own.port, own.protocol), ()))
            found = {self._numbers[port] for own, port in alike if conflict(own, port)}
            numbers = np.array(sorted(found), dtype=np.int64)
            self._conflicting[wanted] = len(self._numbers), numbers
        return numbers

    def _reserve(self, ports: int, rows: int) -> None:
        counts = np.zeros((ports, rows), dtype=np.int32)
        counts[: len(self._counts), : self._counts.shape[1]] = self._counts
        self._counts = counts
