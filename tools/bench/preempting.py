"""Plan time where the cluster is full: 200 templates of more important work on 5,000 nodes with 25,000 running pods.

Cases: all who run may leave; a budget that forbids it; a budget of one that two of each node would need, so that
every node looks promising and none helps.

    python -m tools.bench.preempting
"""

from __future__ import annotations

import sys
from time import process_time

import msgspec

from htas.model.budgets import DisruptionBudget
from htas.model.policy import Fallback, FallbackMode, Limits
from htas.model.resources import Resources
from htas.model.selectors import LabelSelector
from htas.model.snapshot import ClusterSnapshot
from htas.planning.planner import plan
from tools.bench.plan import GIB, NOW, policy, snapshot

NODES, TEMPLATES = 5000, 200
ALLOWED = {"all may leave": None, "none may leave": 0, "one may leave": 1}


def full(allowed: int | None) -> ClusterSnapshot:
    """Nodes with 4 of 8 cores in use, and pods that ask for more than 5.6: two of a node's five must leave."""
    made = snapshot(TEMPLATES, NODES, "200")
    waiting = [pod for pod in made.cluster.pods if pod.node is None]
    large = [
        msgspec.structs.replace(pod, priority=100, requests=Resources(5601 + 10 * (TEMPLATES - i), GIB, 0, 1))
        for i, pod in enumerate(waiting)
    ]
    running = [pod for pod in made.cluster.pods if pod.node is not None]
    budgets = () if allowed is None else (DisruptionBudget("default", "all", LabelSelector(()), allowed),)
    view = msgspec.structs.replace(made.cluster, pods=(*running, *large), budgets=budgets)
    return msgspec.structs.replace(made, cluster=view)


def main() -> None:
    """Each case's CPU time, beside that of the plan that preempts for nobody."""
    sys.stdout.write("          case   cpu_s   off_s  preempted\n")
    for name, allowed in ALLOWED.items():
        there, took, result = full(allowed), {}, None
        for mode in (FallbackMode.OFF, FallbackMode.PREEMPT):
            how = msgspec.structs.replace(policy(), limits=Limits(max_nodes=0), fallback=Fallback(mode=mode))
            began = process_time()
            result = plan(there, how, NOW)
            took[mode] = process_time() - began
        count = len({item.beneficiary for item in result.preempt}) if result is not None else 0
        times = f"{took[FallbackMode.PREEMPT]:>7.2f} {took[FallbackMode.OFF]:>7.2f}"
        sys.stdout.write(f"{name:>14} {times} {count:>10}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
