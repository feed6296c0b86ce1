"""Who takes part in the edge experiment: KubeDSM as HTAS has it, its variants, and the document's baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from htas.model.edge import EdgePolicy
from htas.model.flavours import Catalogue
from htas.model.policy import Cycles, Fallback, FallbackMode, NodeGroup, Policy
from htas.planning.planner import Planner, plan
from tools.lab.baselines import edge
from tools.lab.contenders import Contender

KUBEDSM, K8S, RANDOM = "kubedsm", "k8s", "random"
BASELINES: Mapping[str, tuple[str, Planner]] = {
    K8S: ("Kubernetes (K8S)", edge.kube_scheduler),
    "bef": ("Biggest edge node first (BEF)", edge.biggest_first),
    "sef": ("Smallest edge node first (SEF)", edge.smallest_first),
    RANDOM: ("Random", edge.by_lot),
    "cf": ("Cloud first (CF)", edge.cloud_first),
}
VARIANTS: Mapping[str, tuple[str, int, int]] = {
    "mid-mig": ("MidMig", 2, 1),
    "no-cloud-offload": ("NoCloudOffload", 0, 3),
    "no-edge-mig": ("NoEdgeMig", 5, 0),
}
"""Title, M_C2E and M_ER; the original has 5 and 3."""
TARGETS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "all-half": ("AllHalf", dict.fromkeys("abcd", 0.5)),
    "c-over-a": ("C>A", {"a": 0.5, "b": 0.1, "c": 1.0, "d": 0.1}),
    "respect-d": ("RespectD", {"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.5}),
}
"""Title, and the target of each service; they are 1 otherwise."""
PERIOD_S = 15.0
"""Between suggestions. The document does not state it; this is how often the scalers look."""


@dataclass(frozen=True, slots=True)
class EdgeContender(Contender):
    """A way of scheduling, and the targets that services have with it; without any all their pods should be near."""

    targets: Mapping[str, float] = field(default_factory=dict)


def edge_contenders() -> dict[str, EdgeContender]:
    """All of them by name: KubeDSM, the baselines, then KubeDSM's variants and other targets."""
    whole = EdgeContender(KUBEDSM, "KubeDSM", settings(KUBEDSM), plan)
    baselines = (EdgeContender(name, title, settings(name), planner) for name, (title, planner) in BASELINES.items())
    variants = (
        replace(whole, name=f"{KUBEDSM}/{name}", title=title, policy=settings(KUBEDSM, lifts, reorderings))
        for name, (title, lifts, reorderings) in VARIANTS.items()
    )
    targeted = (
        replace(whole, name=f"{KUBEDSM}/{name}", title=title, targets=targets)
        for name, (title, targets) in TARGETS.items()
    )
    return {each.name: each for each in (whole, *baselines, *variants, *targeted)}


def settings(name: str, lifts: int = 5, reorderings: int = 3) -> Policy:
    """Pods are placed as they come and nothing is bought: the nodes are what there is.

    Pods need not have settled to be moved: a load lasts for 90 s, and the document waits for nothing.
    """
    edge = msgspec.structs.replace(
        EdgePolicy(), cloud_to_edge_moves=lifts, reorder_moves=reorderings, period_s=PERIOD_S, settle_s=0.0
    )
    policy = Policy(
        name,
        Catalogue(),
        (NodeGroup("none"),),
        cycles=Cycles(scheduling_s=10.0, autoscaling_s=60.0, cleaning_s=60.0),
        fallback=Fallback(mode=FallbackMode.OFF),
    )
    return msgspec.structs.replace(policy, edge=edge)
