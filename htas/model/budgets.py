"""Disruption budgets."""

from __future__ import annotations

import msgspec

from htas.model.pods import Pod
from htas.model.selectors import LabelSelector


class DisruptionBudget(msgspec.Struct, frozen=True, omit_defaults=True):
    """A PodDisruptionBudget, by its status: how many of the pods it selects may be disrupted now.

    `selector` None selects nothing, an empty one every pod of the namespace (policy/v1). `current_healthy` of its pods
    are Ready, of the `desired_healthy` that it asks for.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int
    current_healthy: int = 0
    desired_healthy: int = 0
    always_allows_unready: bool = False
    """unhealthyPodEvictionPolicy AlwaysAllow. Else pods that are not Ready go freely while enough are."""

    @property
    def is_healthy(self) -> bool:
        """Whether as many pods are Ready as it asks for; a budget that asks for none never is."""
        return self.current_healthy >= self.desired_healthy > 0

    def covers(self, pod: Pod) -> bool:
        return self.namespace == pod.namespace and self.selector is not None and self.selector.matches(pod.labels)
