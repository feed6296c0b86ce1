"""Node groups: which pods they run, which flavours they launch, how they are packed, scaled up and scaled down."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from htas.config.catalogue import Taints
from htas.config.cleaning import CleaningSetting
from htas.config.names import checked_extended_resource
from htas.config.values import (
    Count,
    Integer,
    Labels,
    Millicores,
    Name,
    Nanos,
    Real,
    Seconds,
    Section,
    Switch,
    Text,
    Units,
    each_once,
)
from htas.model.edge import Tier
from htas.model.packing import Packing, PackingAlgorithm, Scoring, ScoringStrategy, ShapePoint
from htas.model.policy import AutoscalingAlgorithm, Limits, NodeGroup, Workload
from htas.model.resources import DefaultRequests


class ScoredResource(Section):
    """A resource that counts in the score."""

    name: Text = Field(description="cpu, memory, ephemeral-storage or an extended resource.")
    weight: Integer = Field(default=1, ge=1, le=100, description="1 to 100, as in kube-scheduler.")

    @field_validator("name")
    @classmethod
    def _is_a_resource(cls, name: str) -> str:
        return name if name in ("cpu", "memory", "ephemeral-storage") else checked_extended_resource(name)


class ShapeSetting(Section):
    """A point of the function from utilisation to score."""

    utilization: Integer = Field(ge=0, le=100, description="Per cent, 0 to 100.")
    score: Integer = Field(ge=0, le=10, description="0 to 10, as in kube-scheduler.")


class SchedulingSetting(Section):
    """How HTAS schedules pending pods on the group's nodes. Checked as kube-scheduler checks NodeResourcesFitArgs."""

    algorithm: PackingAlgorithm | None = Field(
        default=None, description="bfd, time-bin-bfd or scored. null: the paper's, time-bin-bfd for batch, else bfd."
    )
    strategy: ScoringStrategy = Field(
        default=ScoringStrategy.MOST_ALLOCATED,
        description="For scored. MostAllocated: fills nodes, so that others become empty and can be deleted.",
    )
    resources: tuple[ScoredResource, ...] = Field(
        default=(ScoredResource(name="cpu"), ScoredResource(name="memory")),
        min_length=1,
        description="For scored: what counts, by weight. kube-scheduler's default.",
    )
    shape: tuple[ShapeSetting, ...] = Field(
        default=(ShapeSetting(utilization=0, score=0), ShapeSetting(utilization=100, score=10)),
        min_length=1,
        description="For RequestedToCapacityRatio: score by utilisation, ascending. The default packs tightly.",
    )

    @field_validator("resources")
    @classmethod
    def _each_once(cls, resources: tuple[ScoredResource, ...]) -> tuple[ScoredResource, ...]:
        each_once((resource.name for resource in resources), "give it one weight")
        return resources

    @field_validator("shape")
    @classmethod
    def _ascends(cls, shape: tuple[ShapeSetting, ...]) -> tuple[ShapeSetting, ...]:
        for left, right in pairwise(shape):
            if left.utilization >= right.utilization:
                raise ValueError(
                    f"utilization {right.utilization} follows {left.utilization}; write the points in ascending order"
                )
        return shape

    @field_validator("strategy", "resources", "shape")
    @classmethod
    def _has_an_effect(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse what would be ignored; writing a default out is no mistake."""
        if value == cls.model_fields[str(info.field_name)].default:
            return value
        if "algorithm" in info.data and info.data["algorithm"] is not PackingAlgorithm.SCORED:
            raise ValueError("has an effect with `algorithm: scored` alone; write that or remove it")
        ratio = ScoringStrategy.REQUESTED_TO_CAPACITY_RATIO
        if info.field_name == "shape" and info.data.get("strategy", ratio) is not ratio:
            raise ValueError(f"has an effect with `strategy: {ratio}` alone; write that or remove it")
        return value

    def stated(self) -> Packing | None:
        """As it is written; None where no algorithm is, so that each kind of work has its own."""
        return None if self.algorithm is None else self.model(Workload.ANY)

    def model(self, workload: Workload) -> Packing:
        default = PackingAlgorithm.TIME_BIN_BFD if workload is Workload.BATCH else PackingAlgorithm.BFD
        scoring = Scoring(
            self.strategy,
            tuple((resource.name, resource.weight) for resource in self.resources),
            tuple(ShapePoint(point.utilization, point.score) for point in self.shape),
        )
        return Packing(self.algorithm or default, scoring)


class DefaultRequestsSetting(Section):
    """What a pod without a request counts where HTAS launches or saves a machine; 0: nothing."""

    cpu: Millicores = Field(default=100, ge=0, description="100m, as kube-scheduler's scores count. 0: nothing.")
    memory: Units = Field(default=200 * 2**20, ge=0, description="200Mi, likewise. 0: nothing.")

    def model(self) -> DefaultRequests:
        return DefaultRequests(self.cpu, self.memory)


class ClusterSchedulingSetting(SchedulingSetting):
    """How HTAS schedules pods on nodes outside all groups, and what pods without requests count on all nodes."""

    default_requests: DefaultRequestsSetting = Field(
        default=DefaultRequestsSetting(),
        description="What HTAS counts for a pod without a cpu or memory request, where it launches or saves a machine: "
        "sizes of machines, draining, simulate. Scheduling counts stated requests, as kube-scheduler does.",
    )


class WeightsSetting(Section):
    """What cpu and memory count in a flavour's score (paper, section 4.3)."""

    cpu: Real = Field(default=0.5, ge=0, le=1, description="0 to 1. A half: the paper weighs both alike.")
    memory: Real = Field(default=0.5, ge=0, le=1, description="0 to 1. A half, likewise.")

    @model_validator(mode="after")
    def _not_both_zero(self) -> Self:
        if self.cpu == self.memory == 0:
            raise ValueError("cpu and memory weigh nothing; write at least one weight above 0")
        return self


class AutoscalingSetting(Section):
    """How machines are chosen."""

    algorithm: AutoscalingAlgorithm = Field(
        default=AutoscalingAlgorithm.GREEDY,
        description="greedy: the paper's Algorithm 3. cheapest-mix: never costs more, and is near the lower bound.",
    )
    weights: WeightsSetting = Field(default=WeightsSetting(), description="Of cpu and memory in a flavour's score.")
    budget: Seconds = Field(
        default=2.5,
        gt=0,
        le=60,
        description="For cheapest-mix: search time of a launch decision; 2500ms, more finds little. Counted in the "
        "solver's own steps, so that the same snapshot gives the same plan.",
    )
    startup: Seconds = Field(
        default=60.0,
        description="For cheapest-mix: rental paid before a machine's first pod runs; 60s, as machines commonly take.",
    )

    @field_validator("budget", "startup")
    @classmethod
    def _has_an_effect(cls, value: float, info: ValidationInfo) -> float:
        """Refuse what would be ignored; writing a default out is no mistake."""
        is_default = value == cls.model_fields[str(info.field_name)].default
        if not is_default and info.data.get("algorithm") is AutoscalingAlgorithm.GREEDY:
            raise ValueError(
                f"has an effect with `algorithm: {AutoscalingAlgorithm.CHEAPEST_MIX}` alone; write that or remove it"
            )
        return value


class LimitsSetting(Section):
    """Upper bounds on what HTAS owns, starting machines included; null bounds nothing."""

    max_nodes: Count | None = Field(default=None, description="Machines. null: no bound; 0: launch nothing.")
    max_cpu: Millicores | None = Field(default=None, description="Cores in all. null: no bound.")
    max_memory: Units | None = Field(default=None, description="Bytes in all. null: no bound.")
    max_price_per_hour: Nanos | None = Field(default=None, description="Price an hour in all. null: no bound.")

    def limits(self) -> Limits:
        return Limits(self.max_nodes, self.max_cpu, self.max_memory, self.max_price_per_hour)


class ClusterLimitsSetting(LimitsSetting):
    """Upper bounds over all groups, and on launches."""

    max_launches_per_pod: Count = Field(
        default=3,
        ge=1,
        description="Machines launched for a pod within an hour while none of them runs it, or another pod of its "
        "owner; then it stays pending. 3.",
    )


OF_WHAT_IS_BOUGHT = (
    "flavours",
    "min_nodes",
    "max_nodes",
    "max_cpu",
    "max_memory",
    "max_price_per_hour",
    "labels",
    "taints",
    "startup_taints",
    "autoscaling",
)
"""Settings of a group that count for the machines that are bought for it, and for nothing else."""


class GroupSetting(LimitsSetting):
    """Machines that run the same kind of pods."""

    name: Name = Field(description="A name of its own; part of the names of nodes.")
    workload: Workload = Field(default=Workload.ANY, description="service, batch or any: the work it takes.")
    lends_room: Switch | None = Field(
        default=None,
        description="For services: short jobs may use free resources while no new services are pending. null: true, "
        "false on the edge.",
    )
    flavours: tuple[Text, ...] = Field(
        default=("*",), min_length=1, description="What it may launch: names, * and ? as in a shell. All."
    )
    min_nodes: Count = Field(default=0, description="Machines kept even when idle. 0: an idle cluster costs nothing.")
    tier: Tier = Field(default=Tier.CLOUD, description="edge: near the users, filled first and by target. cloud.")
    elastic: Switch = Field(
        default=False,
        description="For tier edge. true: HTAS launches and deletes its machines as in other groups; false: its size is"
        " fixed.",
    )
    labels: Labels = Field(default_factory=dict, description="Added to those of its flavours. None.")
    taints: Taints = Field(default=(), description="Added to those of its flavours. None.")
    startup_taints: Taints = Field(
        default=(),
        description="New nodes register with them, and an agent removes them; pods are not bound before that. None.",
    )
    scheduling: SchedulingSetting = Field(default=SchedulingSetting(), description="How pending pods are scheduled.")
    autoscaling: AutoscalingSetting = Field(default=AutoscalingSetting(), description="How machines are chosen.")
    cleaning: CleaningSetting = Field(default=CleaningSetting(), description="How HTAS drains and deletes nodes.")

    @field_validator("min_nodes")
    @classmethod
    def _sizes_agree(cls, least: int, info: ValidationInfo) -> int:
        most = info.data.get("max_nodes")
        if most is not None and least > most:
            raise ValueError(f"minNodes ({least}) is greater than maxNodes ({most}); lower it or raise maxNodes")
        return least

    @field_validator("lends_room")
    @classmethod
    def _is_for_services(cls, lends_room: bool | None, info: ValidationInfo) -> bool | None:
        if lends_room is not None and info.data.get("workload") is not Workload.SERVICE:
            raise ValueError("has an effect with `workload: service` alone; write that or remove it")
        return lends_room

    @field_validator("elastic")
    @classmethod
    def _has_an_effect(cls, elastic: bool, info: ValidationInfo) -> bool:
        if elastic and info.data.get("tier") is Tier.CLOUD:
            raise ValueError("has an effect with `tier: edge` alone: other groups are elastic; write that or remove it")
        return elastic

    @property
    def _lends_room(self) -> bool:
        """Machines near the users are kept for what serves these."""
        if self.lends_room is None:
            return self.workload is Workload.SERVICE and self.tier is Tier.CLOUD
        return self.lends_room

    def model(self, *, is_simulated: bool) -> NodeGroup:
        """The group as it is planned for; `is_simulated`: of a provider whose nodes are (ProviderSetting)."""
        return self.filled(
            NodeGroup,
            lends_room=self._lends_room,
            is_elastic=self.elastic or self.tier is Tier.CLOUD,
            limits=self.limits(),
            taints=tuple(taint.model() for taint in self.taints),
            startup_taints=tuple(taint.model() for taint in self.startup_taints),
            packing=self.scheduling.model(self.workload),
            autoscaling=self.autoscaling.algorithm,
            cpu_weight=self.autoscaling.weights.cpu,
            memory_weight=self.autoscaling.weights.memory,
            mix_budget_s=self.autoscaling.budget,
            startup_s=self.autoscaling.startup,
            cleaning=self.cleaning.model(self.workload, is_simulated=is_simulated),
        )
