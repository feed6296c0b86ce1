"""Who takes part in an experiment: a policy, what plans by it, and what makes it act."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import msgspec

from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.experiments.baselines import cluster_autoscaler, coca, default_kubernetes, karpenter, stratus, well_set
from htas.experiments.baselines.as_printed import cycle as as_printed
from htas.experiments.baselines.as_printed.readings import readings
from htas.model.flavours import Catalogue
from htas.model.policy import AutoscalingAlgorithm, Policy
from htas.model.stages import EVENT_STAGES, Stage
from htas.planning.planner import Planner, plan

ACQUISITION_LAG_S = 120.0
"""From asking for a machine to a Ready node: "a few minutes" (HTAS paper 3.1.2 (2))."""
AT_ONCE = frozenset({Stage.SCHEDULING})
"""Pods are placed as they come; buying keeps its cycle."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of running the cluster.

    `evicts_services`: it treats services as any other pod, and may move them. `pins_jobs`: its operator has marked
    running jobs as not to be disrupted.
    """

    name: str
    title: str
    policy: Policy
    planner: Planner
    event_stages: frozenset[Stage] = EVENT_STAGES
    evicts_services: bool = False
    pins_jobs: bool = False


HTAS, HTAS_DEFAULT = "htas", "htas-default"
HTAS_MIX, HTAS_DEFAULT_MIX = "htas-mix", "htas-default-mix"
AS_PRINTED = "paper-as-printed"
MIX_BUDGET_S = 0.2
"""Searched about so long for each purchase: those of the paper's patterns are of some twenty pods."""


def contenders(catalogue: Catalogue | None = None) -> dict[str, Contender]:
    """All contenders by name, HTAS first; with the paper's flavours and prices unless others are given."""
    paper = _shipped("paper.yaml")
    catalogue = catalogue or paper.catalogue
    paper = msgspec.structs.replace(paper, catalogue=catalogue)
    default = _with_workers(_shipped("htas.yaml"))
    default = msgspec.structs.replace(default, catalogue=catalogue)
    ours = (
        Contender(HTAS, "HTAS, paper's cycles", paper, plan),
        Contender(HTAS_DEFAULT, "HTAS", default, plan),
        Contender(HTAS_MIX, "HTAS, paper's cycles, cheapest mix", with_cheapest_mix(paper), plan),
        Contender(HTAS_DEFAULT_MIX, "HTAS, cheapest mix", with_cheapest_mix(default), plan),
    )
    baselines = (make(catalogue) for make in _BASELINES.values())
    return {each.name: each for each in (*ours, *baselines, *_printed_otherwise(catalogue))}


@cache
def _shipped(name: str) -> Policy:
    """Of a configuration that comes with HTAS: reading one takes a tenth of a second, asked for dozens of times."""
    return load_configuration(config_file(name)).policy


def _with_workers(policy: Policy) -> Policy:
    """The default configuration on the paper's testbed: two workers from the start (Table 5), as every contender has.

    By itself it keeps none, and the first work would wait for the first machine.
    """
    groups = tuple(msgspec.structs.replace(group, min_nodes=1) for group in policy.groups)
    return msgspec.structs.replace(policy, groups=groups)


def with_cheapest_mix(policy: Policy) -> Policy:
    """The same policy with purchases by the cheapest mix."""
    algorithm = AutoscalingAlgorithm.CHEAPEST_MIX
    groups = tuple(
        msgspec.structs.replace(group, autoscaling=algorithm, mix_budget_s=MIX_BUDGET_S, startup_s=ACQUISITION_LAG_S)
        for group in policy.groups
    )
    return msgspec.structs.replace(policy, groups=groups)


def _default_kubernetes(catalogue: Catalogue) -> Contender:
    title, settings = "default Kubernetes", default_kubernetes.settings(catalogue)
    return Contender("default-kubernetes", title, settings, default_kubernetes.plan, AT_ONCE, evicts_services=True)


def _cluster_autoscaler(catalogue: Catalogue) -> Contender:
    title, settings = "Cluster Autoscaler 1.37", cluster_autoscaler.settings(catalogue)
    return Contender("cluster-autoscaler", title, settings, cluster_autoscaler.plan, AT_ONCE, evicts_services=True)


def _coca(catalogue: Catalogue) -> Contender:
    return Contender("coca", "COCA", coca.settings(catalogue), coca.plan, AT_ONCE, evicts_services=True)


def _stratus(catalogue: Catalogue) -> Contender:
    return Contender("stratus", "Stratus", stratus.settings(catalogue), stratus.plan, AT_ONCE)


def _karpenter(catalogue: Catalogue) -> Contender:
    title, settings = "Karpenter-like", karpenter.settings(catalogue)
    return Contender("karpenter", title, settings, karpenter.plan, EVENT_STAGES, evicts_services=True)


def _tuned_autoscaler(catalogue: Catalogue) -> Contender:
    title, settings = "Cluster Autoscaler, tuned", cluster_autoscaler.settings(catalogue)
    return Contender(
        "cluster-autoscaler-tuned", title, settings, well_set.tuned_plan, AT_ONCE, evicts_services=True, pins_jobs=True
    )


def _pinned_karpenter(catalogue: Catalogue) -> Contender:
    title, settings = "Karpenter-like, jobs pinned", karpenter.settings(catalogue)
    return Contender(
        "karpenter-pinned", title, settings, karpenter.plan, EVENT_STAGES, evicts_services=True, pins_jobs=True
    )


def _quick_stratus(catalogue: Catalogue) -> Contender:
    return Contender("stratus-20s", "Stratus every 20 s", well_set.quick_stratus(catalogue), stratus.plan, AT_ONCE)


def tuned_to(catalogue: Catalogue, flavour: str) -> Contender:
    """Cluster Autoscaler, tuned, with one flavour that its operator has chosen for the work."""
    return replace(
        _tuned_autoscaler(catalogue),
        name="cluster-autoscaler-one",
        title="Cluster Autoscaler, tuned, one flavour",
        policy=well_set.one_flavour(catalogue, flavour),
    )


def _as_printed(catalogue: Catalogue) -> Contender:
    return Contender(AS_PRINTED, "the paper as printed", as_printed.settings(catalogue), as_printed.plan)


def _printed_otherwise(catalogue: Catalogue) -> list[Contender]:
    return [
        Contender(f"{AS_PRINTED}/{name}", f"the paper as printed, but {title}", policy, planner)
        for name, (title, policy, planner) in readings(catalogue).items()
    ]


WELL_SET = ("cluster-autoscaler-tuned", "karpenter-pinned", "stratus-20s")
"""Baselines as a good operator sets them: the fairest that HTAS is held against (`tools.bench.money`)."""

_BASELINES: Mapping[str, Callable[[Catalogue], Contender]] = {
    "default-kubernetes": _default_kubernetes,
    "cluster-autoscaler": _cluster_autoscaler,
    "coca": _coca,
    "stratus": _stratus,
    "karpenter": _karpenter,
    "cluster-autoscaler-tuned": _tuned_autoscaler,
    "karpenter-pinned": _pinned_karpenter,
    "stratus-20s": _quick_stratus,
    AS_PRINTED: _as_printed,
}
