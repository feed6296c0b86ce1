"""Who takes part in an experiment: a policy, what plans by it, and what makes it act."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import msgspec

from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.model.flavours import Catalogue
from htas.model.policy import AutoscalingAlgorithm, Policy
from htas.model.stages import EVENT_STAGES, Stage
from htas.planning.planner import Planner, plan
from tools.lab.baselines import cluster_autoscaler, coca, default_kubernetes, karpenter, stratus, well_set
from tools.lab.baselines.as_printed import cycle as as_printed
from tools.lab.baselines.as_printed.readings import readings

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
    return {each.name: each for each in (*ours, *_baselines(catalogue))}


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


def _baselines(catalogue: Catalogue) -> list[Contender]:
    """Others as they are shipped, as a good operator sets them, and the paper as it is printed."""
    autoscaler, packed = cluster_autoscaler.settings(catalogue), karpenter.settings(catalogue)
    quick = well_set.quick_stratus(catalogue)
    of_services = partial(Contender, evicts_services=True)
    return [
        of_services(
            "default-kubernetes",
            "default Kubernetes",
            default_kubernetes.settings(catalogue),
            default_kubernetes.plan,
            AT_ONCE,
        ),
        of_services("cluster-autoscaler", "Cluster Autoscaler 1.37", autoscaler, cluster_autoscaler.plan, AT_ONCE),
        of_services("coca", "COCA", coca.settings(catalogue), coca.plan, AT_ONCE),
        Contender("stratus", "Stratus", stratus.settings(catalogue), stratus.plan, AT_ONCE),
        of_services("karpenter", "Karpenter-like", packed, karpenter.plan),
        _tuned_autoscaler("cluster-autoscaler-tuned", "Cluster Autoscaler, tuned", autoscaler),
        of_services("karpenter-pinned", "Karpenter-like, jobs pinned", packed, karpenter.plan, pins_jobs=True),
        Contender("stratus-20s", "Stratus every 20 s", quick, stratus.plan, AT_ONCE),
        Contender(AS_PRINTED, "the paper as printed", as_printed.settings(catalogue), as_printed.plan),
        *(
            Contender(f"{AS_PRINTED}/{name}", f"the paper as printed, but {title}", policy, planner)
            for name, (title, policy, planner) in readings(catalogue).items()
        ),
    ]


def _tuned_autoscaler(name: str, title: str, policy: Policy) -> Contender:
    return Contender(
        name,
        title,
        policy,
        well_set.tuned_plan(policy.catalogue.billing),
        AT_ONCE,
        evicts_services=True,
        pins_jobs=True,
    )


def tuned_to(catalogue: Catalogue, flavour: str) -> Contender:
    """Cluster Autoscaler, tuned, with one flavour that its operator has chosen for the work."""
    policy = well_set.one_flavour(catalogue, flavour)
    return _tuned_autoscaler("cluster-autoscaler-one", "Cluster Autoscaler, tuned, one flavour", policy)


WELL_SET = ("cluster-autoscaler-tuned", "karpenter-pinned", "stratus-20s")
"""Baselines as a good operator sets them: the fairest that HTAS is held against (`tools.bench.money`)."""
