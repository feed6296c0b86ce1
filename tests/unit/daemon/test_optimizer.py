"""The optimiser's process: it answers, or what became of it is told; and it never outlives who asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path

import msgspec
import pytest

from htas.daemon.loops.optimizer import InlineOptimizer, Optimizer, ProcessOptimizer, SearchResult
from htas.model.policy import Engine, Fallback, Limits, Policy
from htas.model.snapshot import ClusterSnapshot
from tests.builders import make_node, make_pod, make_policy, make_snapshot, running
from tests.waiting import until

ROOT = Path(__file__).parents[3]


def policy(**fallback: object) -> Policy:
    return make_policy(limits=Limits(max_nodes=0), fallback=Fallback(**fallback))  # type: ignore[arg-type] # its fields


def figure_1() -> ClusterSnapshot:
    """Two nodes of 4, each with a pod of 2, and a third pod of 3."""
    movable = {"disruption": {"htas.io/migrate": "true"}}
    pods = [running(make_pod(name, "2", **movable), node) for name, node in (("one", "a"), ("two", "b"))]
    return make_snapshot([make_node("a"), make_node("b")], [*pods, make_pod("three", "3")])


@pytest.fixture
def optimizer() -> Iterator[ProcessOptimizer]:
    with closing(ProcessOptimizer()) as made:
        yield made


def answered(optimizer: Optimizer) -> SearchResult:
    until(lambda: optimizer.has_answer, 60)
    answer = optimizer.answer()
    assert answer is not None
    assert (optimizer.has_answer, optimizer.answer()) == (False, None)
    until(lambda: not optimizer.is_busy)
    return answer


def test_a_search_is_made_in_another_process(optimizer: ProcessOptimizer) -> None:
    optimizer.begin(figure_1(), policy(budget_s=5.0))
    assert optimizer.is_busy
    found = answered(optimizer).found
    assert found is not None
    assert (found.is_better, len(found.moves), [seat.pod for seat in found.seats]) == (True, 1, ["default/three"])
    assert not [child for child in active_children() if child.name == "htas optimizer"]


LOADED_FIRST = """
import os, sys
from multiprocessing import Pipe
from htas.daemon.loops import optimizer

def stopwatch():
    seen.append("htas.planning.solvers.placement.cp_sat" in sys.modules)
    return 0.0

seen = []
optimizer.monotonic = stopwatch
ours, theirs = Pipe()
ours.send_bytes(sys.stdin.buffer.read())
optimizer.serve(theirs, os.getppid(), optimizer.MOST_BYTES)
print(seen[0], ours.recv_bytes().decode())
"""


def test_its_time_begins_once_its_solver_is_loaded() -> None:
    """A process for each search loads CP-SAT each time: a second on crowded cores, once taken off `fallback.budget`."""
    question = msgspec.json.encode((figure_1(), policy(engine=Engine.CP_SAT)))
    done = subprocess.run([sys.executable, "-c", LOADED_FIRST], input=question, capture_output=True, check=True)
    was_loaded, answer = done.stdout.split(b" ", 1)
    found, problem = msgspec.json.decode(answer)
    assert (was_loaded, len(found["seats"]), problem) == (b"True", 1, "")


def test_in_line_the_same_is_found() -> None:
    inline = InlineOptimizer()
    inline.begin(figure_1(), policy())
    first = inline.answer()
    inline.begin(figure_1(), policy())
    assert first is not None
    assert first == inline.answer()
    assert first.found is not None
    assert len(first.found.seats) == 1


def test_a_process_that_is_killed_is_an_answer_without_a_rearrangement(optimizer: ProcessOptimizer) -> None:
    optimizer.begin(figure_1(), policy())
    until(lambda: [child for child in active_children() if child.name == "htas optimizer" and child.pid])
    [child] = [child for child in active_children() if child.name == "htas optimizer"]
    os.kill(child.pid or 0, signal.SIGKILL)
    answer = answered(optimizer)
    assert answer.found is None
    assert answer.problem == "the optimiser ended without an answer (exit code -9)"


def test_a_search_that_takes_too_long_is_ended() -> None:
    with closing(ProcessOptimizer(starting_s=0.01)) as optimizer:
        optimizer.begin(figure_1(), policy(budget_s=0.01))
        assert answered(optimizer).problem == "no answer within 0.02 s"
        assert not [child for child in active_children() if child.name == "htas optimizer"]


def test_a_process_that_never_reads_its_question_is_ended() -> None:
    """The question is larger than what a pipe holds (64 KiB)."""
    pods = tuple(make_pod(f"p{i}", "1", "1Gi", priority=1) for i in range(5000))
    snapshot = figure_1()
    large = msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, pods=pods))
    with closing(ProcessOptimizer(starting_s=1.0)) as optimizer:
        optimizer.begin(large, policy(budget_s=0.5))
        until(lambda: [child for child in active_children() if child.name == "htas optimizer" and child.pid])
        [child] = [child for child in active_children() if child.name == "htas optimizer"]
        os.kill(child.pid or 0, signal.SIGSTOP)
        assert answered(optimizer).problem == "no answer within 1.5 s"


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="Linux alone has it")
def test_where_memory_runs_out_the_search_is_ended_first(optimizer: ProcessOptimizer) -> None:
    optimizer.begin(figure_1(), policy(budget_s=5.0))
    until(lambda: [child for child in active_children() if child.name == "htas optimizer" and child.pid])
    [child] = [child for child in active_children() if child.name == "htas optimizer"]
    score = Path(f"/proc/{child.pid}/oom_score_adj")
    until(lambda: score.read_text().strip() == "1000")
    assert answered(optimizer).found is not None


def test_a_question_it_cannot_read_is_a_failure_with_its_reason(optimizer: ProcessOptimizer) -> None:
    broken = msgspec.structs.replace(figure_1(), taken_at="today")
    optimizer.begin(broken, policy())
    assert "the optimiser" in answered(optimizer).problem


def test_at_the_end_no_search_is_left() -> None:
    optimizer = ProcessOptimizer()
    optimizer.begin(figure_1(), policy())
    until(lambda: [child for child in active_children() if child.name == "htas optimizer" and child.pid])
    optimizer.close()
    until(lambda: not [child for child in active_children() if child.name == "htas optimizer"])
    assert optimizer.answer() is None


ASKING = """
import sys, time
from multiprocessing import active_children
from htas.daemon.loops.optimizer import ProcessOptimizer
from tests.unit.daemon.test_optimizer import figure_1, policy

if __name__ == "__main__":
    optimizer = ProcessOptimizer()
    optimizer.begin(figure_1(), policy(budget_s=60.0))
    while not [child for child in active_children() if child.pid]:
        pass
    print(active_children()[0].pid, flush=True)
    sys.stdin.read()
"""


def test_it_ends_with_a_daemon_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "asking.py"
    script.write_text(ASKING)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True
    ) as asking:
        assert asking.stdout is not None
        child = int(asking.stdout.readline())
        asking.kill()
        asking.wait(10)
        until(lambda: not _is_alive(child), 30)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_search_that_wants_too_much_memory_comes_to_nothing_and_the_next_is_made(optimizer: ProcessOptimizer) -> None:
    with closing(ProcessOptimizer(most_bytes=2**26)) as narrow:
        narrow.begin(figure_1(), policy(budget_s=5.0))
        answer = answered(narrow)
    assert answer.found is None
    assert "the optimiser" in answer.problem
    optimizer.begin(figure_1(), policy(budget_s=5.0))
    assert answered(optimizer).found is not None
