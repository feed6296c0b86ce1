"""The optimiser beside the cycles: in a process of its own, or in line where time is virtual.

A process, since the solver holds its cores for seconds and a defect in native code must not end the daemon. It is given
the snapshot and the policy as bytes, and answers with bytes.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Event, Thread, Timer
from time import monotonic
from typing import TYPE_CHECKING, Protocol

import msgspec

from htas.daemon.wiring.parent_process import end_with
from htas.model.policy import Policy
from htas.model.rearrangement import Rearrangement
from htas.model.snapshot import ClusterSnapshot

if TYPE_CHECKING:
    from htas.planning.solvers.placement.budget import SearchBudget

STARTING_S = 20.0
"""Beyond its budget a search may take so long: to load the solver (2 s on a quiet machine), read and answer."""


MOST_BYTES = 4 * 2**30
"""Of address space: 5,000 pods on 1,000 nodes take some 1.5 GiB of it, a GiB of that libraries and stacks. Beyond, the
search fails, and neither the daemon nor the machine."""


class SearchResult(msgspec.Struct, frozen=True):
    """What a search came to: a rearrangement, or (`problem`) why there is none."""

    found: Rearrangement | None
    problem: str
    took_s: float


def budget_of(policy: Policy, seed: int = 0) -> SearchBudget:
    """What the configuration allows a search."""
    from htas.planning.solvers.placement.budget import SearchBudget

    fallback = policy.fallback
    return SearchBudget(fallback.budget_s, fallback.workers, seed, fallback.share, fallback.engine)


class Optimizer(Protocol):
    """Searches, one at a time."""

    @property
    def is_busy(self) -> bool:
        """Whether a search is under way, or its answer has not been taken."""
        ...

    @property
    def has_answer(self) -> bool: ...

    def begin(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        """Begin a search. It is told by `is_busy` whether one may be begun."""
        ...

    def answer(self) -> SearchResult | None:
        """The answer, once."""
        ...

    def on_answer(self, wake: Callable[[], None]) -> None:
        """Have `wake` called when there is one, by the thread that has searched."""
        ...

    def close(self) -> None:
        """End a search under way; its answer is nobody's."""
        ...


class InlineOptimizer:
    """Searches at once, in this thread. Work done is counted, not time: the same question has the same answer."""

    def __init__(self) -> None:
        self._answer: SearchResult | None = None

    @property
    def is_busy(self) -> bool:
        return self._answer is not None

    @property
    def has_answer(self) -> bool:
        return self._answer is not None

    def begin(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        from htas.planning.optimize.optimise import optimise  # the solver is loaded where a search is made

        budget = msgspec.structs.replace(budget_of(policy), is_deterministic=True)
        try:
            found = optimise(snapshot, policy, snapshot.taken_at, budget, lambda: 0.0)
            self._answer = SearchResult(found, "", 0.0)
        except Exception as error:  # as in a process of its own: the search came to nothing, the cycle goes on
            self._answer = SearchResult(None, f"the optimiser failed: {error!r}", 0.0)

    def answer(self) -> SearchResult | None:
        answer, self._answer = self._answer, None
        return answer

    def on_answer(self, wake: Callable[[], None]) -> None:
        pass  # it is there when `begin` returns

    def close(self) -> None:
        self._answer = None


class ProcessOptimizer:
    """Searches in a process that ends with its search, when its time is over, and when this process ends.

    `starting_s` is what it may take beside its budget, `most_bytes` how much address space.
    """

    def __init__(self, starting_s: float = STARTING_S, most_bytes: int = MOST_BYTES) -> None:
        self._starting_s = starting_s
        self._most_bytes = most_bytes
        self._thread: Thread | None = None
        self._answer: SearchResult | None = None
        self._pid: int | None = None
        self._is_closed = False
        self._wake: Callable[[], None] = lambda: None

    @property
    def is_busy(self) -> bool:
        return self._answer is not None or (self._thread is not None and self._thread.is_alive())

    @property
    def has_answer(self) -> bool:
        return self._answer is not None

    def begin(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        self._thread = Thread(target=self._search, args=(snapshot, policy), name="optimizer", daemon=True)
        self._thread.start()

    def answer(self) -> SearchResult | None:
        answer, self._answer = self._answer, None
        return answer

    def on_answer(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def close(self) -> None:
        self._is_closed = True
        pid, thread = self._pid, self._thread
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if thread is not None:
            thread.join(5.0)

    def _search(self, snapshot: ClusterSnapshot, policy: Policy) -> None:
        began = monotonic()
        try:
            found, problem = self._ask(snapshot, policy)
        except Exception as error:  # whatever it is: a search that came to nothing
            found, problem = None, f"the optimiser failed: {error!r}"
        if not self._is_closed:
            self._answer = SearchResult(found, problem, monotonic() - began)
            self._wake()

    def _ask(self, snapshot: ClusterSnapshot, policy: Policy) -> tuple[Rearrangement | None, str]:
        context = get_context("spawn")  # a fork would copy locks that other threads hold
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve, args=(theirs, os.getpid(), self._most_bytes), name="htas optimizer", daemon=True
        )
        process.start()
        self._pid = process.pid
        theirs.close()  # so that the end of the process is the end of the pipe
        within_s = policy.fallback.budget_s + self._starting_s
        is_late = Event()
        # A process that does not read would hold the sending for ever: its end is the end of that, too.
        deadline = Timer(within_s, _end_late, (process, is_late))
        deadline.daemon = True
        deadline.start()
        try:
            ours.send_bytes(msgspec.json.encode((snapshot, policy)))
            return self._reply(ours, within_s)
        except (EOFError, OSError):
            process.join(1.0)
            if is_late.is_set():
                return None, f"no answer within {within_s:g} s"
            return None, f"the optimiser ended without an answer (exit code {process.exitcode})"
        finally:
            self._pid = None
            deadline.cancel()
            deadline.join()
            process.kill()
            process.join()
            process.close()
            ours.close()

    def _reply(self, ours: Connection, within_s: float) -> tuple[Rearrangement | None, str]:
        if not wait([ours], within_s):
            return None, f"no answer within {within_s:g} s"
        found, problem = msgspec.json.decode(ours.recv_bytes(), type=tuple[Rearrangement | None, str])
        return found, problem


def _end_late(process: BaseProcess, is_late: Event) -> None:
    is_late.set()
    process.kill()


def serve(connection: Connection, parent: int, most_bytes: int) -> None:
    """The search's process: one question, one answer."""
    from htas.planning.optimize.optimise import optimise
    from htas.planning.solvers.placement.engines import load

    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the daemon's to answer
    end_with(parent)
    with suppress(OSError):  # where memory runs out, the kernel ends this process and not the daemon (Linux)
        Path("/proc/self/oom_score_adj").write_text("1000")
    snapshot, policy = msgspec.json.decode(connection.recv_bytes(), type=tuple[ClusterSnapshot, Policy])
    load(policy.fallback.engine)
    began = monotonic()
    try:
        found = optimise(snapshot, policy, snapshot.taken_at, budget_of(policy), lambda: monotonic() - began)
        answer: tuple[Rearrangement | None, str] = (found, "")
    except MemoryError:
        answer = (None, f"the optimiser would need more than {most_bytes / 2**30:.3g} GiB")
    except Exception as error:
        answer = (None, f"the optimiser failed: {error!r}")
    connection.send_bytes(msgspec.json.encode(answer))
