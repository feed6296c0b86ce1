"""The settings of KWOK's simulated machines."""

from __future__ import annotations

from pydantic import Field

from htas.config.values import Integer, Seconds, Section, Share, Units


class KwokFaultsSetting(Section):
    """Shares of launches that fail, for trials. None by default."""

    out_of_stock: Share = Field(default=0.0, description="0 to 1: refused, because the cloud has none left.")
    never_registers: Share = Field(default=0.0, description="0 to 1: the machine runs, but its node never registers.")
    registers_late: Share = Field(default=0.0, description="0 to 1: its node registers after `late`.")
    late: Seconds = Field(default=300.0, description="How late those register; 5m.")


class KwokSetting(Section):
    """Machines simulated by KWOK in a real cluster."""

    startup_delay: Seconds = Field(
        default=60.0, description="From the launch of a machine until its node registers; 60s, as a small image boots."
    )
    move_bandwidth: Units | None = Field(
        default=150_000_000, ge=1, description="Bytes per second of a move; paper 6.2. null: at once."
    )
    seed: Integer = Field(default=1, description="Which launches fail; the same seed and claim give the same result.")
    faults: KwokFaultsSetting = Field(default=KwokFaultsSetting(), description="Shares of launches that fail.")
