"""Decisions on record: does a change of the inside of planning change any?

python -m tools.corpus renew            # takes today's decisions for right; read the diff of tests/corpus
python -m tools.corpus show ID          # a question with its policy, and what was decided on it
python -m tools.corpus record DIR       # plays the tests, stories and days; 10 minutes
python -m tools.corpus compare DIR      # plans all of it anew and prints what differs
python -m tools.corpus stories DIR      # plays the stories anew and prints which go another way
python -m tools.corpus choose DIR       # makes the small corpus of the tests from that
python -m tools.corpus answers          # makes the plans, searches and simulations of random clusters anew
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot
from tools.corpus import answers, stories
from tools.corpus.answers import ASKED, PLANS, RECORDED, SEARCHES, SIMULATIONS
from tools.corpus.decisions import Asked, Corpus, write
from tools.corpus.decisions import merge as merge_parts
from tools.corpus.documents import Document, brief, differences, lost_fields
from tools.corpus.recording import Recorder

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests" / "corpus"
"""The corpus in git, that the tests plan anew: a folder for each of ASKED."""
MOST_BYTES: Mapping[str, int] = {RECORDED: 1_300_000, PLANS: 300_000, SEARCHES: 250_000, SIMULATIONS: 280_000}
"""Of the questions in each."""
PLANNED = ASKED[RECORDED]
STORIES = ("tests/stories", "tests/unit/execution", "tests/unit/daemon")
TOLD = ("tests/stories", "tests/unit/execution")
"""The tests that are compared with the small corpus while they run (tests/conftest.py)."""
TESTS = (*STORIES, "tests/unit/planning", "tests/unit/profiler", "tests/unit/cli", "tests/laws")
WITHOUT = ("tests/laws/test_fuzz.py", "tests/stories/test_adversary.py", "tests/stories/test_kill.py")
SLOW_S = 900


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    return int(chosen.run(chosen))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    record = commands.add_parser("record", help="play, and write down what is decided and done")
    record.add_argument("folder", type=Path)
    record.add_argument("--workers", type=int, default=2)
    record.add_argument("--tests", nargs="+", default=TESTS, help="the tests to play")
    record.add_argument(
        "--no-days", action="store_true", help="without the demo's, the paper's, the trace's, the edge's"
    )
    record.add_argument("--trace", type=Path, help="a pod list of the openb trace, of which the end is played as well")
    record.set_defaults(run=_record)
    compare = commands.add_parser("compare", help="plan all that is on record anew")
    compare.add_argument("folder", type=Path)
    compare.add_argument("--most", type=int, default=20, help="so many that differ are shown")
    compare.add_argument("--lines", type=int, default=5, help="so many differences of each")
    compare.add_argument("--every", type=int, default=1, help="7: of seven decisions one, for a first look")
    compare.add_argument("--only", default="", help="decisions whose source has this in its name")
    compare.add_argument("--workers", type=int, default=1)
    compare.set_defaults(run=_compare)
    small = commands.add_parser("choose", help="make the small corpus of the tests from a large one")
    small.add_argument("folder", type=Path)
    small.set_defaults(run=_choose)
    again = commands.add_parser("renew", help="take what is decided now for right, and print what changed")
    again.add_argument("--stories", action="store_true", help="the stories, too: they are played twice")
    again.set_defaults(run=_renew)
    shown = commands.add_parser("show", help="print questions, and what was decided on them")
    shown.add_argument("ids", nargs="+")
    shown.set_defaults(run=_show)
    made = commands.add_parser("answers", help="take plans, searches and simulations of random clusters on record")
    made.set_defaults(run=_answer)
    played = commands.add_parser("stories", help="play the stories anew, and tell which go another way")
    played.add_argument("folder", type=Path)
    played.add_argument("--most", type=int, default=20, help="so many that differ are shown")
    played.add_argument("--workers", type=int, default=1)
    played.set_defaults(run=_stories)
    return parser


def _record(chosen: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as name:
        parts = Path(name)
        _play_tests(chosen.tests, parts, chosen.workers)
        if not chosen.no_days:
            from tools.corpus.days import play  # the experiments, which no comparison needs

            recorder = Recorder()
            play(recorder, chosen.trace)
            write(parts / "days", recorder.questions, recorder.answers, recorder.policies)
        questions = merge_parts(sorted(parts.iterdir()), chosen.folder, PLANNED)
        stories.write(chosen.folder / stories.STORIES, _told(parts))
        for passed_over in parts.glob("*/passed-over.json"):
            print("passed over:", passed_over.read_text())
    seconds = sum(each.seconds for each in questions)
    size = sum(file.stat().st_size for file in chosen.folder.iterdir())
    print(f"{len(questions)} questions in {seconds:.0f} s of planning; {size / 1e6:.1f} MB")
    return 0


def _play_tests(tests: Sequence[str], parts: Path, workers: int, *options: str) -> None:
    """Run tests with the plugin; raises SystemExit where one fails."""
    command = [sys.executable, "-m", "pytest", "-p", "tools.corpus.plugin", "--corpus", str(parts), "-q"]
    command += ["-n", str(workers) if workers > 1 else "0", f"--timeout={SLOW_S}", *options]
    done = subprocess.run([*command, *(f"--ignore={each}" for each in WITHOUT), *tests], cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit("tests fail; nothing was recorded")


def _told(parts: Path) -> stories.Stories:
    """What the parts tell of stories."""
    told = {story: lines for part in parts.glob(f"*/{stories.STORIES}") for story, lines in stories.read(part).items()}
    return {story: lines for story, lines in told.items() if story.startswith(STORIES)}


def _compare(chosen: argparse.Namespace) -> int:
    step = chosen.every * chosen.workers
    shares = [(chosen.folder, step, number * chosen.every, chosen.only) for number in range(chosen.workers)]
    with ProcessPoolExecutor(chosen.workers) as pool:
        parts = list(pool.map(_compared, shares) if chosen.workers > 1 else map(_compared, shares))
    count = sum(part[0] for part in parts)
    differing = [each for part in parts for each in part[1]]
    for name, found in differing[: chosen.most]:
        print("\n    ".join((f"{name}: {len(found)} differences", *found[: chosen.lines])))
    print(f"on {len(differing)} of {count} questions something else is decided")
    return 1 if differing or not count else 0


Share = tuple[Path, int, int, str]
"""A folder, of how many decisions in turn one is taken, the first one taken, and what its source has in its name."""


def _compared(share: Share) -> tuple[int, list[tuple[str, list[str]]]]:
    """How many were planned anew, and those that differ."""
    folder, step, first, only = share
    corpus, count, differing = Corpus(folder), 0, []
    for index, question in enumerate(corpus):
        if index % step != first or only not in question.source:
            continue
        count += 1
        found = corpus.differing(question, PLANNED)
        if found:
            differing.append((question.name, found))
    return count, differing


def _choose(chosen: argparse.Namespace) -> int:
    _take(RECORDED, chosen.folder)
    return 0


def _take(name: str, folder: Path) -> None:
    """What runs planning's lines of a folder becomes a part of the small corpus."""
    from tools.corpus.choosing import choose  # coverage, which nothing else needs

    corpus = Corpus(folder)
    picked = choose(corpus, ASKED[name], [ROOT / "htas" / "planning"], MOST_BYTES[name])
    picked = [msgspec.structs.replace(each, seconds=0.0) for each in picked]
    size = write(SMALL / name, picked, corpus.answers, corpus.documents)
    print(f"{name}: {len(picked)} questions, {size / 1000:.0f} kB")


def _show(chosen: argparse.Namespace) -> int:
    for corpus in (Corpus(SMALL / name) for name in ASKED):
        for question in corpus:
            if question.id in chosen.ids:
                whole = {**brief(question), "policy": corpus.documents[question.policy]}
                print(msgspec.json.format(msgspec.json.encode(whole), indent=1).decode())
                print("\n".join(corpus.answers[question.id]))
    return 0


def _answer(_chosen: argparse.Namespace) -> int:
    for name in answers.COUNT:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), *answers.made(name))
            _take(name, Path(folder))
    return 0


def _renew(chosen: argparse.Namespace) -> int:
    for name, asked in ASKED.items():
        _renew_answers(SMALL / name, asked)
    return _renew_stories() if chosen.stories else 0


def _renew_answers(folder: Path, asked: Asked) -> None:
    """Questions are written as today's code reads them: a field that it does not read is left out, and printed."""
    corpus, lost = Corpus(folder), Counter[str]()
    before = corpus.answers
    corpus.documents = {key: _today(document, Policy, lost) for key, document in corpus.documents.items()}
    questions = [
        msgspec.structs.replace(each, snapshot=_today(each.snapshot, ClusterSnapshot, lost)) for each in corpus
    ]
    now = {each.id: corpus.decided(each, asked) for each in questions}
    changed = [each for each in questions if differences(before[each.id], now[each.id])]
    write(folder, questions, now, corpus.documents)
    for question in changed:
        print("\n    ".join((question.name, *differences(before[question.id], now[question.id]))))
    for field, count in sorted(lost.items()):
        print(f"{field}: left out of {count}, since it is not read any more")
    print(f"{folder.name}: on {len(changed)} of {len(questions)} questions something else is decided")


def _today(document: Document, kind: type[Policy] | type[ClusterSnapshot], lost: Counter[str]) -> Document:
    made = msgspec.convert(document, kind)
    lost.update({re.sub(r"\[\d+\]", "[]", each) for each in lost_fields(document, made, kind.__name__)})
    found: Document = brief(made)
    return found


def _renew_stories() -> int:
    """Written are those that go the same way twice: others depend on a seed or on the time of the wall."""
    kept = SMALL / stories.STORIES
    recorded = stories.read(kept) if kept.exists() else {}
    first, second = (_played(TOLD, 2) for _ in range(2))
    told = {story: lines for story, lines in first.items() if second.get(story) == lines}
    stories.write(kept, told)
    changed = list(stories.differing(recorded, told))
    for story, how in changed:
        print(f"{story}\n    {how}")
    print(f"{len(changed)} of {len(recorded)} stories changed; there are {len(told)}")
    return 0


def _played(tests: Sequence[str], workers: int) -> stories.Stories:
    """What is told now."""
    with tempfile.TemporaryDirectory() as name:
        _play_tests(tests, Path(name), workers, "--only-stories")
        return _told(Path(name))


def _stories(chosen: argparse.Namespace) -> int:
    recorded = stories.read(chosen.folder / stories.STORIES)
    now = _played(STORIES, chosen.workers)
    differing = list(stories.differing(recorded, now))
    for story, how in differing[: chosen.most]:
        print(f"{story}\n    {how}")
    print(f"{len(differing)} of {len(recorded)} stories go another way")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
