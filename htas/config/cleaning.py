"""The settings of the instance cleaner. Defaults are Cluster Autoscaler's where it has the same rule."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from htas.config.values import Condition, Count, KubeletVersion, Real, Seconds, Section, Share, Switch
from htas.model.moves import MigrationMethod
from htas.model.policy import CleaningRules, Consolidation, EmptyRelease, Workload


class ConsolidationSetting(Section):
    """When HTAS replaces a set of nodes by a cheaper one: it launches machines, and drains nodes once these are up."""

    enabled: Switch | None = Field(
        default=None,
        description="true: HTAS replaces sets of nodes by cheaper sets. null: in batch groups whose moves keep "
        "progress, it replaces a node by a smaller machine where that saves money. false: neither.",
    )
    ratio: Real = Field(
        default=0.5,
        gt=0,
        description="Least (saving as a share of the group's price) over (pods moved as a share of its pods); a half, "
        "as Karpenter's Balanced policy has it.",
    )
    min_saving: Share = Field(
        default=0.1, description="0 to 1: least saving, as a share of the price of the replaced nodes; a tenth."
    )
    after: Seconds = Field(default=900.0, description="A node Ready for less is not replaced; 15m, against flapping.")
    cool_down: Seconds = Field(
        default=900.0, description="Between two consolidations of a group; 15m, against flapping."
    )
    within: Seconds = Field(
        default=600.0,
        gt=0,
        description="How long Ready replacements wait for pods; 10m, then HTAS deletes empty ones.",
    )

    def model(self, *, may_shrink: bool) -> Consolidation:
        """The rules for a group; `may_shrink`: its pods keep their progress when they are moved."""
        return self.filled(Consolidation, enabled=bool(self.enabled), shrinks=may_shrink and self.enabled is not False)


_Replaces = ConsolidationSetting | dict[str, float] | float | str | None
"""Settings that have nodes replaced; off they are None or empty."""


class CleaningSetting(Section):
    """When and how HTAS drains and deletes nodes."""

    enabled: Switch = Field(default=True, description="false: HTAS never drains or deletes nodes.")
    utilization_threshold: Share | None = Field(
        default=None,
        description="0 to 1: requests over allocatable, the greater of cpu and memory; HTAS drains nodes at or below "
        "it. null: 0.7 for batch groups whose moves keep progress, else 0.5 (Cluster Autoscaler's default).",
    )
    underutilized_for: Seconds | None = Field(
        default=None,
        description="How long a node is underutilized before HTAS drains it; null: 1m for batch groups whose moves keep"
        " progress, else 5m.",
    )
    queue_empty_for: Seconds | None = Field(
        default=None,
        description="How long no pod is pending before HTAS drains nodes; null: 0s for batch groups whose moves keep "
        "progress, else 5m (paper, section 4 (5)).",
    )
    migration: MigrationMethod | None = Field(
        default=None,
        description="evict: pods restart. replace: services start elsewhere before they end. The others keep progress: "
        "checkpoint (simulated nodes), kubelet-checkpoint (containerd 2.2, 2.3), command (your own). null: "
        "checkpoint for batch groups on simulated nodes, else evict.",
    )
    migration_time: Seconds = Field(
        default=10.0,
        description="Expected duration of a move until some are measured; 10s (paper 6.3). Pods that end sooner are not"
        " moved.",
    )
    empty_release: EmptyRelease = Field(
        default=EmptyRelease.BEFORE_BILLING,
        description="before-next-billing-period: HTAS deletes empty nodes just before the next period; at-once.",
    )
    empty_for: Seconds = Field(default=0.0, description="How long a node is empty before HTAS deletes it. 0s: at once.")
    release_ahead: Seconds | None = Field(
        default=None,
        description="With before-next-billing-period: how long before its end HTAS deletes the node; null: a scheduling"
        " cycle and the measured time of deletions; 10s at least.",
    )
    delay_after_launch: Seconds = Field(
        default=0.0, description="A node Ready for less is not drained. 0s: the other delays suffice."
    )
    max_node_age: Seconds | None = Field(
        default=None,
        ge=3600.0,
        description="An hour or more. HTAS drains machines launched longer ago, whatever their utilization, by the "
        "usual rules; it launches replacements first where pods need them. null: no maximum (Karpenter's "
        "expireAfter).",
    )
    min_kubelet_version: KubeletVersion | None = Field(
        default=None,
        description="Such as v1.34 or v1.34.1. HTAS drains nodes with an older kubelet, whatever their utilization, by "
        "the usual rules; it launches replacements first where pods need them: their image must have a "
        "newer one. null: any version.",
    )
    repair: dict[Condition, Seconds] = Field(
        default={},
        description="Conditions, such as those of node-problem-detector, and how long a node may have each: "
        "{KernelDeadlock: 10m}. HTAS then cordons and drains the node by the usual rules, and launches "
        "replacements first where pods need them; not while more than a fifth of the group's nodes, rounded"
        " up, have one. {}: off (as Karpenter's NodeRepair by default).",
    )
    max_grace_period: Seconds = Field(
        default=600.0, description="Most grace period of an evicted pod; 10m (Cluster Autoscaler's)."
    )
    max_nodes_at_once: Count = Field(
        default=10,
        ge=1,
        description="Most nodes drained at one time (Cluster Autoscaler's max-scale-down-parallelism).",
    )
    min_replica_count: Count = Field(
        default=0,
        description="Pods of controllers with fewer replicas block the drain of their node (min-replica-count).",
    )
    ignore_daemonset_utilization: Switch = Field(
        default=True, description="DaemonSet pods do not count in the utilization: they run on any node."
    )
    ignore_mirror_utilization: Switch = Field(
        default=True, description="Mirror (static) pods do not count in the utilization: they cannot move."
    )
    skip_local_storage: Switch = Field(
        default=True,
        description="Pods with hostPath or emptyDir block the drain of their node: their data would be lost.",
    )
    skip_system_pods: Switch = Field(
        default=True, description="kube-system pods without a disruption budget block the drain of their node."
    )
    skip_custom_controller_pods: Switch = Field(
        default=True,
        description="Pods of controllers that HTAS does not know block the drain too: they may not be recreated.",
    )
    move_services: Switch = Field(
        default=False,
        description="true: HTAS moves services to save cost unless they opt out; false: only those that opt in "
        "(htas.io/migrate). Cluster Autoscaler and Karpenter move all that no rule forbids.",
    )
    pod_deletion_cost: Switch = Field(
        default=True,
        description="HTAS binds ReplicaSets' pods with a controller.kubernetes.io/pod-deletion-cost, so that a service "
        "that scales down leaves the newest machines first. Not where pods state a cost of their own or "
        "prefer to spread.",
    )

    consolidation: ConsolidationSetting = Field(
        default=ConsolidationSetting(), description="Whether and when HTAS replaces sets of nodes by cheaper sets."
    )

    @field_validator("consolidation", "max_node_age", "min_kubelet_version", "repair")
    @classmethod
    def _is_not_without_cleaning(cls, setting: _Replaces, info: ValidationInfo) -> _Replaces:
        """A node that nothing empties is not replaced either, for its price, its age, its kubelet or its health."""
        is_asked = setting.enabled if isinstance(setting, ConsolidationSetting) else setting not in (None, {})
        if is_asked and info.data.get("enabled") is False:
            raise ValueError("has no effect with cleaning's `enabled: false`; remove one of the two")
        return setting

    @field_validator("release_ahead")
    @classmethod
    def _has_an_effect(cls, ahead: float | None, info: ValidationInfo) -> float | None:
        if ahead is not None and info.data.get("empty_release") is EmptyRelease.AT_ONCE:
            raise ValueError(
                f"has an effect with `emptyRelease: {EmptyRelease.BEFORE_BILLING}` alone; write that or remove it"
            )
        return ahead

    def model(self, workload: Workload, *, is_simulated: bool) -> CleaningRules:
        """The rules for a group of such work; `is_simulated`: its nodes are, so that their pods can be checkpointed."""
        method, rules = self.migration, CleaningRules()
        if method is None:
            can_move = is_simulated and workload is Workload.BATCH
            method = MigrationMethod.CHECKPOINT if can_move else MigrationMethod.EVICT
        if workload is Workload.BATCH and method.keeps_progress:
            rules = CleaningRules.early(method)
        return self.filled(
            CleaningRules,
            utilization_threshold=_or(self.utilization_threshold, rules.utilization_threshold),
            underutilized_for_s=_or(self.underutilized_for, rules.underutilized_for_s),
            queue_empty_for_s=_or(self.queue_empty_for, rules.queue_empty_for_s),
            migration=method,
            migration_seconds=self.migration_time,
            max_grace_s=self.max_grace_period,
            moves_services=self.move_services,
            sets_deletion_costs=self.pod_deletion_cost,
            repair_s=tuple(sorted(self.repair.items())),
            consolidation=self.consolidation.model(may_shrink=rules.consolidation.shrinks),
        )


def _or(stated: float | None, default: float) -> float:
    return default if stated is None else stated
