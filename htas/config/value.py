"""The one dial: what an hour of a pod's waiting and a restart are worth in money."""

from __future__ import annotations

from pydantic import Field

from htas.config.values import Nanos, Section
from htas.model.policy import Value


class ValueSetting(Section):
    """What rental is weighed against, in the price file's currency."""

    waiting_per_pod_hour: Nanos | None = Field(
        default=None,
        description="An hour of one pod's waiting: batch work waits for company (gatherFor) only where that is "
        "expected to save more. null: as much as an hour of the cheapest machine for it.",
    )
    restart: Nanos = Field(
        default=0,
        description="One eviction of a pod, beside the work that is done again: nodes whose pods would be evicted are "
        'emptied only where that saves more; for services an hour of the machine is counted. "0": nothing.',
    )

    def model(self) -> Value:
        return Value(self.waiting_per_pod_hour, self.restart)
