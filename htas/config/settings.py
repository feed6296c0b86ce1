"""The whole configuration file."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from htas.config.audit import AuditSetting
from htas.config.edge import EdgeSetting
from htas.config.fallback import FallbackSetting
from htas.config.groups import ClusterLimitsSetting, ClusterSchedulingSetting, GroupSetting
from htas.config.kubernetes import KubernetesSetting, LeaderElectionSetting
from htas.config.kwok import KwokSetting
from htas.config.migration import MigrationSetting
from htas.config.modes import ApprovalSetting, RecommendSetting
from htas.config.namespaces import NamespaceLimitSetting
from htas.config.openstack import OpenStackSetting
from htas.config.sandbox import SandboxSetting
from htas.config.serving import HttpSetting, LoggingSetting
from htas.config.store import CassandraSetting, SqliteSetting, StoreSetting
from htas.config.timing import CyclesSetting, RunLengthsSetting, TimeoutsSetting
from htas.config.value import ValueSetting
from htas.config.values import Name, Nanos, OneOf, Real, Seconds, Section, Source, Switch, Text
from htas.config.volumes import VolumesSetting

__all__ = ["CassandraSetting", "Configuration", "SandboxSetting", "SqliteSetting"]


class NoneSetting(Section):
    """No provider: HTAS watches a cluster and launches nothing."""


class ProviderSetting(OneOf):
    """Where machines come from: exactly one."""

    chooses: ClassVar[str] = "provider"
    sandbox: SandboxSetting | None = Field(default=None, description="The embedded world: cluster and cloud in one.")
    kwok: KwokSetting | None = Field(default=None, description="Machines simulated by KWOK in a real cluster.")
    openstack: OpenStackSetting | None = Field(default=None, description="Machines from OpenStack Nova.")
    none: NoneSetting | None = Field(
        default=None, description="A real cluster without machines of HTAS: only with mode recommend."
    )

    @property
    def chosen(self) -> SandboxSetting | KwokSetting | OpenStackSetting | NoneSetting:
        chosen = self.sandbox or self.kwok or self.openstack or self.none
        assert chosen is not None
        return chosen

    @property
    def is_simulated(self) -> bool:
        """Whether its nodes are, and with them what runs there: such pods keep their progress when they move."""
        return self.openstack is None and self.none is None


class Configuration(Section):
    """The top level."""

    api_version: Literal["htas.io/v1alpha1"] = Field(description="The form of this file.")
    kind: Literal["HTASConfiguration"] = Field(description="What this file is.")
    cluster: Name = Field(description="Written on everything HTAS owns: one name for each cluster of a project.")
    mode: Literal["automatic", "approve", "recommend"] = Field(
        default="automatic",
        description="automatic: HTAS carries out its plans. approve: disruptions wait for approval (`approval`). "
        "recommend: HTAS only reports what it would do.",
    )
    recommend: RecommendSetting = Field(
        default=RecommendSetting(), description="With mode recommend: what HTAS would manage."
    )
    approval: ApprovalSetting = Field(
        default=ApprovalSetting(), description="With mode approve: how long HTAS waits for approval."
    )
    scheduler_name: Text = Field(
        default="htas", description="HTAS binds pods with this schedulerName; for others it only launches nodes."
    )
    flavours: Source = Field(
        description="The path of a price file, relative to this one unless absolute, or its content in place."
    )
    provider: ProviderSetting = Field(
        default=ProviderSetting(sandbox=SandboxSetting()), description="Where machines come from."
    )
    kubernetes: KubernetesSetting = Field(
        default=KubernetesSetting(), description="How HTAS connects to the API server."
    )
    leader_election: LeaderElectionSetting = Field(
        default=LeaderElectionSetting(), description="One of several daemons acts."
    )
    http: HttpSetting = Field(default=HttpSetting(), description="Health, metrics and the last plan over HTTP.")
    audit: AuditSetting = Field(default=AuditSetting(), description="Who requested what, one line of JSON each.")
    logging: LoggingSetting = Field(default=LoggingSetting(), description="Logs go to standard error.")
    store: StoreSetting = Field(
        default=StoreSetting(sqlite=SqliteSetting()), description="Where journal and history are kept."
    )
    cycles: CyclesSetting = Field(default=CyclesSetting(), description="How often each part of planning runs.")
    timeouts: TimeoutsSetting = Field(default=TimeoutsSetting(), description="Every wait ends.")
    run_lengths: RunLengthsSetting = Field(default=RunLengthsSetting(), description="How long batch work runs.")
    migration: MigrationSetting = Field(
        default=MigrationSetting(), description="How pods are moved with their progress."
    )
    max_wait_for_capacity: Seconds | None = Field(
        default=180.0,
        description="How long batch pods may be pending for nodes that free up soon before HTAS launches one; 3m: "
        "about a launch and a half. null: no limit.",
    )
    look_ahead: Seconds = Field(
        default=120.0,
        description="Headroom: HTAS reserves and launches resources for half as many batch pods as arrived in this "
        "time, if steadily; 2m, about a launch. 0s: only for pending pods.",
    )
    value: ValueSetting = Field(default=ValueSetting(), description="What restarts cost, in money.")
    max_rental_lengthening: Real | None = Field(
        default=4.0,
        gt=0,
        description="HTAS schedules no batch pod on a node where it would add more than so many times the price of its "
        "own cheapest machine to the rental; 4: less costs more where pods keep coming. null: no limit.",
    )
    move_instead_of_launch: Switch = Field(
        default=True,
        description="HTAS moves a pod or two where that costs less than the machine it would launch, and takes no "
        "longer. Only pods that may move: batch pods, and services that opted in.",
    )
    fallback: FallbackSetting = Field(
        default=FallbackSetting(), description="For unschedulable pods where HTAS cannot launch."
    )
    edge: EdgeSetting = Field(default=EdgeSetting(), description="For nodes near their users: tier edge.")
    volumes: VolumesSetting = Field(
        default=VolumesSetting(), description="What CSI drivers report on machines that are not launched yet."
    )
    limits: ClusterLimitsSetting = Field(default=ClusterLimitsSetting(), description="Over all groups.")
    namespaces: tuple[NamespaceLimitSetting, ...] = Field(
        default=(),
        description="Limits of namespaces on launched machines and on pinned pods; others have no bound.",
    )
    monthly_budget: Nanos | None = Field(
        default=None,
        description="What a month (UTC) may cost, in the price file's currency: reported by an alert and on "
        "the Money page. It blocks no launch; limits.maxPricePerHour does. null: none.",
    )
    scheduling: ClusterSchedulingSetting = Field(
        default=ClusterSchedulingSetting(),
        description="How pending pods are scheduled on nodes outside all groups. Groups have their own.",
    )
    node_groups: tuple[GroupSetting, ...] = Field(min_length=1, description="Machines by the kind of pods they run.")
