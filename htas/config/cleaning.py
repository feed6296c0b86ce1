"""The settings of the instance cleaner. Defaults are Cluster Autoscaler's where it has the same rule."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from htas.config.values import Condition, Count, KubeletVersion, Real, Seconds, Section, Share, Switch
from htas.model.moves import MigrationMethod
from htas.model.policy import CleaningRules, Consolidation, EmptyRelease, Workload


class ConsolidationSetting(Section):
    """When a set of nodes is replaced by a cheaper one: machines are bought, and nodes emptied once they are Ready."""

    enabled: Switch | None = Field(
        default=None,
        description="true: sets of nodes are replaced by cheaper sets. null: where batch groups' moves keep progress, "
        "a node by a smaller machine for what is left on it, once that pays for itself. false: neither.",
    )
    ratio: Real = Field(
        default=0.5,
        gt=0,
        description="Saving as a share of the group's price, over pods moved as a share of its pods, at least so much; "
        "a half, as Karpenter's Balanced policy has it.",
    )
    min_saving: Share = Field(
        default=0.1, description="0 to 1: least saving, of the price of what is replaced; a tenth."
    )
    after: Seconds = Field(default=900.0, description="A node Ready for less stays; 15m, so that nothing flaps.")
    cool_down: Seconds = Field(default=900.0, description="Between two looks at a group; 15m, likewise.")
    within: Seconds = Field(
        default=600.0,
        gt=0,
        description="How long replacements that are Ready wait for pods; 10m, then they go if empty.",
    )

    def model(self, *, may_shrink: bool) -> Consolidation:
        """The rules for a group; `may_shrink`: its pods keep their progress when they are moved."""
        return self.filled(Consolidation, enabled=bool(self.enabled), shrinks=may_shrink and self.enabled is not False)


_Replaces = ConsolidationSetting | dict[str, float] | float | str | None
"""Settings that have nodes replaced; off they are None or empty."""


class CleaningSetting(Section):
    """When and how nodes are emptied and released."""

    enabled: Switch = Field(default=True, description="false: nodes are never emptied or released.")
    utilization_threshold: Share | None = Field(
        default=None,
        description="0 to 1: requests over allocatable, the greater of cpu and memory; nodes at or below are emptied. "
        "null: 0.7 for batch groups whose moves keep progress, else 0.5 (Cluster Autoscaler's default).",
    )
    underutilized_for: Seconds | None = Field(
        default=None, description="How long a node is under-used before it is emptied; null: 1m for those, else 5m."
    )
    queue_empty_for: Seconds | None = Field(
        default=None,
        description="How long no work has waited before nodes are emptied; null: 0s for those, else 5m "
        "(paper, section 4 (5)).",
    )
    migration: MigrationMethod | None = Field(
        default=None,
        description="evict: pods start again. replace: services start elsewhere before they end. Others keep their "
        "progress: checkpoint (simulated nodes), kubelet-checkpoint (containerd 2.2, 2.3), command (your own). null: "
        "checkpoint for batch groups on simulated nodes, else evict.",
    )
    migration_time: Seconds = Field(
        default=10.0,
        description="What one move takes until some were measured; 10s (paper 6.3). Work that ends sooner stays.",
    )
    empty_release: EmptyRelease = Field(
        default=EmptyRelease.BEFORE_BILLING,
        description="before-next-billing-period: kept for as long as the price file's billing has it paid; at-once.",
    )
    empty_for: Seconds = Field(default=0.0, description="How long a node is empty before it goes. 0s: at once.")
    release_ahead: Seconds | None = Field(
        default=None,
        description="With before-next-billing-period: how long before its end; null: a scheduling cycle, and "
        "what releases were seen to take; 10s at least.",
    )
    delay_after_launch: Seconds = Field(
        default=0.0, description="A node Ready for less is left alone. 0s: the queue's and node's delays suffice."
    )
    max_node_age: Seconds | None = Field(
        default=None,
        ge=3600.0,
        description="An hour or more. Machines rented longer ago are emptied however well they are used, by the same "
        "rules as others, and machines bought first for pods without room elsewhere; null: of any age "
        "(Karpenter's expireAfter).",
    )
    min_kubelet_version: KubeletVersion | None = Field(
        default=None,
        description="Such as v1.34 or v1.34.1. Nodes with an older kubelet are emptied however well they are used, by "
        "the same rules as others, and machines bought first for pods without room elsewhere: their image must have "
        "a newer one. null: of any version.",
    )
    repair: dict[Condition, Seconds] = Field(
        default={},
        description="Conditions, such as those of node-problem-detector, and for how long a node may bear each: "
        "{KernelDeadlock: 10m}. Nodes that bear one for longer take no new pods and are emptied, by the same rules as "
        "others, and machines bought first for pods without room elsewhere; none, where more than a fifth of the "
        "group's nodes, rounded up, bear one. {}: none is (Karpenter's NodeRepair is off by default, too).",
    )
    max_grace_period: Seconds = Field(
        default=600.0, description="An evicted pod has its own grace period, but no more; 10m (Cluster Autoscaler's)."
    )
    max_nodes_at_once: Count = Field(
        default=10,
        ge=1,
        description="Nodes being emptied at one time (Cluster Autoscaler's max-scale-down-parallelism).",
    )
    min_replica_count: Count = Field(
        default=0, description="Pods of controllers with fewer replicas hold their node (min-replica-count)."
    )
    ignore_daemonset_utilization: Switch = Field(
        default=True, description="DaemonSet pods do not count as use: they would be on any node."
    )
    ignore_mirror_utilization: Switch = Field(
        default=True, description="Mirror (static) pods do not count as use: they cannot move."
    )
    skip_local_storage: Switch = Field(
        default=True, description="Pods with hostPath or emptyDir hold their node: their data would be lost."
    )
    skip_system_pods: Switch = Field(
        default=True, description="kube-system pods without a disruption budget hold their node."
    )
    skip_custom_controller_pods: Switch = Field(
        default=True, description="So do pods of controllers HTAS does not know: nobody may start them again."
    )
    move_services: Switch = Field(
        default=False,
        description="Services are moved, for the bill's sake too, unless they opt out; false: only those that opt in "
        "(htas.io/migrate). Cluster Autoscaler and Karpenter move all that nothing speaks against.",
    )
    pod_deletion_cost: Switch = Field(
        default=True,
        description="ReplicaSets' pods are bound with a controller.kubernetes.io/pod-deletion-cost, by which a service "
        "that shrinks leaves the newest machines first, unless its pods state one of their own or prefer to be apart.",
    )

    consolidation: ConsolidationSetting = Field(
        default=ConsolidationSetting(), description="Whether sets of nodes are replaced by cheaper sets, and when."
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
