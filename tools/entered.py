"""How many modules of planning are entered for one Bind and for one Launch.

python -m tools.entered            # the numbers
python -m tools.entered --modules  # with the modules
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType

from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.model.nodes import HOSTNAME_LABEL, Node
from htas.model.plan import Plan
from htas.model.pods import Pod
from htas.model.resources import Resources
from htas.model.snapshot import ClusterSnapshot, ClusterView
from htas.model.stages import ALL_STAGES
from htas.planning import planner

PLANNING = Path(planner.__file__).parent
NOW = 1_000_000.0
POD = Resources(500, 2**30, pods=1)
NODE = Resources(4000, 16 * 2**30, pods=110)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", action="store_true", help="print the modules, too")
    chosen = parser.parse_args(arguments)
    for decision, nodes in (("Bind", ("a", "b")), ("Launch", ())):
        plan, modules = entered(nodes)
        if (len(plan.bind), len(plan.launch)) != ((1, 0) if nodes else (0, 1)):
            raise SystemExit(f"no plan of one {decision}: {plan}")
        print(f"one {decision}: {len(modules)} modules of planning")
        if chosen.modules:
            print("\n".join(f"  {module}" for module in modules))
    return 0


def entered(nodes: Iterable[str]) -> tuple[Plan, list[str]]:
    """The plan for one pod and these nodes, and the modules of planning that a call entered."""
    policy = load_configuration(config_file("htas.yaml")).policy
    pod = Pod("default", "pod", POD, "pod", scheduler=policy.scheduler_name, created_at=NOW - 10)
    there = tuple(Node(name, NODE, labels={HOSTNAME_LABEL: name}) for name in nodes)
    snapshot = ClusterSnapshot(NOW, ClusterView(there, (pod,)))
    files = set[str]()

    def look(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    planner.plan(snapshot, policy, NOW, ALL_STAGES)  # what is worked out once is not of this plan
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        plan = planner.plan(snapshot, policy, NOW, ALL_STAGES)
    finally:
        sys.setprofile(before)
    paths = (Path(file) for file in files)
    return plan, sorted(str(path.relative_to(PLANNING)) for path in paths if path.is_relative_to(PLANNING))


if __name__ == "__main__":
    sys.exit(main())
