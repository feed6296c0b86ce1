"""Try inputs on everything that reads what others write, for as long as one likes.

    make fuzz SECONDS=900 SEED=3        # or: python -m tools.fuzz --seconds 900 --seed 3 --only dumps

A traceback, more than 2 s of the processor or more than 300 MB is a defect; its smallest input is printed, to be kept
as a test. The same seed tries the same inputs in the same order.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tools.fuzz.targets import targets
from tools.fuzz.trying import Tally, try_some
from tools.silence import silence

AT_ONCE = 100


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, by the clock")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="targets whose name has this")
    chosen = parser.parse_args(arguments)
    silence()
    ends_at = time.monotonic() + chosen.seconds
    with targets() as every:
        picked = [target for target in every if chosen.only in target.name]
        tallies = {target.name: Tally() for target in picked}
        rounds = 0
        while picked and time.monotonic() < ends_at:
            for target in picked:
                try_some(target, tallies[target.name], chosen.seed * 1_000_003 + rounds, AT_ONCE)
            rounds += 1
    return _told(tallies)


def _told(tallies: dict[str, Tally]) -> int:
    for name, tally in tallies.items():
        for place, shown in tally.defects.items():
            print(f"{name}: {place}\n{shown}\n")
    print(f"{'':16} {'inputs':>9} {'slowest':>9} {'largest':>9} {'defects':>8}")
    for name, tally in tallies.items():
        slowest, largest = f"{tally.slowest_s:.2f} s", f"{tally.largest_mb:.0f} MB"
        print(f"{name:16} {tally.inputs:9,} {slowest:>9} {largest:>9} {len(tally.defects):8}")
    return 1 if any(tally.defects for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
