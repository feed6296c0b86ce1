"""The snapshot: one frozen, dated view of the world, and everything a plan may be made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from htas.model.budgets import DisruptionBudget
from htas.model.claims import Headroom, Instance, NodeClaim
from htas.model.defects import Defect
from htas.model.disruptions import Drain
from htas.model.launches import Launches
from htas.model.machine_times import MachineTimes
from htas.model.move_times import MoveTimes
from htas.model.moves import Move
from htas.model.nodes import Node
from htas.model.orphans import Orphan
from htas.model.pods import Pod
from htas.model.rearrangement import OpenRearrangement
from htas.model.reservations import Reservation
from htas.model.resources import Resources
from htas.model.volumes import Volumes


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something seen that could not be used: where it is, and what is wrong with it."""

    where: str
    what: str
    is_doubt: bool = False
    """Its object counts all the same: a part of it, such as one annotation, is passed over. Else it is left out."""


class Backoff(msgspec.Struct, frozen=True):
    """A flavour (None: all of them) in a zone (None: in all) not to be asked for again before `until`."""

    flavour: str | None
    zone: str | None
    until: float
    reason: str


class MoveBackoff(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod that could not be moved from its node, and until when both are left alone.

    `wait_s` is how long that is in all; 0: not on record. `of_drain`: its node could not be emptied for it.
    """

    node: str
    pod: str
    why: str
    until: float
    wait_s: float = 0.0
    of_drain: bool = False


class RoomMade(msgspec.Struct, frozen=True):
    """What moves off a machine have cost, and saved: billionths of the currency an hour × seconds.

    `saved` up to `since`; from then on `nanos_per_hour` is saved, the price of what was not bought, until `until`.
    """

    cost: int
    saved: int
    nanos_per_hour: int
    since: float
    until: float


class Lapse(msgspec.Struct, frozen=True):
    """What was bought to take over from a node has not been used: when that was last, and how often it has been."""

    at: float
    times: int


LONG_S = 10 * 365 * 86_400.0


class Memory(msgspec.Struct, frozen=True):
    """What one plan hands to the next, since planning itself keeps nothing.

    `underutilized_since` and `empty_since` by node; `queue_empty_since` is when no pod waited any more.
    `consolidated_at` is when a group's nodes were last replaced.
    """

    underutilized_since: Mapping[str, float] = {}
    empty_since: Mapping[str, float] = {}
    queue_empty_since: float | None = None
    reservations: Mapping[str, Reservation] = {}
    """By pending pod: the launched machine that it belongs on."""
    consolidated_at: Mapping[str, float] = {}
    cleaned_at: float | None = None
    """When nodes were last judged for emptying."""
    room_made: Mapping[str, RoomMade] = {}
    """By node what moves off it have cost and saved, which were made instead of a purchase."""
    states_costs: tuple[str, ...] = ()
    """Services whose pods have had deletion costs of their own: HTAS writes none on these."""
    launches: Launches = Launches()
    """What became of launched machines, for the pods that they were launched for."""
    lapses: Mapping[str, Lapse] = {}
    """By node what came of the machines that were bought to take over from it."""

    @classmethod
    def of_long_ago(cls, nodes: Iterable[Node], now: float) -> Memory:
        """As if the cluster had been like this for long enough for every rule."""
        since = now - LONG_S
        names = {node.name: since for node in nodes}
        return cls(names, names, since)

    def after_a_restart(self) -> Memory:
        """What of it still holds for who was not there: what was bought and promised, for whom, and what came of it.

        Since when nodes are empty or little used does not: nobody saw whether they were all the while.
        """
        return msgspec.structs.replace(
            self, underutilized_since={}, empty_since={}, queue_empty_since=None, cleaned_at=None
        )


ENDED_KEPT = 1000
"""So many of the pods that ended last are shown; where more end between two cycles, nothing is learned of the rest."""


class Ended(msgspec.Struct, frozen=True):
    """A pod that ran to its end, well or not; `at` where its containers tell when.

    `maker` is what makes pods like it, with its namespace (`Pod.maker`).
    """

    uid: str
    succeeded: bool
    at: float | None = None
    node: str | None = None
    maker: str = ""


class ClusterView(msgspec.Struct, frozen=True):
    """What a cluster says of itself: the part of a snapshot that the ClusterPort observes."""

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = {}
    """Labels of each namespace, for namespaceSelector."""
    volumes: Volumes = Volumes()
    problems: tuple[Problem, ...] = ()
    ended: tuple[Ended, ...] = ()
    """The pods that ended last, in that order (ENDED_KEPT at most): `pods` has none that ended."""
    unread: Mapping[str, str] = {}
    """By node a pod there (namespace/name) that could not be understood, and so is not in `pods`: it may be at work."""
    daemons: tuple[Pod, ...] | None = None
    """For each DaemonSet the pod that its template makes, bound to no node. None: nobody has said which there are."""


class OptimizerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of the optimiser: whether it is at work, and what its last search left unplaced.

    `is_under_way` holds from the beginning of a search until its rearrangement is carried out or dropped. `left` tells
    by pod (its uid) whether it is proven that no placement of the pods of its priority and above takes it in;
    `circumstances` are those the search began in (htas.planning.disrupt.fallback.circumstances).
    """

    is_under_way: bool = False
    ended_at: float | None = None
    circumstances: str = ""
    left: Mapping[str, bool] = {}


class ClusterSnapshot(msgspec.Struct, frozen=True):
    """A dated view: the cluster's, the cloud's and HTAS's own open business.

    `expected_binds` (pod key to node) are binds issued and not yet observed; `held_back` tells until when pods whose
    bind failed are not bound again; `learned` is what a flavour's first Ready node really offered (allocatable).
    `move_times` is what moves were seen to take, by method; `machine_times` what machines did to come and to go.
    `cloud_problem` tells why the cloud cannot be asked now; what is known of it then is what it showed last.
    `store_problem` tells why the journal cannot be written or read now: nothing is begun that it must know of first.
    `defects` are the facts that are missing, on defects of HTAS: then a plan binds pods and does nothing else.
    `models` are nodes that show what CSI drivers make of machines, where `cluster` has not all of them any more: a
    what-if takes nodes away. Empty: those of `cluster` show it.
    """

    taken_at: float
    cluster: ClusterView
    generation: int = 0
    claims: tuple[NodeClaim, ...] = ()
    instances: tuple[Instance, ...] = ()
    drains: tuple[Drain, ...] = ()
    moves: tuple[Move, ...] = ()
    expected_binds: Mapping[str, str] = {}
    held_back: Mapping[str, float] = {}
    backoffs: tuple[Backoff, ...] = ()
    headroom: Headroom = Headroom()
    cloud_problem: str = ""
    store_problem: str = ""
    defects: tuple[Defect, ...] = ()
    learned: Mapping[str, Resources] = {}
    move_times: Mapping[str, MoveTimes] = {}
    failed_moves: tuple[MoveBackoff, ...] = ()
    memory: Memory = Memory()
    search: OptimizerState = OptimizerState()
    rearrangement: OpenRearrangement | None = None
    machine_times: MachineTimes = MachineTimes()
    models: tuple[Node, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    """Machines of ours that the configuration has no place for; their claims are not among `claims` where another
    cluster's name is on them."""
    expects_more: bool = True
    """False: a dump or a what-if, of which nothing else comes: what came of late says nothing about what is bought."""
