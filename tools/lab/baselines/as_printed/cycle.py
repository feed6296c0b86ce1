"""A cycle of the paper's HTAS: bundle, schedule, scale, clean (section 4, steps (2) to (5)).

Everything happens in cycles (Table 6), nothing at news; pods are placed on nodes that run, and what is on its way
counts for nothing, since no algorithm asks for it. Table 5's two workers are one for each group (section 4 has two
groups), of its flavour; nothing printed keeps the batch group's when it is idle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from htas.model.flavours import Catalogue
from htas.model.moves import MigrationMethod
from htas.model.nodes import Node
from htas.model.plan import Plan
from htas.model.pods import Pod, WorkKind
from htas.model.policy import CleaningRules, Cycles, NodeGroup, Policy, Workload
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.model.stages import Stage
from htas.planning.cluster.classes import Bools, PodClass
from htas.planning.cluster.simulation import Simulation
from htas.planning.provision.offers import Offer
from tools.lab.baselines.as_printed.batch_autoscaling import batch_autoscaling
from tools.lab.baselines.as_printed.bfd import bfd
from tools.lab.baselines.as_printed.ga import ga
from tools.lab.baselines.as_printed.rescheduling import clean
from tools.lab.baselines.as_printed.score import Score, own_share
from tools.lab.baselines.as_printed.time_bin_bfd import time_bin_bfd
from tools.lab.baselines.default_kubernetes import flavour_of
from tools.lab.baselines.draft import Draft

SCHEDULING_CYCLE_S, SCALING_CYCLE_S, THRESHOLD = 20.0, 300.0, 0.5
"""Table 6."""
SERVICES, BATCH = "services", "batch"
MOST_MACHINES = 10_000
"""A guard against a request that no number of machines covers (prices without CPU): Algorithm 3 would never end."""

Scheduling = Callable[[Simulation, PodClass, Bools], int | None]
Scaling = Callable[[Draft, Sequence[Pod], Sequence[Node], Sequence[Offer], Score], list[Offer]]
"""Pods without room, nodes of bin 0, flavours, their score: what is bought for a node group."""


def scaled_services(
    draft: Draft, pods: Sequence[Pod], zero_bin: Sequence[Node], flavours: Sequence[Offer], score: Score
) -> list[Offer]:
    return ga(map(draft.book.class_of, pods), flavours, score)


def scaled_batch(
    draft: Draft, pods: Sequence[Pod], zero_bin: Sequence[Node], flavours: Sequence[Offer], score: Score
) -> list[Offer]:
    return batch_autoscaling(map(draft.book.class_of, pods), zero_bin, flavours, score)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the printed algorithms are read. The defaults are as printed; `readings` has others."""

    score: Score = own_share
    scale_services: Scaling = scaled_services
    scale_batch: Scaling = scaled_batch
    first_workers: Callable[[Catalogue], str] = flavour_of
    """The flavour of the two workers at the start (Table 5)."""


AS_PRINTED = Reading()


def settings(catalogue: Catalogue, queue_empty_for_s: float = 0.0) -> Policy:
    """Table 6. The queue is empty when no batch job remains in it (4.4); 4 (5) says "a configurable period"."""
    cleaning = CleaningRules(
        utilization_threshold=THRESHOLD,
        underutilized_for_s=SCHEDULING_CYCLE_S,
        queue_empty_for_s=queue_empty_for_s,
        migration=MigrationMethod.CHECKPOINT,
    )
    groups = (
        NodeGroup(SERVICES, workload=Workload.SERVICE, cleaning=CleaningRules(enabled=False)),
        NodeGroup(BATCH, workload=Workload.BATCH, cleaning=cleaning),
    )
    cycles = Cycles(SCHEDULING_CYCLE_S, SCALING_CYCLE_S, SCHEDULING_CYCLE_S, batch_max_s=0.0)
    return Policy("paper-as-printed", catalogue, groups, cycles=cycles)


def plan(
    snapshot: ClusterSnapshot, policy: Policy, now: float, stages: frozenset[Stage], reading: Reading = AS_PRINTED
) -> Plan:
    draft = Draft(snapshot, policy, now)
    services, jobs = bundled(draft)
    waiting_services = scheduled(draft, services, SERVICES, bfd)
    waiting_jobs = scheduled(draft, jobs, BATCH, time_bin_bfd)
    if draft.is_first:
        first = reading.first_workers(policy.catalogue)
        buy(draft, [offer for offer in draft.offers if offer.flavour.name == first])
    elif Stage.AUTOSCALING in stages:
        for group, pods, scale in (
            (SERVICES, waiting_services, reading.scale_services),
            (BATCH, waiting_jobs, reading.scale_batch),
        ):
            flavours = [offer for offer in draft.offers if offer.group.name == group]
            buy(draft, scale(draft, pods, zero_bin(draft, group), flavours, reading.score))
    draft.leave([*waiting_services, *waiting_jobs])
    memory = snapshot.memory
    if Stage.CLEANING in stages:
        memory = _cleaned(draft, is_queue_empty=not waiting_jobs, has_news=bool(jobs))
    return draft.written(memory)


def bundled(draft: Draft) -> tuple[list[Pod], list[Pod]]:
    """Task bundling (4.3 (1)): services as they came, and batch jobs, the longest first."""
    services = [pod for pod in draft.waiting if pod.kind is WorkKind.SERVICE]
    jobs = [pod for pod in draft.waiting if pod.kind is not WorkKind.SERVICE]
    return services, sorted(jobs, key=lambda pod: -draft.book.class_of(pod).run_length_s)


def scheduled(draft: Draft, pods: Sequence[Pod], group: str, schedule: Scheduling) -> list[Pod]:
    """Task scheduling (4.3 (2)): each bundle to its node group; returns the pods without room."""
    left, rows = [], rows_of(draft, group)
    for pod in pods:
        row = schedule(draft.sim, draft.book.class_of(pod), rows)
        if row is None:
            left.append(pod)
        else:
            draft.placed(pod, row)
    return left


def rows_of(draft: Draft, group: str) -> Bools:
    """Rows of a group's nodes that run."""
    nodes = draft.sim.table.nodes
    return draft.there & np.array([node.group == group for node in nodes], dtype=np.bool_)


def zero_bin(draft: Draft, group: str) -> list[Node]:
    """Nodes whose work ends within the scaling cycle, and those without any; not those that are being emptied."""
    table = draft.sim.table
    rows = rows_of(draft, group) & (draft.sim.bins(draft.sim.all_rows) == 0) & table.is_open[: len(table)]
    return [table.nodes[row] for row in rows.nonzero()[0].tolist()]


def buy(draft: Draft, combination: Sequence[Offer]) -> None:
    """Buy machines for no pod in particular: who is to run on them is decided when they are there."""
    for offer in combination[:MOST_MACHINES]:
        if draft.may_buy(offer):
            draft.buy(offer)


def _cleaned(draft: Draft, *, is_queue_empty: bool, has_news: bool) -> Memory:
    """Section 4 (5): at the end of a scheduling cycle, once the queue has stayed empty without new jobs."""
    since = draft.snapshot.memory.queue_empty_since
    if since is None or has_news:
        since = draft.now
    group = next(group for group in draft.policy.groups if group.name == BATCH)
    return clean(draft, group, rows_of(draft, BATCH), is_queue_empty=is_queue_empty, queue_empty_since=since)
