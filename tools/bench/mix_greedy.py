"""The greedy on an instance of the bench: HTAS's own purchase of the same pods, with the same flavours and billing."""

from __future__ import annotations

from htas.model.billing import Billing
from htas.model.flavours import Catalogue, Flavour
from htas.model.pods import Pod, RunLength, RunLengthSource, WorkKind
from htas.model.policy import NodeGroup, Policy
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.planning.planner import plan
from htas.planning.solvers.cheapest_mix.instance import MixProblem

NOW = 1_000_000.0


def greedy_cost(work: MixProblem) -> int:
    """What the greedy's machines cost, each held as long as its longest pod needs it."""
    is_by_hour = work.holds == (1,)
    pods, levels = [], {}
    for i, count in enumerate(work.counts.tolist()):
        cpu, memory, _ = work.requests[i].tolist()
        level = int(work.levels[i])
        length = None if is_by_hour else RunLength(float(work.holds[level] - 60), RunLengthSource.ANNOTATION)
        for number in range(count):
            pod = Pod(
                "default",
                f"pod-{i}-{number}",
                Resources(cpu, memory, 0, 1),
                kind=WorkKind.SERVICE if is_by_hour else WorkKind.BATCH,
                scheduler="htas",
                run_length=length,
            )
            pods.append(pod)
            levels[pod.key] = level
    flavours = tuple(
        Flavour(f"f{kind:02d}", Resources(cpu, memory, 0, most), int(work.prices[kind]))
        for kind, (cpu, memory, most) in enumerate(work.free.tolist())
    )
    policy = Policy("bench", Catalogue(flavours, billing=Billing(60, 60)), (NodeGroup("any"),))
    bought = plan(ClusterSnapshot(NOW, ClusterView((), tuple(pods))), policy, NOW).launch
    return sum(item.nanos_per_hour * work.holds[max(levels[pod] for pod in item.pods)] for item in bought)
