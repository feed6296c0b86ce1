"""Amounts of resources: what a pod asks for and what a node offers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import msgspec

CPU, MEMORY, EPHEMERAL, PODS = "cpu", "memory", "ephemeral-storage", "pods"


class Resources(msgspec.Struct, frozen=True, omit_defaults=True):
    """A vector of exact amounts. It has no order: use `fits_in`, never `<`.

    cpu in millicores, memory and ephemeral storage in bytes, pods as a count; extended resources (and
    hugepages) by name in whole units, sorted by name, zeros left out.
    """

    cpu_m: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    pods: int = 0
    extended: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, amounts: Mapping[str, int]) -> Resources:
        """From amounts by Kubernetes' names (cpu in millicores)."""
        rest = {name: n for name, n in amounts.items() if name not in (CPU, MEMORY, EPHEMERAL, PODS) and n}
        return cls(
            amounts.get(CPU, 0),
            amounts.get(MEMORY, 0),
            amounts.get(EPHEMERAL, 0),
            amounts.get(PODS, 0),
            tuple(sorted(rest.items())),
        )

    def amounts(self) -> dict[str, int]:
        """All amounts by Kubernetes' names; the four standard ones always, extended ones when not zero."""
        return {
            CPU: self.cpu_m,
            MEMORY: self.memory_bytes,
            EPHEMERAL: self.ephemeral_bytes,
            PODS: self.pods,
            **dict(self.extended),
        }

    @property
    def parts(self) -> tuple[int, int, int, int, tuple[tuple[str, int], ...]]:
        return self.cpu_m, self.memory_bytes, self.ephemeral_bytes, self.pods, self.extended

    def amount(self, name: str) -> int:
        return self.amounts().get(name, 0)

    def __add__(self, other: Resources) -> Resources:
        if not self.extended and not other.extended:  # by far the most frequent sum
            return Resources(
                self.cpu_m + other.cpu_m,
                self.memory_bytes + other.memory_bytes,
                self.ephemeral_bytes + other.ephemeral_bytes,
                self.pods + other.pods,
            )
        mine, theirs = self.amounts(), other.amounts()
        return Resources.of({name: mine.get(name, 0) + theirs.get(name, 0) for name in {**mine, **theirs}})

    def __sub__(self, other: Resources) -> Resources:
        if not self.extended and not other.extended:
            return Resources(
                self.cpu_m - other.cpu_m,
                self.memory_bytes - other.memory_bytes,
                self.ephemeral_bytes - other.ephemeral_bytes,
                self.pods - other.pods,
            )
        mine, theirs = self.amounts(), other.amounts()
        return Resources.of({name: mine.get(name, 0) - theirs.get(name, 0) for name in {**mine, **theirs}})

    def at_least(self, other: Resources) -> Resources:
        """The greater amount of each."""
        mine, theirs = self.amounts(), other.amounts()
        return Resources.of({name: max(mine.get(name, 0), theirs.get(name, 0)) for name in {**mine, **theirs}})

    def fits_in(self, room: Resources) -> bool:
        """Whether every amount asked for is there."""
        if not self.extended:  # by far the most frequent question
            return (
                self.cpu_m <= max(room.cpu_m, 0)
                and self.memory_bytes <= max(room.memory_bytes, 0)
                and self.ephemeral_bytes <= max(room.ephemeral_bytes, 0)
                and self.pods <= max(room.pods, 0)
            )
        there = room.amounts()
        return all(n <= there.get(name, 0) for name, n in self.amounts().items() if n > 0)


NOTHING = Resources()
MILLION = 1_000_000


def dominant_share(asked: Resources, offered: Resources) -> Fraction:
    """The greatest share of any resource that a pod asks for of a machine; 0 for a pod without requests.

    Every resource of the machine counts but the number of pods: cores, memory, local disk and each extended resource.
    Of 8 cores, 64 GiB and one GPU, a pod of the GPU and one core has 1 of the machine, a pod of 6 cores 0.75.

    Source: Ghodsi et al., "Dominant Resource Fairness", NSDI 2011.
    """
    return Fraction(*_dominant(asked, offered))


def share_millionths(asked: Resources, offered: Resources) -> int:
    """The same in millionths, rounded down."""
    amount, of = _dominant(asked, offered)
    return amount * MILLION // of


def _dominant(asked: Resources, offered: Resources) -> tuple[int, int]:
    """What is asked for of the resource with the greatest share, and how much of it there is."""
    best, best_of, there = 0, 1, offered.amounts()
    for name, amount in asked.amounts().items():
        of = there.get(name, 0)
        if name != PODS and of > 0 and amount * best_of > best * of:
            best, best_of = amount, of
    return best, best_of


class DefaultRequests(msgspec.Struct, frozen=True):
    """What launching and saving count of a pod that states no cpu, or no memory; 0: it counts nothing.

    By default kube-scheduler's non-zero values. Whether a pod fits a node is judged by what it states.
    """

    cpu_m: int = 100
    memory_bytes: int = 200 * 2**20

    def missing(self, requests: Resources) -> tuple[int, int]:
        """Cpu and memory that count beside what is stated."""
        return 0 if requests.cpu_m else self.cpu_m, 0 if requests.memory_bytes else self.memory_bytes

    def filled(self, requests: Resources) -> Resources:
        """The requests as they count."""
        cpu_m, memory_bytes = self.missing(requests)
        if not cpu_m and not memory_bytes:
            return requests
        return msgspec.structs.replace(
            requests, cpu_m=requests.cpu_m + cpu_m, memory_bytes=requests.memory_bytes + memory_bytes
        )


class LackingRequests(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many of how many pods state no cpu or no memory, and what counts for them."""

    pods: int = 0
    of: int = 0
    counted: DefaultRequests = DefaultRequests(0, 0)


def amount_text(name: str, amount: int) -> str:
    """An amount in the unit that people read it in: `20 cores`, `512 MiB`, `1.5 GiB`; of devices their number."""
    if name == CPU:
        return "1 core" if amount == 1000 else f"{amount / 1000:,.10g} cores"
    if name in (MEMORY, EPHEMERAL) or name.startswith("hugepages-"):
        unit, size = ("GiB", 2**30) if amount >= 2**30 else ("MiB", 2**20)
        number = f"{amount / size:,.0f}" if amount >= 1000 * size else f"{amount / size:.4g}"
        return f"{number} {unit}" if amount else "0"
    return str(amount)


def shortage_text(name: str, asked: int, offered: int) -> str:
    """`memory (140 GiB asked, 127.8 GiB offered)`; to the last byte where that alone tells them apart."""
    told = amount_text(name, asked), amount_text(name, offered)
    asked_text, offered_text = told if told[0] != told[1] else (str(asked), str(offered))
    return f"{name} ({asked_text} asked, {offered_text} offered)"
