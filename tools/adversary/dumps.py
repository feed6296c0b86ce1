"""What hostile dumps cost: each shape is read and planned for in a process of its own, and the worst are told.

python -m tools.adversary.dumps                          # 500 objects with 500 entries each
python -m tools.adversary.dumps --count 1500 --size 100
python -m tools.adversary.dumps --only affinity
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import msgspec
from rich.progress import track

from htas.adapters.kubernetes.dump import read_dump
from htas.model.snapshot import ClusterSnapshot
from htas.planning.planner import plan
from tools.adversary.scene import shipped_policy
from tools.adversary.shapes import SHAPES, TAKES_ALL
from tools.adversary.tenant import NOW, pod
from tools.silence import silence

PLANNING_S = 2.0
"""CPU seconds that a hostile namespace may cost a plan, beside what the same number of plain pods costs: near none."""
MOST_MB = 300
"""Memory that reading and planning may take beside the text itself."""
LONGEST_S = 120
NODES = 50
QUIET = 20


class Cost(msgspec.Struct):
    """What a dump cost: CPU seconds, megabytes at most beside its text, what those who wait were told."""

    reading_s: float
    planning_s: float
    megabytes: int
    served: int
    waiting: dict[str, int]


def dump_of(shape: str, count: int, size: int) -> bytes:
    """A cluster of fifty nodes with a quiet namespace, and one that writes objects of a shape."""
    nodes = [_node(f"n{i}") for i in range(NODES)]
    quiet = [pod(f"quiet-{i}", "quiet") for i in range(QUIET)]
    items = [*nodes, *SHAPES[shape](count, size), *quiet]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


def _node(name: str) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "a"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def cost_of(text: bytes) -> Cost:
    """Read and plan, here."""
    before = _peak_mb()
    began = process_time()
    view = read_dump(text, "hostile")
    read = process_time()
    made = plan(ClusterSnapshot(taken_at=NOW, cluster=view), shipped_policy(), NOW)
    planned = process_time()
    given = {item.pod for item in (*made.bind, *made.nominate)} | {key for each in made.launches for key in each.pods}
    served = sum(key.startswith("quiet/quiet-") for key in given)
    waiting = Counter(item.reason.value for item in made.unplaced)
    return Cost(read - began, planned - read, _peak_mb() - before, served, dict(waiting.most_common()))


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _apart(shape: str, count: int, size: int) -> Cost | str:
    """The same in a process of its own, which ends whatever happens; words where it did not come to its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.json"
        path.write_bytes(dump_of(shape, count, size))
        command = [sys.executable, "-m", "tools.adversary.dumps", "--measure", str(path)]
        done = subprocess.run(command, capture_output=True, check=False, preexec_fn=_bounded)
    if done.returncode == 0:
        return msgspec.json.decode(done.stdout, type=Cost)
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
    return last[0][:100]


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_S, LONGEST_S))
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))


def faults(shape: str, cost: Cost | str) -> list[str]:
    """What must not be, in words."""
    if isinstance(cost, str):
        return [cost]
    found = []
    if cost.planning_s > PLANNING_S:
        found.append(f"planning takes more than {PLANNING_S:g} s")
    if cost.megabytes > MOST_MB:
        found.append(f"more than {MOST_MB} MB")
    if cost.served < QUIET and shape not in TAKES_ALL:
        found.append(f"{QUIET - cost.served} quiet pods have no room")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="objects")
    parser.add_argument("--size", type=int, default=500, help="entries in each")
    parser.add_argument("--only", default="", metavar="WORD", help="shapes whose name has this")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    silence()
    if chosen.measure is not None:
        sys.stdout.buffer.write(msgspec.json.encode(cost_of(chosen.measure.read_bytes())))
        return 0
    picked = [name for name in SHAPES if chosen.only in name]
    bar = partial(track, description="hostile dumps", disable=not sys.stdout.isatty())
    costs = {name: _apart(name, chosen.count, chosen.size) for name in bar(picked)}
    failed = 0
    for name in sorted(picked, key=lambda name: _planning_s(costs[name])):
        wrong = faults(name, costs[name])
        failed += bool(wrong)
        print(_line(name, costs[name], wrong))
    print(f"{len(picked) - failed} of {len(picked)} shapes withstood; {chosen.count} objects of {chosen.size} entries")
    return 1 if failed else 0


def _planning_s(cost: Cost | str) -> float:
    return float("inf") if isinstance(cost, str) else cost.planning_s


def _line(name: str, cost: Cost | str, wrong: list[str]) -> str:
    word = "FAIL" if wrong else "PASS"
    if isinstance(cost, str):
        return f"{word}  {name:36} {cost}"
    waits = ", ".join(f"{count} {reason}" for reason, count in list(cost.waiting.items())[:2])
    told = f"reading {cost.reading_s:6.2f} s  planning {cost.planning_s:6.2f} s  {cost.megabytes:4} MB  {waits}"
    return f"{word}  {name:36} {told}{'  ! ' + '; '.join(wrong) if wrong else ''}"


if __name__ == "__main__":
    sys.exit(main())
