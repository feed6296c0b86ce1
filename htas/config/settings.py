"""The whole configuration file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from htas.config.groups import GroupSetting, LimitsSetting
from htas.config.sandbox import SandboxSetting
from htas.config.timing import CyclesSetting, RunLengthsSetting, TimeoutsSetting
from htas.config.values import Name, Seconds, Section, Source, Text

__all__ = ["Configuration", "SandboxSetting", "SqliteSetting"]


class ProviderSetting(Section):
    """Where machines come from."""

    sandbox: SandboxSetting = Field(description="The embedded world, the only one of this release.")


class SqliteSetting(Section):
    """A SQLite file."""

    path: Text = Field(default="htas.db", description="Beside the configuration unless absolute.")


class StoreSetting(Section):
    """Where the journal and the history are kept."""

    sqlite: SqliteSetting = Field(description="A file on this machine: nothing to install.")


class Configuration(Section):
    """The top level (DESIGN 5)."""

    api_version: Literal["htas.io/v1alpha1"] = Field(description="The form of this file.")
    kind: Literal["HTASConfiguration"] = Field(description="What this file is.")
    cluster: Name = Field(description="Written on everything HTAS owns: one name for each cluster of a project.")
    scheduler_name: Text = Field(
        default="htas", description="Pods with this schedulerName are bound by HTAS; for others it only buys nodes."
    )
    flavours: Source = Field(
        description="The path of a price file, beside this one unless absolute, or its content in place."
    )
    provider: ProviderSetting = Field(
        default=ProviderSetting(sandbox=SandboxSetting()), description="Where machines come from."
    )
    store: StoreSetting = Field(
        default=StoreSetting(sqlite=SqliteSetting()), description="Where journal and history are kept."
    )
    cycles: CyclesSetting = Field(default=CyclesSetting(), description="How often each part of planning runs.")
    timeouts: TimeoutsSetting = Field(default=TimeoutsSetting(), description="Every wait ends.")
    run_lengths: RunLengthsSetting = Field(default=RunLengthsSetting(), description="How long batch work runs.")
    max_wait_for_capacity: Seconds = Field(
        default=120.0,
        description="How long batch work may wait for nodes about to free before one is bought; 2m, about a launch.",
    )
    limits: LimitsSetting = Field(default=LimitsSetting(), description="Over all groups.")
    node_groups: tuple[GroupSetting, ...] = Field(min_length=1, description="Machines by the work they take.")
