"""Records: what is kept of what was done."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from htas.model.approvals import Asked
from htas.model.billing import Cap, Price
from htas.model.outcomes import Outcome
from htas.model.plan import Plan
from htas.model.pods import WorkKind
from htas.model.savings import Savings
from htas.model.snapshot import ClusterSnapshot


class CycleRecord(msgspec.Struct, frozen=True):
    """One cycle: what was seen, what was decided, what came of it.

    With `savings` it is a cycle of the course with HTAS, and nothing of it was done: HTAS only recommends.
    """

    id: int
    at: float
    stages: tuple[str, ...]
    snapshot: ClusterSnapshot
    plan: Plan
    outcomes: tuple[Outcome, ...] = ()
    planning_s: float = 0.0
    savings: Savings | None = None
    asked: tuple[Asked, ...] = ()
    """With mode approve: all that waited for a word after it, and what was said that still counts. So the newest record
    alone knows every no, however many cycles ago it was said.
    """


DAY_S = 86_400.0


class Retention(msgspec.Struct, frozen=True):
    """How many seconds a store keeps things. Released claims stay a while, so that none is made twice.

    Bills two years, for those who compare one with the one before; the stays of pods, which split them, one.
    """

    profile_s: float = 90 * DAY_S
    cycles_s: float = 14 * DAY_S
    runs_s: float = 400 * DAY_S
    bills_s: float = 800 * DAY_S
    released_s: float = DAY_S


def cycle_number(at: float) -> int:
    """The id of the cycle of that instant where many daemons write to one store: its milliseconds since the epoch.

    It needs no counter that all of them would have to ask. A daemon does not run two cycles in one millisecond.
    """
    return round(at * 1000)


class ProfileEvent(StrEnum):
    """The five events on which the profiler writes (HTAS paper 4.1)."""

    DEPLOYMENT = "deployment"
    TERMINATION = "termination"
    RESCHEDULING = "rescheduling"
    PROVISIONING = "provisioning"
    DEPROVISIONING = "deprovisioning"


class ProfileRow(msgspec.Struct, frozen=True):
    """One row of the paper's Table 3, with its event: runtime in whole seconds, RAM in bytes, CPU in millicores."""

    event_time: float
    event: ProfileEvent
    instance_name: str
    instance_type: str
    runtime: int
    ramcapacity: int
    cpucapacity: int
    ramavailable: int
    cpuavailable: int


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod's stay on a node, written when it is over: what it was, what it held of the machine, and how it ended.

    `began_at` is when the pod began to run, here or elsewhere; `came_at` when this node had it first.
    `share_millionths` is the greatest share that it asked for of any resource of the node. `claim` is empty on nodes
    that HTAS does not own. `created_at` is when the pod was created, before its first move; 0: not on record.
    """

    namespace: str
    pod: str
    uid: str
    node: str
    kind: WorkKind
    owner: str
    image: str
    cpu_m: int
    memory_bytes: int
    share_millionths: int
    began_at: float
    came_at: float
    ended_at: float
    claim: str = ""
    succeeded: bool | None = None
    """None: it moved, was removed, or ended unseen."""
    created_at: float = 0.0
    extended: tuple[tuple[str, int], ...] = ()
    """The extended resources it asked for, such as GPUs, sorted by name."""


SETTLED_S = 60.0
"""A bill that ended longer ago hardly ever changes: who adds up bills may add it once, until one is revised."""


class Bill(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rental of one machine in one flavour, as long as the cloud charges for it (`ended_at` None: it still does).

    Its price is that at which it was ordered, whatever the price file says later. `instance` is the machine's id in the
    cloud; empty where an older htas wrote the bill.
    """

    claim: str
    group: str
    flavour: str
    nanos_per_hour: int
    started_at: float
    ended_at: float | None = None
    instance: str = ""
    part: int = 0
    """Its number among the bills of its claim: a resized machine has several, and so has a claim with two machines."""
    is_provisional: bool = False
    """Its end is what HTAS saw: the cloud has not confirmed it."""
    is_price_unknown: bool = False
    """The price file lacks its flavour: its price is that of the flavour which was ordered, or 0 without an order."""

    @property
    def id(self) -> str:
        """What no other bill has."""
        return f"{self.claim}#{self.part}" if self.part else self.claim

    cap: Cap | None = None
    """The most that a calendar month of it costs; None: whatever its hours come to."""

    @property
    def price(self) -> Price:
        return Price(self.nanos_per_hour, self.cap)
