"""Attack HTAS, and print what came of it.

python -m tools.adversary                   # the quick ones
python -m tools.adversary --long            # all of them, some ten minutes
python -m tools.adversary --only clock      # those whose name has it
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import process_time

from tools.adversary.every import attacks
from tools.silence import silence


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME", help="attacks whose name has this")
    parser.add_argument("--long", action="store_true", help="those that take longer, too")
    chosen = parser.parse_args(arguments)
    picked = [each for each in attacks() if chosen.only in each.name and (chosen.long or not each.is_long)]
    if not picked:
        print(f"no attack has {chosen.only!r} in its name; without --only all are tried", file=sys.stderr)
        return 2
    silence()
    failed = 0
    for attack in picked:
        began = process_time()
        found = attack.carried_out()
        failed += not found.is_withstood
        word = "PASS" if found.is_withstood else "FAIL"
        print(f"{word}  {process_time() - began:6.2f} s  {attack.name}: {found.happened}", flush=True)
        for fault in found.faults:
            print(f"      {fault}")
    print(f"{len(picked) - failed} of {len(picked)} attacks withstood")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
