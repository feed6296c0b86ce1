"""Node groups: which work they take, which flavours they buy, how they are packed, grown and cleaned."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from htas.config.catalogue import TaintSetting
from htas.config.values import Millicores, Name, Nanos, Seconds, Section, Units
from htas.model.policy import (
    AutoscalingAlgorithm,
    CleaningRules,
    EmptyRelease,
    Limits,
    MigrationMethod,
    NodeGroup,
    Packing,
    PackingAlgorithm,
    Scoring,
    ScoringStrategy,
    ShapePoint,
    Workload,
)


class ScoredResource(Section):
    name: str
    weight: int = Field(default=1, ge=1, le=100)


class ShapeSetting(Section):
    utilization: int = Field(ge=0, le=100)
    score: int = Field(ge=0, le=10)


class SchedulingSetting(Section):
    """How waiting work is placed on the group's nodes."""

    algorithm: PackingAlgorithm | None = None
    strategy: ScoringStrategy = ScoringStrategy.MOST_ALLOCATED
    resources: tuple[ScoredResource, ...] = (ScoredResource(name="cpu"), ScoredResource(name="memory"))
    shape: tuple[ShapeSetting, ...] = (ShapeSetting(utilization=0, score=0), ShapeSetting(utilization=100, score=10))

    @model_validator(mode="after")
    def _shape_ascends(self) -> Self:
        points = [point.utilization for point in self.shape]
        if not points or any(left >= right for left, right in pairwise(points)):
            raise ValueError("shape must have points of ascending utilization")
        return self

    def model(self, workload: Workload) -> Packing:
        default = PackingAlgorithm.TIME_BIN_BFD if workload is Workload.BATCH else PackingAlgorithm.BFD
        scoring = Scoring(
            self.strategy,
            tuple((resource.name, resource.weight) for resource in self.resources),
            tuple(ShapePoint(point.utilization, point.score) for point in self.shape),
        )
        return Packing(self.algorithm or default, scoring)


class WeightsSetting(Section):
    cpu: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)
    memory: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)

    @model_validator(mode="after")
    def _not_both_zero(self) -> Self:
        if self.cpu == self.memory == 0:
            raise ValueError("cpu and memory weigh nothing; at least one weight must be above 0")
        return self


class AutoscalingSetting(Section):
    """How machines are chosen. `greedy` is the paper's Algorithm 3."""

    algorithm: Literal[AutoscalingAlgorithm.GREEDY] = AutoscalingAlgorithm.GREEDY
    weights: WeightsSetting = WeightsSetting()


class CleaningSetting(Section):
    """When and how nodes are emptied and released."""

    enabled: bool = True
    utilization_threshold: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)
    underutilized_for: Seconds = 300.0
    queue_empty_for: Seconds = 300.0
    migration: MigrationMethod = MigrationMethod.EVICT
    migration_time: Seconds = 10.0
    empty_release: EmptyRelease = EmptyRelease.AT_ONCE
    empty_for: Seconds = 0.0
    release_ahead: Seconds = 15.0
    delay_after_launch: Seconds = 0.0
    max_nodes_at_once: int = Field(default=10, ge=1)
    min_replica_count: int = Field(default=0, ge=0)
    ignore_daemonset_utilization: bool = True
    ignore_mirror_utilization: bool = True
    skip_local_storage: bool = True
    skip_system_pods: bool = True
    skip_custom_controller_pods: bool = True

    def model(self) -> CleaningRules:
        return CleaningRules(
            enabled=self.enabled,
            utilization_threshold=self.utilization_threshold,
            underutilized_for_s=self.underutilized_for,
            queue_empty_for_s=self.queue_empty_for,
            migration=self.migration,
            migration_seconds=self.migration_time,
            empty_release=self.empty_release,
            empty_for_s=self.empty_for,
            release_ahead_s=self.release_ahead,
            delay_after_launch_s=self.delay_after_launch,
            max_nodes_at_once=self.max_nodes_at_once,
            min_replica_count=self.min_replica_count,
            ignore_daemonset_utilization=self.ignore_daemonset_utilization,
            ignore_mirror_utilization=self.ignore_mirror_utilization,
            skip_local_storage=self.skip_local_storage,
            skip_system_pods=self.skip_system_pods,
            skip_custom_controller_pods=self.skip_custom_controller_pods,
        )


class LimitsSetting(Section):
    """Upper bounds on what HTAS owns; a key left out bounds nothing."""

    max_nodes: int | None = Field(default=None, ge=0)
    max_cpu: Millicores | None = None
    max_memory: Units | None = None
    max_price_per_hour: Nanos | None = None

    def limits(self) -> Limits:
        return Limits(self.max_nodes, self.max_cpu, self.max_memory, self.max_price_per_hour)


class GroupSetting(LimitsSetting):
    name: Name
    workload: Workload = Workload.ANY
    flavours: tuple[str, ...] = Field(default=("*",), min_length=1)
    min_nodes: int = Field(default=0, ge=0)
    labels: dict[str, str] = Field(default_factory=dict)
    taints: tuple[TaintSetting, ...] = ()
    scheduling: SchedulingSetting = SchedulingSetting()
    autoscaling: AutoscalingSetting = AutoscalingSetting()
    cleaning: CleaningSetting = CleaningSetting()

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        if self.max_nodes is not None and self.min_nodes > self.max_nodes:
            raise ValueError(f"minNodes ({self.min_nodes}) is greater than maxNodes ({self.max_nodes})")
        return self

    def model(self) -> NodeGroup:
        return NodeGroup(
            name=self.name,
            workload=self.workload,
            flavours=self.flavours,
            min_nodes=self.min_nodes,
            limits=self.limits(),
            labels=self.labels,
            taints=tuple(taint.model() for taint in self.taints),
            packing=self.scheduling.model(self.workload),
            autoscaling=self.autoscaling.algorithm,
            cpu_weight=self.autoscaling.weights.cpu,
            memory_weight=self.autoscaling.weights.memory,
            cleaning=self.cleaning.model(),
        )
