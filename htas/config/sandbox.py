"""The settings of the sandbox, the embedded cluster and cloud."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from htas.config.values import Count, Integer, Millicores, Real, Seconds, Section, Share, Text, Units
from htas.model.claims import Headroom


class QuotaSetting(Section):
    """What the sandbox's cloud grants in all."""

    instances: Count | None = Field(default=None, description="Machines. null: unlimited.")
    cpu: Millicores | None = Field(default=None, description="Cores. null: unlimited.")
    memory: Units | None = Field(default=None, description="Bytes. null: unlimited.")

    def model(self) -> Headroom:
        return Headroom(self.instances, self.cpu, self.memory)


class FaultsSetting(Section):
    """Shares of launches that fail in the sandbox's cloud. None by default."""

    out_of_stock: Share = Field(default=0.0, description="0 to 1: refused, because the cloud has none left.")
    boot_failure: Share = Field(default=0.0, description="0 to 1: granted, but the machine ends in an error.")
    never_registers: Share = Field(default=0.0, description="0 to 1: the machine runs, but its node never registers.")


class SandboxMovesSetting(Section):
    """How fast the sandbox's pods are moved: T = C / B + K (HTAS paper 5.3)."""

    bandwidth: Units = Field(default=150_000_000, ge=1, description="B: bytes a second; 1,200 Mbit/s (paper 6.2).")
    dump: Units | None = Field(default=None, ge=1, description="Bytes a second to dump with. null: at once.")
    restore: Units | None = Field(default=None, ge=1, description="Bytes a second to restore with. null: at once.")
    termination: Seconds = Field(default=2.0, description="K: to end the pod at its source.")


class SandboxSetting(Section):
    """The embedded world: an in-memory cluster and cloud."""

    address: Text | None = Field(
        default=None, description="The Unix socket of a world in a process of its own (htas sandbox). null: within."
    )
    seed: Integer = Field(default=1, description="Any whole number; the same seed gives the same day.")
    startup_delay: Seconds = Field(
        default=60.0, description="From the launch of a machine until its node is Ready; 60s, as a small image boots."
    )
    workload: Literal["none", "day"] = Field(
        default="none", description="none: no pods arrive by themselves; day: a day of mixed pods."
    )
    speed: Real = Field(default=1.0, gt=0, description="Seconds of the world in one real second. 1: real time.")
    quota: QuotaSetting = Field(default=QuotaSetting(), description="What the cloud grants in all.")
    faults: FaultsSetting = Field(default=FaultsSetting(), description="Shares of launches that fail.")
    moves: SandboxMovesSetting = Field(default=SandboxMovesSetting(), description="How fast pods are moved.")
