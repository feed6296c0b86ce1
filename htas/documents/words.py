"""Words and figures that several commands write alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from difflib import get_close_matches

from htas.model.billing import HOURS_A_MONTH
from htas.model.constraints import Taint
from htas.model.money import NANOS
from htas.model.plan_document import instant_text
from htas.model.proposals import Launch
from htas.model.resources import MEMORY, LackingRequests, amount_text
from htas.planning.cluster.local_storage import UnstatedStorage

_HUNDREDTH, _TEN_THOUSANDTH = Decimal("0.01"), Decimal("0.0001")


def counted(count: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def some(names: Sequence[str], most: int = 5) -> str:
    """The first few names in order, and how many more there are."""
    if not names:
        return "none"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(sorted(names)[:most]) + more


def of_lacking_requests(lacking: LackingRequests) -> str:
    """How many pods lack requests, and what that means for launches and savings; empty: none does."""
    if not lacking.pods:
        return ""
    first = without_requests(lacking)
    cpu_m, memory = lacking.counted.cpu_m, lacking.counted.memory_bytes
    if not cpu_m and not memory:
        return (
            f"{first} and count as if they needed none: machines may be too small and savings too large"
            " (scheduling.defaultRequests is 0)"
        )
    amounts = f"{cpu_m}m cpu and {amount_text(MEMORY, memory)} of memory"
    return f"{first}; where machines are launched or saved, {amounts} count instead (scheduling.defaultRequests)"


def without_requests(lacking: LackingRequests) -> str:
    """`17 of 40 pods state no cpu or no memory request`."""
    state = "states" if lacking.pods == 1 else "state"
    return f"{lacking.pods:,} of {counted(lacking.of, 'pod')} {state} no cpu or no memory request"


def of_unstated_storage(missing: UnstatedStorage) -> str:
    """What a price file leaves open that pods ask for, and what comes of it."""
    asking = "1 pod requests" if missing.pods == 1 else f"{missing.pods:,} pods request"
    have, it = ("has", "it is") if len(missing.flavours) == 1 else ("have", "they are")
    return (
        f"{asking} ephemeral-storage, and {some(missing.flavours, 12)} {have} no `ephemeralStorage` in the price"
        f" file, nor a node that shows it: {it} never launched for such pods."
    )


def close_to(name: str, names: Sequence[str]) -> list[str]:
    """Names much like another one, the most like it first: with its letters mixed up, or without a hash at its end."""
    begin_so = sorted(each for each in set(names) if each.startswith(f"{name}-"))
    return list(dict.fromkeys([*begin_so, *get_close_matches(name, sorted(set(names)), n=3, cutoff=0.6)]))[:3]


def launched(machines: Iterable[Launch]) -> str:
    """`2 m1.small (group any, zone az-1)`."""
    counts = Counter((item.flavour, item.group, item.zone) for item in machines)
    return ", ".join(
        f"{count} {flavour} (group {group}{f', zone {zone}' if zone else ''})"
        for (flavour, group, zone), count in sorted(counts.items(), key=str)
    )


def taint_text(taint: Taint) -> str:
    """As kubectl writes it: `nvidia.com/gpu=present:NoSchedule`."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def age(seconds: float) -> str:
    """About how long, in the largest unit that kubectl would use: 45s, 12m, 7h, 30d."""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """`; did you mean …?` where a name is much like some of those there are, else what there is."""
    near = close_to(name, names)
    return f"; did you mean {' or '.join(near)}?" if near else f"; there are {some(names)}"


def hourly(nanos: int) -> str:
    """A price an hour to a hundredth of a cent, as price lists have it; -o json has it exactly."""
    rounded = (Decimal(nanos) / NANOS).quantize(_TEN_THOUSANDTH, rounding=ROUND_HALF_EVEN)
    return f"{rounded:f}" if rounded or not nanos else "<0.0001"


def cents(nanos: int) -> str:
    """A sum as a bill has it."""
    return f"{(Decimal(nanos) / NANOS).quantize(_HUNDREDTH, rounding=ROUND_HALF_EVEN):,}"


def a_month(nanos_per_hour: int) -> int:
    """What a month costs, to a hundredth of a cent: prices an hour are rounded where a monthly cap counts."""
    return round(nanos_per_hour * HOURS_A_MONTH, -5)


def share(part: int, of: int) -> str:
    return f"{(Decimal(part) / of * 100).quantize(Decimal('0.1')) + 0:f} %" if of else "-"  # + 0: no -0.0


WOULD_SAVE = "HTAS would save "
NOTHING_AS_IT_IS = "HTAS would save nothing as things are"
NOTHING_TO_SAVE = "HTAS finds nothing to save: it knows no cheaper mix for these pods"

NOTHING_FOUND = "No saving is found, but the facts are incomplete or contradict each other: there may be one"


def saving(saved_nanos: int, whole_nanos: int, currency: str) -> tuple[str, str]:
    """What `htas simulate` and What if say first: how much an hour, and what that is a month and of the whole."""
    month, part = cents(a_month(saved_nanos)), share(saved_nanos, whole_nanos)
    return f"{hourly(saved_nanos)} {currency}/h", f", {month} a month, {part} of what these nodes cost"


# Instants and lengths of time.

_UNITS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def length(seconds: float) -> str:
    """Its two greatest units at most: `45s`, `3m20s`, `2h5m`, `12d` (from ten days on hours do not matter)."""
    left = max(0, int(seconds))
    for i, (size, name) in enumerate(_UNITS):
        count, rest = divmod(left, size)
        if not count:
            continue
        if count >= 10 or i == len(_UNITS) - 1:
            return f"{count}{name}"
        less_size, less = _UNITS[i + 1]
        return f"{count}{name}" + (f"{rest // less_size}{less}" if rest // less_size else "")
    return "0s"


def ago(at: float, now: float) -> str:
    """`3m20s ago`; what is not over yet is told by its instant."""
    return f"{length(now - at)} ago" if at <= now else instant_text(at)
