"""Large catalogues of flavours for the benches: three families, in any size, the same for the same seed.

* aws-like: families of a generation, a ratio of memory to cpu and a vendor; in each, sizes priced nearly linearly.
  Later generations cost less, so that other flavours replace most of the earlier ones.
* random: any cores, any ratio of memory to cpu, a price up to a third above or below what both are worth.
* incomparable: no flavour is replaced by another one, since each costs more than all that it is as large as.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random

from htas.model.flavours import Flavour
from htas.model.resources import Resources

GIB = 2**30
CORE_NANOS, GIB_NANOS = 24_000_000, 3_200_000
"""What a core and a GiB cost an hour, about: 0.024 and 0.0032."""
SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
RATIOS = (1, 2, 4, 8, 16)
LATER = 0.96
"""What a generation costs of the one before."""
MOST_CORES = 64


def aws_like(size: int, seed: int) -> tuple[Flavour, ...]:
    """Families one after another until there are `size` flavours; each has a price of its own by the core and GiB."""
    random = Random(f"aws-like/{seed}")
    made: list[Flavour] = []
    families = ((generation, ratio) for generation in range(size) for ratio in RATIOS)
    for generation, ratio in families:
        for vendor in "aix":
            core = CORE_NANOS * LATER ** (generation % 12) * random.uniform(0.85, 1.15)
            for cores in SIZES:
                price = cores * (core + ratio * GIB_NANOS) * random.uniform(0.995, 1.005)
                made.append(_flavour(f"g{generation}{vendor}{ratio}.{cores}", cores * 1000, cores * ratio, price))
        if len(made) >= size:
            break
    return tuple(made[:size])


def random_prices(size: int, seed: int) -> tuple[Flavour, ...]:
    """Sizes and prices keep to no rule."""
    random = Random(f"random/{seed}")
    made = []
    for number in range(size):
        cores = random.randint(1, MOST_CORES)
        gib = max(1, round(cores * random.uniform(1, 16)))
        price = _worth(cores, gib) * random.uniform(0.75, 1.33)
        made.append(_flavour(f"r{number}", cores * 1000, gib, price))
    return tuple(made)


def incomparable(size: int, seed: int) -> tuple[Flavour, ...]:
    """Random ones of different sizes, each with a price raised above those of all flavours that it could replace."""
    random = Random(f"incomparable/{seed}")
    all_sizes = list(product(range(500, MOST_CORES * 1000 + 1, 500), range(1, 16 * MOST_CORES + 1)))
    sizes = [(cpu_m, gib) for cpu_m, gib in all_sizes if cpu_m <= 1000 * gib <= 16 * cpu_m]
    prices: dict[tuple[int, int], float] = {}
    for cpu_m, gib in sorted(random.sample(sizes, size)):
        held = [price for (cpu, memory), price in prices.items() if cpu <= cpu_m and memory <= gib]
        wished = _worth(cpu_m / 1000, gib) * random.uniform(0.85, 1.1)
        prices[cpu_m, gib] = max([wished, *(price * 1.0001 for price in held)])
    return tuple(_flavour(f"i{cpu_m}-{gib}", cpu_m, gib, price) for (cpu_m, gib), price in prices.items())


FAMILIES: dict[str, Callable[[int, int], tuple[Flavour, ...]]] = {
    "aws-like": aws_like,
    "random": random_prices,
    "incomparable": incomparable,
}


def _worth(cores: float, gib: float) -> float:
    return cores * CORE_NANOS + gib * GIB_NANOS


def _flavour(name: str, cpu_m: int, gib: int, price: float) -> Flavour:
    """Prices are of whole hundred-thousandths an hour, as price files have them."""
    return Flavour(name, Resources(cpu_m, gib * GIB, 0, 110), max(1, round(price / 10**4)) * 10**4)
