"""The policy: what the operator wants, as the planner reads it. The configuration file becomes one of these."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from htas.model.billing import Price
from htas.model.constraints import Taint
from htas.model.edge import TIER_LABEL, EdgePolicy, Tier
from htas.model.flavours import Catalogue, Flavour
from htas.model.migrations import MigrationSettings
from htas.model.modes import Approval
from htas.model.moves import MigrationMethod
from htas.model.nodes import Node
from htas.model.packing import Packing
from htas.model.pods import Pod, WorkKind
from htas.model.resources import DefaultRequests
from htas.model.volumes import VolumeRules

DEFAULT_SCHEDULER_NAME = "htas"


class Workload(StrEnum):
    """Which kinds of work a node group takes."""

    SERVICE = "service"
    BATCH = "batch"
    ANY = "any"

    def takes(self, kind: WorkKind) -> bool:
        return self is Workload.ANY or self.value == kind.value


class AutoscalingAlgorithm(StrEnum):
    GREEDY = "greedy"
    """The best score nc ÷ p, machine after machine (HTAS paper, Algorithm 3)."""
    CHEAPEST_MIX = "cheapest-mix"
    """The mix of machines of least expected rental, near its lower bound."""


class EmptyRelease(StrEnum):
    AT_ONCE = "at-once"
    BEFORE_BILLING = "before-next-billing-period"


class Consolidation(msgspec.Struct, frozen=True):
    """When a set of nodes is replaced by a cheaper set."""

    enabled: bool = False
    ratio: float = 0.5
    """Saving as a share of the group's price, over pods moved as a share of its pods: Karpenter's 1/k with k = 2."""
    min_saving: float = 0.1
    """Of the price of the nodes replaced."""
    after_s: float = 900.0
    """A node Ready for less is not replaced."""
    cool_down_s: float = 900.0
    """Between two looks at a group, and so between two replacements."""
    within_s: float = 600.0
    """How long replacements that are Ready wait for their pods."""
    shrinks: bool = False
    """Whether a node is replaced by a smaller machine for what is left on it, once that pays for itself."""


class CleaningRules(msgspec.Struct, frozen=True):
    """When and how a group's nodes are emptied. Defaults are Cluster Autoscaler's where it has the same rule.

    `early` is for groups whose moves cost seconds and repeat nothing.
    """

    enabled: bool = True
    utilization_threshold: float = 0.5
    underutilized_for_s: float = 300.0
    queue_empty_for_s: float = 300.0
    migration: MigrationMethod = MigrationMethod.EVICT
    empty_release: EmptyRelease = EmptyRelease.BEFORE_BILLING
    release_ahead_s: float | None = None
    """With `before-next-billing-period`: how long before the period ends an empty node is let go; None: as measured."""
    empty_for_s: float = 0.0
    ignore_daemonset_utilization: bool = True
    ignore_mirror_utilization: bool = True
    skip_local_storage: bool = True
    skip_system_pods: bool = True
    skip_custom_controller_pods: bool = True
    moves_services: bool = False
    """Whether services may be moved that have not opted in; those that opted out never are."""
    sets_deletion_costs: bool = True
    """Whether ReplicaSets that shrink are told to give up first the pods of the machines that came last."""
    min_replica_count: int = 0
    delay_after_launch_s: float = 0.0
    """A node younger than this is not cleaned (empty or not)."""
    max_node_age_s: float | None = None
    """A machine that was rented longer ago is emptied however well it is used; None: it may be of any age."""
    min_kubelet_version: str | None = None
    """A node whose kubelet is older is emptied however well it is used; None: it may be of any version."""
    repair_s: tuple[tuple[str, float], ...] = ()
    """By condition, for how long a node may bear it before it is emptied however well it is used; empty: none is."""
    max_grace_s: float = 600.0
    """An evicted pod is given its own grace period, but no longer (max-graceful-termination-sec)."""
    max_nodes_at_once: int = 10
    """Nodes under way to removal at one time."""
    migration_seconds: float = 10.0
    """What moving a pod takes until it was measured: T = C ÷ B + K (HTAS paper 5.3). Judges whether a move pays."""
    consolidation: Consolidation = Consolidation()

    def ahead_s(self, cycles: Cycles, release_s: float) -> float:
        """How long before a billing period ends an empty machine is let go, at the latest.

        As stated, else as measured: the cloud is asked in the cycle after the decision, and takes `release_s`.
        """
        return self.release_ahead_s if self.release_ahead_s is not None else cycles.scheduling_s + release_s

    @classmethod
    def early(cls, migration: MigrationMethod) -> CleaningRules:
        """The measured rules of batch work that keeps its progress: nodes two thirds full go, after a minute.

        On the paper's patterns rescheduling by them saves 3 to 8 % of the bill; by the others hardly a pod moves.
        """
        return cls(
            migration=migration,
            utilization_threshold=0.7,
            underutilized_for_s=60.0,
            queue_empty_for_s=0.0,
            consolidation=Consolidation(shrinks=True),
        )

    def at_once(self, nodes: int) -> CleaningRules:
        """The same rules without any that waits, or goes by age, of machine or kubelet, or by conditions, for so many
        nodes: what could go for its price, and not when.
        """
        return msgspec.structs.replace(
            self,
            empty_release=EmptyRelease.AT_ONCE,
            empty_for_s=0.0,
            delay_after_launch_s=0.0,
            max_node_age_s=None,
            min_kubelet_version=None,
            repair_s=(),
            max_nodes_at_once=max(1, nodes),
        )


class Limits(msgspec.Struct, frozen=True):
    """Upper bounds; None: no bound. They hold for what HTAS owns, in-flight machines counted."""

    max_nodes: int | None = None
    max_cpu_m: int | None = None
    max_memory_bytes: int | None = None
    max_nanos_per_hour: int | None = None


class NamespaceLimit(msgspec.Struct, frozen=True):
    """What each namespace of these names may have of the machines that are bought, and pin; None: no bound.

    `names` are names of namespaces with `*` and `?` as in a shell. A pin is a running pod that says it stays where it
    is; its price is what it is charged of its machine an hour, and `pinned_for_s` counts from its start.
    """

    names: tuple[str, ...]
    max_cpu_m: int | None = None
    max_nanos_per_hour: int | None = None
    max_pins: int | None = None
    max_pinned_nanos_per_hour: int | None = None
    pinned_for_s: float | None = None

    @property
    def limits_machines(self) -> bool:
        return self.max_cpu_m is not None or self.max_nanos_per_hour is not None

    @property
    def limits_pins(self) -> bool:
        bounds = self.max_pins, self.max_pinned_nanos_per_hour, self.pinned_for_s
        return any(bound is not None for bound in bounds)

    def holds(self, cpu_m: int, nanos: int) -> bool:
        """Whether so much is within it."""
        cpu_is_within = self.max_cpu_m is None or cpu_m <= self.max_cpu_m
        return cpu_is_within and (self.max_nanos_per_hour is None or nanos <= self.max_nanos_per_hour)


class NodeGroup(msgspec.Struct, frozen=True):
    """Machines that take the same kind of work. `flavours` are names with `*` and `?` as in a shell."""

    name: str
    workload: Workload = Workload.ANY
    lends_room: bool = False
    """Of a group for services: batch work may go where it has room, while no new services come."""
    flavours: tuple[str, ...] = ("*",)
    min_nodes: int = 0
    limits: Limits = Limits()
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    """Its nodes register with them, and an agent takes them off: pods need not tolerate them."""
    packing: Packing = Packing()
    autoscaling: AutoscalingAlgorithm = AutoscalingAlgorithm.GREEDY
    cpu_weight: float = 0.5
    memory_weight: float = 0.5
    mix_budget_s: float = 2.5
    """With cheapest-mix: about so long is searched, counted in steps so that the same snapshot gives the same plan."""
    startup_s: float = 60.0
    """With cheapest-mix: how long a machine is paid for before its first pod runs."""
    cleaning: CleaningRules = CleaningRules()
    tier: Tier = Tier.CLOUD
    is_elastic: bool = True
    """False: its machines are neither bought nor released, whatever their price."""


class Cycles(msgspec.Struct, frozen=True):
    scheduling_s: float = 20.0
    autoscaling_s: float = 20.0
    cleaning_s: float = 20.0
    batch_idle_s: float = 1.0
    batch_max_s: float = 10.0


class Timeouts(msgspec.Struct, frozen=True):
    """Each wait ends. Defaults are Cluster Autoscaler's and Karpenter's."""

    launch_s: float = 300.0
    registration_s: float = 900.0
    ready_s: float = 900.0
    initialization_s: float = 900.0
    """From when a node is first Ready until its start-up taints are gone and what its flavour promises is there."""
    drain_s: float = 600.0
    eviction_s: float = 120.0
    """How long budgets may refuse every eviction of a node before its drain is undone (max-pod-eviction-time)."""
    missing_s: float = 60.0
    """How long a machine may be missing from the cloud's list, which lags behind, before it is taken for gone."""
    release_s: float = 300.0
    """How long a machine may take to go before its end is asked for again."""
    unused_s: float = 600.0
    """How long room is kept for pods of another scheduler that does not bind them."""
    backoff_initial_s: float = 20.0
    """Of a flavour: with two of five orders refused, 12 % less is paid than with 1 min (docs/benchmarks.md, scarce)."""
    backoff_max_s: float = 1800.0


MOST_RUNS = 64
"""So many runs are remembered of a template; of a half-life of 20, older ones would carry a ninth of all weight."""


class RunLengths(msgspec.Struct, frozen=True):
    """How long batch work is taken to run, and how that is learned. The defaults are measured: docs/benchmarks.md."""

    default_s: float = 600.0
    """A batch pod whose run length nobody stated and nothing taught. Ten minutes: the paper's largest jobs run 12."""
    learn: bool = True
    """Whether what was learned is used."""
    quantile: float = 0.5
    """The share of runs, newer ones counting more, that end within the estimate."""
    min_runs: int = 3
    """Fewer runs of a template say nothing: its image's are asked, then those of its kind of owner."""
    half_life: float = 20.0
    """A run counts half as much as one so many runs newer."""


class FallbackMode(StrEnum):
    """What HTAS does for unschedulable pods where it cannot launch."""

    OPTIMIZE = "optimize"
    """The optimiser rearranges the cluster; single pods it found nothing for in time are preempted for."""
    PREEMPT = "preempt"
    """Each pod is preempted for, as kube-scheduler does."""
    OFF = "off"


class Promises(StrEnum):
    """What preemption does about disruption budgets and pods that opted out of disruption."""

    KEEP = "keep"
    """Such pods are no victims."""
    AS_KUBE_SCHEDULER = "as-kube-scheduler"
    """Budgets are kept where there is a choice; nothing else protects a pod of lower priority."""


class NewPods(StrEnum):
    """What becomes of pods that arrive while the optimiser thinks."""

    PLAN_AROUND = "plan-around"
    """They are placed at once; what the optimiser finds is dropped where they took its room."""
    WAIT = "wait"


class Engine(StrEnum):
    """How the optimiser searches."""

    CP_SAT = "cp-sat"
    DECOMPOSITION = "decomposition"
    PORTFOLIO = "portfolio"


class Fallback(msgspec.Struct, frozen=True):
    """When nothing can be bought: preemption for one pod, the optimiser for the set."""

    mode: FallbackMode = FallbackMode.OPTIMIZE
    promises: Promises = Promises.KEEP
    after_s: float = 5.0
    """How long a pod has waited before the optimiser is asked for it."""
    budget_s: float = 10.0
    """For one search, all tiers (T of the document's get_timeout)."""
    share: float = 0.8
    """α: the part of the budget divided among the tiers; what is left over goes to those that need it."""
    workers: int = 2
    """Threads of CP-SAT; the decomposition has one."""
    pause_s: float = 60.0
    """Between the ends of one search and the beginning of the next."""
    new_pods: NewPods = NewPods.PLAN_AROUND
    patience_s: float = 300.0
    """How long a pod waits for a cloud that is away or backed off from, before anything is done at others' cost."""
    engine: Engine = Engine.DECOMPOSITION
    preempt_below: int = 0
    """Pods of lower priority are preempted before anything is launched, as by kube-scheduler."""


def grace_of(pod: Pod, group: NodeGroup | None) -> float:
    """Seconds an evicted pod is given to end: its own, but no more than its node's group allows."""
    return pod.grace_s if group is None else min(pod.grace_s, group.cleaning.max_grace_s)


class Value(msgspec.Struct, frozen=True):
    """What restarts are worth, in money: what rental is weighed against.

    `restart_nanos` is one eviction, beside the work that is done again and is counted by itself.
    """

    restart_nanos: int = 0


class Policy(msgspec.Struct, frozen=True):
    """Everything `plan` may know of the operator's wishes."""

    cluster: str
    catalogue: Catalogue
    groups: tuple[NodeGroup, ...]
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    limits: Limits = Limits()
    cycles: Cycles = Cycles()
    timeouts: Timeouts = Timeouts()
    run_lengths: RunLengths = RunLengths()
    fallback: Fallback = Fallback()
    migration: MigrationSettings = MigrationSettings()
    edge: EdgePolicy = EdgePolicy()
    max_wait_for_capacity_s: float | None = 180.0
    """How long a batch pod may wait for a 0-bin node to free before a machine is bought for it all the same, and it is
    placed before batch pods that have waited less. None: as long as it takes."""
    look_ahead_s: float = 120.0
    """About as long as a machine takes to come. Room is kept and bought for half of the batch work that comes in it.

    Work waits for the room of batch pods that end within it. 0: machines are bought for work that waits already.
    """
    volumes: VolumeRules = VolumeRules()
    packing: Packing | None = None
    """How work is placed on nodes of no group; None: batch work by time bins, services by best fit."""
    value: Value = Value()
    default_requests: DefaultRequests = DefaultRequests()
    max_rental_lengthening: float | None = 4.0
    """Batch work is put on no node whose rental it lengthens at more than so many times a machine's price for it alone;
    None: wherever there is room."""
    moves_instead_of_buying: bool = True
    """Whether a pod or two are moved to make room where that costs less than the machine that would be bought."""
    max_launches_per_pod: int = 3
    """So many machines are launched for a pod within an hour; then it waits. Machines that pods of its owner have come
    to run on do not count for the owner's other pods."""
    namespaces: tuple[NamespaceLimit, ...] = ()
    """Limits of namespaces; of several that name one the first counts."""
    approval: Approval | None = None
    """How what disturbs running pods is approved; None: it needs no approval."""

    def limit_of(self, namespace: str) -> NamespaceLimit | None:
        """What a namespace may have of the machines that are bought; None: whatever the other limits allow."""
        of = (limit for limit in self.namespaces if any(fnmatchcase(namespace, name) for name in limit.names))
        return next(of, None)

    def overdue(self, now: float) -> float:
        """A batch pod made at this instant or before has waited for nodes about to free for as long as it may."""
        return float("-inf") if self.max_wait_for_capacity_s is None else now - self.max_wait_for_capacity_s

    def group(self, name: str | None) -> NodeGroup | None:
        for group in self.groups:  # asked for every node several times a plan: no generator
            if group.name == name:
                return group
        return None

    def tier_of(self, node: Node) -> Tier:
        """The node's label, if it states a tier, else its group's."""
        stated = node.labels.get(TIER_LABEL)
        if stated is not None and stated in tuple(Tier):
            return Tier(stated)
        group = self.group(node.group)
        return group.tier if group is not None else Tier.CLOUD

    def is_given(self, node: Node) -> bool:
        """Whether a node is there whatever is bought: of an edge group that is not elastic, or so labelled and of none.

        One that bears the label in an elastic group is given back as the others of that group are.
        """
        group = self.group(node.group)
        return not group.is_elastic if group is not None else self.tier_of(node) is Tier.EDGE

    def price_of(self, node: Node) -> int | None:
        """Billionths an hour; None: nobody says. A node of the edge that HTAS did not buy has the edge's own price."""
        price = self.whole_price_of(node)
        return price.nanos_per_hour if price is not None else None

    def whole_price_of(self, node: Node) -> Price | None:
        """The same with its monthly cap; a flavour whose prices differ by zone has that of the node's zone."""
        if self.edge.nanos_per_hour is not None and self.has_own_price(node):
            return Price(self.edge.nanos_per_hour)
        return self.catalogue.price(node.flavour, node.zone)

    def has_own_price(self, node: Node) -> bool:
        """Whether a node costs what the edge's operator says, and not what the catalogue does."""
        return self.edge.nanos_per_hour is not None and node.claim is None and self.tier_of(node) is Tier.EDGE

    def flavours_of(self, group: NodeGroup) -> tuple[Flavour, ...]:
        """What is bought for a group."""
        return tuple(
            flavour
            for flavour in self.catalogue.flavours
            if not flavour.retired and any(fnmatchcase(flavour.name, pattern) for pattern in group.flavours)
        )
