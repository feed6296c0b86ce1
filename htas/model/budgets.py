"""Disruption budgets."""

from __future__ import annotations

import msgspec

from htas.model.pods import Pod
from htas.model.selectors import LabelSelector


class DisruptionBudget(msgspec.Struct, frozen=True, omit_defaults=True):
    """A PodDisruptionBudget, by its status: how many of the pods it selects may be disrupted now.

    `selector` None selects nothing, an empty one every pod of the namespace (policy/v1).
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int

    def covers(self, pod: Pod) -> bool:
        return self.namespace == pod.namespace and self.selector is not None and self.selector.matches(pod.labels)
