"""Break planning and execution at random places, one at a time, and print how many are noticed and which are not.

    make mutants SEED=4 SAMPLE=60           # or: python -m tools.mutants --seed 4 --sample 60
    python -m tools.mutants --seed 4 --again     # the survivors of that seed once more, after tests were written
    python -m tools.mutants --tests tests/corpus --packages htas/planning    # what some tests notice by themselves

What has been tried is kept in out/mutants, and a run that was broken off goes on there. Which test runs which line is
kept under ~/.cache/htas/mutants for all checkouts: once measured for a state of the sources, only tests that are new
or changed are measured anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

import msgspec

from tools.mutants.forking import job
from tools.mutants.mutations import Mutant, sample
from tools.mutants.selection import Selection, known, measured
from tools.mutants.trying import Found, Workshop

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "htas" / "mutants"
PACKAGES = ("htas/planning", "htas/execution")
MOST_TESTS = 80
"""For one mutant. A line of the planner's table of contents is run by a thousand."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=60, help="how many places")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="forget that mutants survived, and try those anew")
    parser.add_argument("--tests", nargs="+", help="ask these tests alone, whatever line it is: nothing is measured")
    parser.add_argument(
        "--known", action="store_true", help="ask the tests alone of which it is known which lines they run"
    )
    parser.add_argument("--packages", nargs="+", default=PACKAGES, help="what is broken")
    chosen = parser.parse_args(arguments)
    folder = ROOT / "out" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    modules = [str(path.relative_to(ROOT)) for package in chosen.packages for path in (ROOT / package).rglob("*.py")]
    picked = sample(ROOT, modules, chosen.sample, chosen.seed, CACHE / "places")
    kept = folder / f"{_name(chosen)}.jsonl"
    if chosen.again and kept.exists():
        kept.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in _read(kept).values() if each.is_caught))
    found = _read(kept)
    open_ones = [mutant for mutant in picked if mutant.name not in found]
    if open_ones:
        _try(open_ones, _choice(chosen), chosen.workers, kept)
        found = _read(kept)
    return _told([found[mutant.name] for mutant in picked])


def _name(chosen: argparse.Namespace) -> str:
    """Of the file of what was found: what other tests find is not mixed with it, nor are other places."""
    others = "" if tuple(chosen.packages) == PACKAGES else "-" + "-".join(Path(each).name for each in chosen.packages)
    tests = "-" + "-".join(Path(each).name for each in chosen.tests) if chosen.tests else ""
    return f"seed-{chosen.seed}{others}{tests}"


Choice = Callable[[Mutant], list[str]]
"""The tests that are to notice a mutant."""


def _choice(chosen: argparse.Namespace) -> Choice:
    if chosen.tests:
        return lambda mutant: list(chosen.tests)
    runs = known(ROOT, CACHE, PACKAGES) if chosen.known else measured(ROOT, CACHE, PACKAGES, chosen.workers)
    selection = Selection(ROOT, runs)
    return lambda mutant: selection.tests(mutant, MOST_TESTS)


def _read(kept: Path) -> dict[str, Found]:
    lines = kept.read_bytes().splitlines() if kept.exists() else []
    found = (msgspec.json.decode(line, type=Found) for line in lines)
    return {each.mutant: each for each in found}


def _try(mutants: list[Mutant], choice: Choice, workers: int, kept: Path) -> None:
    """First in forks, then what those cannot tell of; each is written down as soon as it is known."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tests = {mutant.name: choice(mutant) for mutant in mutants}
        jobs = [job(mutant, ROOT, tests[mutant.name]) for mutant in mutants if tests[mutant.name]]
        (folder / "jobs.json").write_bytes(msgspec.json.encode(jobs))
        files = sorted({test.partition("::")[0] for each in jobs for test in each.tests})
        if files:
            Workshop(ROOT, folder / "forks").try_in_forks(folder / "jobs.json", kept, files, workers)
        done = _read(kept)
        _try_in_trees([mutant for mutant in mutants if mutant.name not in done], tests, workers, kept, folder)


def _try_in_trees(
    mutants: list[Mutant], tests: Mapping[str, list[str]], workers: int, kept: Path, folder: Path
) -> None:
    """Each worker in a tree of its own."""
    with ThreadPoolExecutor(workers) as pool, kept.open("ab") as written:
        workshops: SimpleQueue[Workshop] = SimpleQueue()
        for number in range(workers):
            workshops.put(Workshop(ROOT, folder / f"tree-{number}"))

        def try_one(mutant: Mutant) -> Found:
            workshop = workshops.get()
            try:
                return workshop.try_one(mutant, tests[mutant.name])
            finally:
                workshops.put(workshop)

        for done in as_completed([pool.submit(try_one, mutant) for mutant in mutants]):
            each = done.result()
            written.write(msgspec.json.encode(each) + b"\n")
            written.flush()
            print(f"{'caught' if each.is_caught else 'SURVIVED':8}  {each.mutant}  {each.how}", flush=True)


def _told(found: list[Found]) -> int:
    survivors = [each for each in found if not each.is_caught]
    for each in survivors:
        print(f"survived {each.tests} tests: {each.mutant}")
    caught = len(found) - len(survivors)
    print(f"{caught} of {len(found)} caught: {100 * caught / max(1, len(found)):.0f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
