"""Where a bill goes: each machine's rental, parted into what was used, and into what was paid for nothing and why.

Every second of a rental is one of: *start* (until the node is Ready), *used* (the greater of the cores' and the
memory's share that pods run on; of a node with GPUs that of the GPUs alone, for which it is dear), *room* (what is left
beside them), *empty* (Ready with nothing on it, before, between and after work); what the billing period adds in the
end is *rounding*. The parts add up to the bill but for what a
cycle does not see (it looks every twenty seconds at least, and whenever something changes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from rich.table import Table

from htas.daemon.loops.cycle import CycleResult
from htas.model.nodes import Node
from htas.model.pods import Phase, Pod
from htas.model.resources import CPU, MEMORY
from tools.bench.money.playing import played

PARTS = ("start", "used", "room", "empty", "rounding")


class Account(msgspec.Struct, frozen=True):
    """A run's bill by what it was paid for (the ledger's unit), its machines by flavour, and the mean wait."""

    family: str
    seed: int
    contender: str
    bill: int
    parts: Mapping[str, int]
    flavours: Mapping[str, int]
    mean_wait_s: float


@dataclass(slots=True)
class Accountant:
    """Listens to a daemon's cycles; what was seen in one holds until the next."""

    parts: Counter[str] = field(default_factory=Counter)
    flavours: dict[str, str] = field(default_factory=dict)
    _since: float | None = None
    _last: dict[str, tuple[int, float | None, bool]] = field(default_factory=dict)
    """By claim: price, share in use (None: no pod is there), whether it is Ready."""

    def saw(self, result: CycleResult) -> None:
        now = result.snapshot.taken_at
        if self._since is not None:
            for price, used, is_ready in self._last.values():
                self._charge(price * (now - self._since), used, is_ready=is_ready)
        self._since = now
        self._last = dict(_seen(result))
        for claim in result.snapshot.claims:
            if claim.rented_at is not None and claim.id not in self.flavours:
                self.flavours[claim.id] = claim.flavour
                self._charge(claim.nanos_per_hour * max(0.0, now - claim.rented_at), None, is_ready=False)

    def _charge(self, amount: float, used: float | None, *, is_ready: bool) -> None:
        if not is_ready:
            self.parts["start"] += round(amount)
        elif used is None:
            self.parts["empty"] += round(amount)
        else:
            self.parts["used"] += round(amount * used)
            self.parts["room"] += round(amount * (1 - used))

    def parts_of(self, bill: int) -> dict[str, int]:
        """The parts of a bill; what was not seen in any cycle is rounding."""
        return {**{name: self.parts[name] for name in PARTS}, "rounding": bill - self.parts.total()}


def account(family: str, seed: int, contender: str, trace: Path | None = None) -> Account:
    """Play to the end of the work, and part the bill."""
    accountant = Accountant()
    result = played(family, seed, contender, trace, accountant.saw)
    bill = result.bill_nano_seconds
    return Account(
        family,
        seed,
        contender,
        bill,
        accountant.parts_of(bill),
        dict(Counter(accountant.flavours.values()).most_common()),
        result.mean_scheduling_s,
    )


def accounts_table(accounts: Sequence[Account]) -> Table:
    """Shares of the first contender's bill in each family and seed, so that rows tell where the difference lies."""
    drawn = Table(title="Where the bill goes: shares of the first contender's")
    drawn.add_column("run", no_wrap=True)
    for name in ("bill", *PARTS, "mean wait"):
        drawn.add_column(name, justify="right", no_wrap=True)
    first: dict[tuple[str, int], int] = {}
    for each in accounts:
        whole = first.setdefault((each.family, each.seed), max(1, each.bill))
        shares = [f"{each.parts[name] / whole:.3f}" for name in PARTS]
        run = f"{each.family} {each.seed}\n{each.contender}"
        drawn.add_row(run, f"{each.bill / whole:.3f}", *shares, f"{each.mean_wait_s:.0f} s", end_section=True)
    return drawn


def machines_text(each: Account) -> str:
    """What was bought, such as `trickle 11 htas: 30 m3.xsmall, 23 t3.xsmall`."""
    machines = ", ".join(f"{count} {flavour}" for flavour, count in each.flavours.items())
    return f"{each.family} {each.seed} {each.contender}: {machines}"


def _seen(result: CycleResult) -> dict[str, tuple[int, float | None, bool]]:
    """By claim of each machine that is charged for: its price, the share in use, whether its node is Ready."""
    view = result.snapshot.cluster
    nodes = {node.claim: node for node in view.nodes if node.claim is not None}
    pods: dict[str, list[Pod]] = {}
    for pod in view.pods:
        if pod.node is not None and pod.phase is Phase.RUNNING and not pod.is_daemon:
            pods.setdefault(pod.node, []).append(pod)
    found = {}
    for claim in result.snapshot.claims:
        node = nodes.get(claim.id)
        if claim.rented_at is None and node is None:
            continue
        is_ready = node is not None and node.is_ready
        found[claim.id] = claim.nanos_per_hour, used(node, pods.get(node.name, [])) if node else None, is_ready
    return found


def used(node: Node, pods: Sequence[Pod]) -> float | None:
    """The share of a node that pods use; None: there are none.

    As HTAS's own utilisation has it, but for GPUs counted in shares, which that does not know: the trace's, and all
    that the bench's machines offer beside the standard resources.
    """
    if not pods:
        return None
    offered = {name: amount for name, amount in node.allocatable.extended if amount > 0}
    offered = offered or {CPU: node.allocatable.cpu_m, MEMORY: node.allocatable.memory_bytes}
    return min(1.0, max(_asked(pods, name) / max(amount, 1) for name, amount in offered.items()))


def _asked(pods: Sequence[Pod], name: str) -> int:
    return sum(pod.requests.amount(name) for pod in pods)
