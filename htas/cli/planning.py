"""Where `plan` and `explain` get their snapshot: a dump, or the live cluster. Nothing is changed in either case."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from htas.adapters.kubernetes.dump import DumpError, read_dump
from htas.cli.console import InputError, instant_of, warn
from htas.config.loader import Loaded
from htas.daemon.cycle import REMEMBERED_RUNS
from htas.daemon.kubernetes_wiring import live_snapshot
from htas.daemon.wiring import has_store, reading_store, sandbox_daemon
from htas.execution.claims_seen import claims_seen
from htas.model.plan import Plan
from htas.model.snapshot import ClusterSnapshot, ClusterView, Memory, Problem
from htas.planning.edge.present import empty_groups
from htas.planning.planner import plan
from htas.ports import HTASError
from htas.profiler.run_lengths import LearnedRunLengths

LONG_AGO_S = 10 * 365 * 86_400.0


def snapshot_of(loaded: Loaded, dump: Path | None, at: str | None, steady: bool) -> ClusterSnapshot:
    """The snapshot to plan on, what is odd about it told to stderr.

    `steady`: as if the cluster had been like this for long enough for every rule.
    """
    snapshot = _live(loaded) if dump is None else _dumped(loaded, dump, at)
    for empty in empty_groups(snapshot.cluster.nodes, loaded.policy):
        warn(empty)
    return _steady(snapshot) if steady else snapshot


def _live(loaded: Loaded) -> ClusterSnapshot:
    """The cluster as it is now. Objects that cannot be used are told, and left out as the daemon leaves them out."""
    setting = loaded.sandbox
    if setting is None:
        snapshot = _as_learned(loaded, live_snapshot(loaded))
        _warn(snapshot.cluster.problems)
        return snapshot
    if setting.address is None:
        raise InputError("--from: name a dump, or a sandbox that runs (provider.sandbox.address)")
    with sandbox_daemon(loaded, setting) as daemon:
        return _as_learned(loaded, daemon.observe())


def _warn(problems: Iterable[Problem]) -> None:
    for problem in problems:
        warn(f"{problem.where}: {problem.what}")


def _as_learned(loaded: Loaded, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """With the run lengths that the daemon learned, where its store can be read from here."""
    if not has_store(loaded):
        return snapshot
    learned = LearnedRunLengths(loaded.policy.run_lengths)
    try:
        with reading_store(loaded) as store:
            learned.learn(store.runs(limit=REMEMBERED_RUNS))
    except HTASError as error:
        warn(f"planned without learned run lengths: {error}")
        return snapshot
    view = msgspec.structs.replace(snapshot.cluster, pods=learned.applied(snapshot.cluster.pods))
    return msgspec.structs.replace(snapshot, cluster=view)


def _dumped(loaded: Loaded, dump: Path, at: str | None) -> ClusterSnapshot:
    view = read_view(dump)
    claims = claims_seen(view.nodes, (), loaded.policy)
    return ClusterSnapshot(instant_in(at, view), view, claims=claims, expects_more=False)


def plan_of(loaded: Loaded, snapshot: ClusterSnapshot) -> Plan:
    return plan(snapshot, loaded.policy, snapshot.taken_at)


def read_view(path: Path) -> ClusterView:
    """The view of a dump; what is passed over in it, such as a wrong annotation, is told to stderr.

    Raises InputError with everything that cannot be used.
    """
    try:
        view = read_dump(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except DumpError as error:
        raise InputError(str(error)) from None
    faults = [problem for problem in view.problems if not problem.is_doubt]
    if faults:
        raise InputError("\n".join(f"{problem.where}: {problem.what}" for problem in faults))
    if not view.nodes and not view.pods:
        raise InputError(f"{path}: holds neither nodes nor pods; is it what kubectl get … -o json printed?")
    _warn(view.problems)
    return view


def instant_in(at: str | None, view: ClusterView) -> float:
    """The dump's present: as stated, or the latest instant in it, so that the same dump gives the same plan."""
    if at is not None:
        return instant_of(at, "--at")
    instants = [node.created_at for node in view.nodes]
    for pod in view.pods:
        instants += [pod.created_at, pod.started_at or 0.0]
    return max(instants, default=0.0)


def _steady(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    since = snapshot.taken_at - LONG_AGO_S
    names = {node.name: since for node in snapshot.cluster.nodes}
    return msgspec.structs.replace(snapshot, memory=Memory(names, names, since))
