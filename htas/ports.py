"""The ports: what HTAS asks of the world. Each has an embedded implementation (sandbox, SQLite) and real ones.

Errors come in three kinds, and every adapter translates its library's own into them (`raise … from err`):
TransientError (try again later), PermanentError (it will never work as asked), CapacityError (the cloud has none or
grants none: back the flavour off and take the next-cheapest).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from htas.model.claims import Headroom, Instance, NodeClaim, Usage
from htas.model.constraints import Taint
from htas.model.disruptions import Disruption
from htas.model.flavours import Flavour, Learned
from htas.model.migrations import MigrationRecord, Refusal
from htas.model.moves import MigrationMethod, Move
from htas.model.news import News
from htas.model.nodes import Node
from htas.model.pods import Pod
from htas.model.record import Bill, CycleRecord, ProfileRow, Run
from htas.model.snapshot import ClusterView

Queued = TypeVar("Queued", bound=Disruption)


class HTASError(Exception):
    """The root of HTAS's own errors. Others' words in it may hold half a surrogate pair, as JSON lets them.

    Such a half can be neither journalled nor logged (no UTF-8 has it), so it is written out: \\ud800.
    """

    def __str__(self) -> str:
        return super().__str__().encode(errors="backslashreplace").decode()


class GivenError(HTASError):
    """What somebody gave is wrong (a file, an option), not what was done with it; each line is one problem."""


MOST_TOLD, LONGEST_TOLD = 50, 500
"""Problems of one thing that somebody gave, and characters of each: 9,000 wrong keys were told in 1.5 MB."""


def first_told(problems: Sequence[str]) -> str:
    """A line each of the first problems, and how many more there are."""
    lines = [line if len(line) <= LONGEST_TOLD else f"{line[: LONGEST_TOLD - 1]}…" for line in problems[:MOST_TOLD]]
    more = len(problems) - len(lines)
    return "\n".join([*lines, f"and {more:,} more"] if more else lines)


class TransientError(HTASError):
    """The call may succeed later; `retry_after_s` is the other side's wish, if it stated one."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NotYetError(TransientError):
    """What was asked for has begun and goes on by itself: the call is made again once it may be over."""


class PermanentError(HTASError):
    """The call will not succeed as it stands."""


class RefusedError(PermanentError):
    """The cloud would refuse any machine: a credential, a right, the image or the network is wrong."""


class NotFoundError(PermanentError):
    """The object is gone."""


class ConflictError(PermanentError):
    """Somebody else changed the object, or it is not in the state the call needs."""


class MoveRefusedError(ConflictError):
    """A pod that cannot be moved as it is, or not there: known before anything was touched."""

    def __init__(self, reason: Refusal, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason}: {super().__str__()}"


class CapacityError(HTASError):
    """The cloud is out of stock, or over quota (`is_quota`); other flavours may still be had."""

    def __init__(self, message: str, *, is_quota: bool = False) -> None:
        super().__init__(message)
        self.is_quota = is_quota


class Clock(Protocol):
    """The time, as the world has it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    @property
    def speed(self) -> float:
        """Seconds of this clock that pass in one real second: 1 for the real world."""
        ...


class ClusterPort(Protocol):
    """Kubernetes, as far as HTAS needs it. Effects are idempotent: done twice, they are done once."""

    def observe(self) -> ClusterView:
        """What the cluster is now; raises TransientError where it cannot be known."""
        ...

    def changes(self) -> int:
        """A number that grows whenever work arrives or room frees: the trigger of an early cycle."""
        ...

    def on_change(self, wake: Callable[[], None]) -> None:
        """Have `wake` called whenever `changes` has grown, from any thread; it returns at once. The last one counts."""
        ...

    def bind(self, pod: Pod, node: str, deletion_cost: int | None = None) -> None:
        """Bind a waiting pod; NotFoundError if it is gone, ConflictError if it is bound elsewhere.

        `deletion_cost` is written on it in the same call; None: what it has stays.

        NotYetError while its volumes are being made: they are made for that node, and the pod is bound afterwards.
        """
        ...

    def evict(self, pod: Pod, grace_s: float | None = None) -> None:
        """Evict by the Eviction API: TransientError when a disruption budget says not now; gone already is done.

        `grace_s` is the time it is given to end; None: the pod's own.
        """
        ...

    def nominate(self, pod: Pod, node: str | None) -> None:
        """Write on a waiting pod which node room is made on for it (None: on none); NotFoundError if it is gone."""
        ...

    def preempt(self, pod: Pod, message: str) -> None:
        """Delete a pod for work of higher priority, whatever budgets say, and note on it why; gone already is done."""
        ...

    def set_draining(self, node: str, draining: bool) -> None:
        """Taint and cordon a node (or undo both); NotFoundError if it is gone."""
        ...

    def set_up_node(self, node: str, labels: Mapping[str, str], taints: Sequence[Taint] = ()) -> None:
        """Give a node labels and taints beside its own; NotFoundError if it is gone."""
        ...

    def disown_node(self, node: str) -> None:
        """Take our labels (cluster, claim, group) off a node; gone already is done."""
        ...

    def delete_node(self, node: str) -> None:
        """Remove the Node object; gone already is done."""
        ...


class ProviderPort(Protocol):
    """A cloud that sells machines. It is eventually consistent: a failure may show only later, in `instances`."""

    def create(self, claim: NodeClaim, flavour: Flavour, node: Node) -> Instance:
        """Ask for the machine of a claim; repeated with the same claim it returns the first.

        `node` is the node as it should register (name, labels, taints).
        Raises CapacityError, TransientError or PermanentError; RefusedError where no other flavour would be granted.
        """
        ...

    def delete(self, instance_id: str) -> None:
        """Ask for the machine's end, by its id; NotFoundError once it is gone."""
        ...

    def adopt(self, instance_id: str, cluster: str, claim: str, group: str) -> None:
        """Write into a machine's metadata whose it is from now on; NotFoundError where it is gone."""
        ...

    def instances(self) -> Sequence[Instance]:
        """Every machine of the project, ours and others'."""
        ...

    def headroom(self) -> Headroom:
        """What would still be granted."""
        ...

    def usage(self, since: float, until: float) -> Sequence[Usage] | None:
        """What the cloud's own books say of machines that it charged for within a window; None: it does not tell.

        Each is told in whole, those that are gone included; a resized machine may come in several parts. Others'
        machines are among them. Raises TransientError, or PermanentError where HTAS may not ask.
        """
        ...

    def changes(self) -> int:
        """A number that grows whenever a machine fails or goes unasked: the trigger of an early cycle."""
        ...

    def on_change(self, wake: Callable[[], None]) -> None:
        """As ClusterPort's."""
        ...


class JoinPort(Protocol):
    """What machines are let into the cluster by, where that is more than the cloud's word."""

    def ends_at(self, claim: NodeClaim) -> float:
        """When it ends by itself, at the latest."""
        ...

    def revoke(self, claim: NodeClaim) -> None:
        """End what the machine of a claim was to join by: it has joined, or never will; gone already is done."""
        ...


class MigrationPort(Protocol):
    """Moving running pods without losing their progress."""

    def start(self, pod: Pod, target: str, method: MigrationMethod = MigrationMethod.CHECKPOINT) -> None:
        """Begin to move a pod; it runs on at its source until it runs at the target. Begun already is done.

        Raises MoveRefusedError where it cannot be moved as it is (it does not run, say), NotFoundError where it or the
        target is gone, ConflictError where it is on its way elsewhere or was taken back just now, and TransientError
        where that cannot be known now.
        """
        ...

    def moving(self) -> Sequence[Move]:
        """Moves under way."""
        ...

    def records(self) -> Sequence[MigrationRecord]:
        """Moves under way, then those that ended last (ENDED_KEPT at most) in the order of their end."""
        ...


class AnnouncerPort(Protocol):
    """What HTAS says of its work, where people look. Best effort: it never raises and never waits."""

    def tell(self, news: Iterable[News]) -> None:
        """Put Events on objects. What to tell, and how often, has been decided by the caller."""
        ...

    def mark_waiting(self, pod: Pod, message: str) -> None:
        """Note on a pod of ours that it could not be placed, and why (condition PodScheduled)."""
        ...

    def publish(self, status: str) -> None:
        """Replace the status document (YAML text) that people can read in the cluster."""
        ...


class LeaseRecord(msgspec.Struct, frozen=True):
    """Who leads, as written down. `holder` empty: nobody. `version` empty: it is not written yet.

    `successor`: who has asked the holder to make way; until it leads, or has been silent for as long as a holder may
    be, nobody else takes the lease.
    """

    holder: str
    duration_s: float
    acquired_at: float
    renewed_at: float
    transitions: int = 0
    version: str = ""
    successor: str = ""


class LeasePort(Protocol):
    """One record that several daemons write, of whom the second fails."""

    def read(self) -> LeaseRecord | None: ...

    def write(self, record: LeaseRecord) -> LeaseRecord:
        """Write a record over the version it was read with, or the first of all; ConflictError: another was first."""
        ...

    def delete(self, record: LeaseRecord) -> None:
        """Remove the record as it was read; gone already is done. ConflictError: another has written it since."""
        ...


class User(msgspec.Struct, frozen=True):
    """Who shows a token, as the API server knows them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class ReviewPort(Protocol):
    """Who asks, and whether they may. Both raise TransientError or PermanentError where that cannot be found out."""

    def user_of(self, token: str) -> User | None:
        """Whose token this is; None: nobody's."""
        ...

    def may(self, user: User, verb: str, path: str) -> bool:
        """Whether they may `get` or `post` a path of ours."""
        ...


class StorePort(Protocol):
    """What must outlive the process: the journal, which is waited for, and history, which may be lost."""

    def claims(self) -> Sequence[NodeClaim]:
        """Claims that are not Released."""
        ...

    def claims_made_since(self, since: float) -> Sequence[NodeClaim]:
        """Claims that were made at or after an instant, those included that are Released (for `Retention.released_s`
        at least)."""
        ...

    def put_claim(self, claim: NodeClaim) -> NodeClaim:
        """Write a claim whose `version` is the stored one (0: it must be new); returns it with the next version.

        Raises ConflictError when another writer was first.
        """
        ...

    def put_claims(self, claims: Sequence[NodeClaim]) -> list[NodeClaim]:
        """Write several claims as `put_claim` writes one: quicker than one by one.

        Raises ConflictError where somebody else was first with one of them; others may have been written then.
        """
        ...

    def disruptions(self) -> Sequence[Disruption]:
        """The queue of what is being carried out, by id: drains, and one rearrangement at most."""
        ...

    def put_disruption(self, disruption: Queued) -> Queued:
        """Write an entry of the queue as `put_claim` writes a claim."""
        ...

    def delete_disruption(self, disruption_id: str, version: int) -> None:
        """Delete an entry whose stored version is `version`; what is gone already is no error.

        Raises ConflictError when another writer was first: what another daemon does is not ours to forget.
        """
        ...

    def learned(self) -> dict[str, Learned]:
        """What each flavour was seen to offer."""
        ...

    def put_learned(self, flavour: str, allocatable: Learned) -> None: ...

    def add_profile(self, rows: Iterable[ProfileRow]) -> None: ...

    def profile(self, instance: str | None = None, since: float = 0.0) -> Sequence[ProfileRow]:
        """Rows in order of their time."""
        ...

    def latest(self) -> Sequence[ProfileRow]:
        """The newest row of each instance that was not deprovisioned, by name: the snapshot of HTAS paper 4.1."""
        ...

    def add_runs(self, runs: Iterable[Run]) -> None:
        """Keep runs that are over; one that is known already (uid, node) is written anew."""
        ...

    def runs(self, since: float = 0.0, limit: int | None = None) -> Sequence[Run]:
        """Runs that ended at or after an instant, in order of their end; with `limit` the newest of them."""
        ...

    def add_cycle(self, record: CycleRecord) -> int:
        """Keep a cycle; returns its id (the one in the record is ignored)."""
        ...

    def cycle(self, cycle_id: int) -> CycleRecord | None: ...

    def cycles(self, since: float = 0.0, limit: int = 100) -> Iterator[CycleRecord]:
        """The newest `limit` cycles since an instant, oldest first, each read as it is asked for: a hundred of 18 MB
        each took 3 GB. To be taken before the store is closed; what cannot be read is raised then.
        """
        ...

    def put_bill(self, bill: Bill) -> None:
        """Open or close the bill of a claim."""
        ...

    def bills(self, since: float = 0.0) -> Sequence[Bill]:
        """Bills that were open at or after an instant."""
        ...

    def probe(self) -> None:
        """Raise what an entry of the journal would raise now; nothing is changed."""
        ...

    def close(self) -> None: ...
