"""The whole configuration file."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from htas.config.groups import GroupSetting, LimitsSetting
from htas.config.values import Millicores, Name, Seconds, Section, Units
from htas.model.claims import Headroom
from htas.model.policy import Cycles, RunLengths, Timeouts

API_VERSION = "htas.io/v1alpha1"
KIND = "HTASConfiguration"


class CyclesSetting(Section):
    """How often each part of planning runs. `batchMax: 0s` switches off cycles on events (the paper's way)."""

    scheduling: Seconds = Field(default=20.0, gt=0)
    autoscaling: Seconds = Field(default=20.0, gt=0)
    cleaning: Seconds = Field(default=60.0, gt=0)
    batch_idle: Seconds = 0.2
    batch_max: Seconds = 2.0

    def model(self) -> Cycles:
        return Cycles(self.scheduling, self.autoscaling, self.cleaning, self.batch_idle, self.batch_max)


class TimeoutsSetting(Section):
    """Every wait ends."""

    launch: Seconds = Field(default=300.0, gt=0)
    registration: Seconds = Field(default=900.0, gt=0)
    ready: Seconds = Field(default=900.0, gt=0)
    drain: Seconds = Field(default=600.0, gt=0)
    missing: Seconds = Field(default=60.0, gt=0)
    backoff_initial: Seconds = Field(default=300.0, gt=0)
    backoff_max: Seconds = Field(default=1800.0, gt=0)

    def model(self) -> Timeouts:
        return Timeouts(
            launch_s=self.launch,
            registration_s=self.registration,
            ready_s=self.ready,
            drain_s=self.drain,
            missing_s=self.missing,
            backoff_initial_s=self.backoff_initial,
            backoff_max_s=self.backoff_max,
        )


class RunLengthsSetting(Section):
    default: Seconds = Field(default=600.0, gt=0)

    def model(self) -> RunLengths:
        return RunLengths(self.default)


class QuotaSetting(Section):
    """What the sandbox's cloud grants in all; a key left out is unlimited."""

    instances: int | None = Field(default=None, ge=0)
    cpu: Millicores | None = None
    memory: Units | None = None

    def model(self) -> Headroom:
        return Headroom(self.instances, self.cpu, self.memory)


class FaultsSetting(Section):
    """Shares of requests the sandbox's cloud spoils, 0 to 1."""

    out_of_stock: float = Field(default=0.0, ge=0, le=1)
    boot_failure: float = Field(default=0.0, ge=0, le=1)
    never_registers: float = Field(default=0.0, ge=0, le=1)


class SandboxSetting(Section):
    """The embedded world. With `address` it runs in a process of its own (`htas sandbox`), and only that is read."""

    address: str | None = None
    seed: int = 1
    startup_delay: Seconds = 60.0
    workload: Literal["none", "day"] = "none"
    speed: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    quota: QuotaSetting = QuotaSetting()
    faults: FaultsSetting = FaultsSetting()


class ProviderSetting(Section):
    """Where machines come from."""

    sandbox: SandboxSetting


class SqliteSetting(Section):
    path: str = Field(default="htas.db", min_length=1)


class StoreSetting(Section):
    """Where the journal and the history are kept."""

    sqlite: SqliteSetting = SqliteSetting()


class Configuration(Section):
    api_version: Literal["htas.io/v1alpha1"]
    kind: Literal["HTASConfiguration"]
    cluster: Name
    scheduler_name: str = Field(default="htas", min_length=1)
    flavours: str | dict[str, Any]
    """The path of a price file, or its content; read by the loader."""
    provider: ProviderSetting = ProviderSetting(sandbox=SandboxSetting())
    store: StoreSetting = StoreSetting()
    cycles: CyclesSetting = CyclesSetting()
    timeouts: TimeoutsSetting = TimeoutsSetting()
    run_lengths: RunLengthsSetting = RunLengthsSetting()
    max_wait_for_capacity: Seconds = 120.0
    limits: LimitsSetting = LimitsSetting()
    node_groups: tuple[GroupSetting, ...] = Field(min_length=1)
