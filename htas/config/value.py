"""What a restart costs, in money."""

from __future__ import annotations

from pydantic import Field

from htas.config.values import Nanos, Section
from htas.model.policy import Value


class ValueSetting(Section):
    """What HTAS weighs rental against, in the price file's currency."""

    restart: Nanos = Field(
        default=0,
        description="Cost of one eviction, besides the repeated work: HTAS drains nodes by eviction only where that "
        'saves more; for services an hour of the machine is added. "0": nothing.',
    )

    def model(self) -> Value:
        return Value(self.restart)
