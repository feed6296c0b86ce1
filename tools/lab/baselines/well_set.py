"""Other autoscalers as a good operator sets them for batch work, beside how they are shipped.

What an operator who pays for machines by the minute does first: pods are packed (kube-scheduler's NodeResourcesFit with
MostAllocated), unneeded nodes go after a minute instead of ten, and running jobs are never evicted, since they would
start again (Cluster Autoscaler: `safe-to-evict: "false"`, Karpenter: `do-not-disrupt`). Where machines are billed by
longer periods, unneeded nodes stay for half of one: what is paid for is room for what comes next. Stratus looks every
20 s at what to buy, as HTAS does, instead of every five minutes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import msgspec

from htas.model.billing import Billing
from htas.model.flavours import Catalogue
from htas.model.policy import Cycles, Policy
from htas.planning.planner import Planner
from tools.lab.baselines import cluster_autoscaler, stratus
from tools.lab.baselines.orders import MOST_REQUESTED
from tools.lab.baselines.scale_down import ScaleDown

TUNED = ScaleDown(unneeded_s=60.0, after_add_s=60.0, order=MOST_REQUESTED)
"""--scale-down-unneeded-time=1m --scale-down-delay-after-add=1m, and a scheduler profile with MostAllocated."""
PAID_PART = 0.5
"""Of a billing period: by the hour --scale-down-unneeded-time=30m, where operators set 15 to 40 minutes."""


def tuned(billing: Billing) -> ScaleDown:
    """The flags for machines that are billed so."""
    return replace(TUNED, unneeded_s=max(TUNED.unneeded_s, PAID_PART * billing.granularity_s))


def tuned_plan(billing: Billing) -> Planner:
    """Cluster Autoscaler's loop with these flags."""
    return partial(cluster_autoscaler.plan_with, tuned(billing))


def one_flavour(catalogue: Catalogue, flavour: str) -> Policy:
    """Cluster Autoscaler with a single node group, of one flavour."""
    policy = cluster_autoscaler.settings(catalogue)
    groups = tuple(msgspec.structs.replace(group, flavours=(flavour,)) for group in policy.groups)
    return msgspec.structs.replace(policy, groups=groups)


def quick_stratus(catalogue: Catalogue) -> Policy:
    """Stratus with all of its cycles every 20 s."""
    cycles = Cycles(scheduling_s=20.0, autoscaling_s=20.0, cleaning_s=20.0)
    return msgspec.structs.replace(stratus.settings(catalogue), cycles=cycles)
