"""Where `plan` and `explain` get their snapshot: a dump, or the live cluster. Nothing is changed in either case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from htas.adapters.kubernetes.dump import COMMAND, Dump, DumpError, read_whole
from htas.adapters.kubernetes.dump_file import STDIN, read_bytes
from htas.adapters.kubernetes.gaps import ALL, lost_nodes, one_namespace
from htas.cli.console import InputError, instant_of, warn
from htas.cli.recognising import guesses, recognised_in, refuse_types_without_dump
from htas.config.loader import Loaded
from htas.daemon.loops.cycle import REMEMBERED_RUNS
from htas.daemon.recommend.in_charge import is_in_charge_of, policy_in_charge
from htas.daemon.recommend.kubernetes import present_cluster
from htas.daemon.wiring.sandbox_daemon import sandbox_daemon
from htas.daemon.wiring.stores import has_store, reading_store
from htas.documents.words import counted, of_unstated_storage
from htas.execution.claims_seen import claims_seen
from htas.model.nodes import INSTANCE_TYPE_LABEL, Node
from htas.model.plan import Plan
from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot, Memory, Problem
from htas.planning.cluster.local_storage import unstated_storage
from htas.planning.cluster.machines import learned_allocatable
from htas.planning.cluster.offered import capped_view
from htas.planning.namespaces import pins
from htas.planning.place.edge_present import empty_groups
from htas.planning.planner import plan
from htas.ports import HTASError
from htas.profiler.run_lengths import LearnedRunLengths

DOUBTED = "do not trust these figures"
"""How an answer begins that is worked out from half a dump."""


def snapshot_of(
    loaded: Loaded, dump: Path | None, at: str | None, steady: bool, types: Sequence[str] = ()
) -> ClusterSnapshot:
    """The snapshot to plan on, what is odd about it told to stderr.

    `steady`: as if the cluster had been like this for long enough for every rule. `types`: of what flavour nodes of a
    dump are, where they do not tell.
    """
    return snapshot_and_ended(loaded, dump, at, steady, types)[0]


def snapshot_and_ended(
    loaded: Loaded, dump: Path | None, at: str | None, steady: bool, types: Sequence[str] = ()
) -> tuple[ClusterSnapshot, Mapping[str, str]]:
    """Likewise, with the phases of a dump's pods that have ended, by namespace/name: no plan has them."""
    refuse_types_without_dump(types, dump)
    snapshot, ended = (_live(loaded), dict[str, str]()) if dump is None else _dumped(loaded, dump, at, types)
    for empty in empty_groups(snapshot.cluster.nodes, loaded.policy):
        warn(empty)
    snapshot = _with_pins_that_count(snapshot, loaded.policy)
    _warn_of_storage(snapshot, loaded.policy)
    if steady:
        memory = Memory.of_long_ago(snapshot.cluster.nodes, snapshot.taken_at)
        snapshot = msgspec.structs.replace(snapshot, memory=memory)
    return snapshot, ended


def _with_pins_that_count(snapshot: ClusterSnapshot, policy: Policy) -> ClusterSnapshot:
    """As the daemon observes it: pins beyond their namespace's limits are passed over, and told."""
    view = pins.within_limits(snapshot.cluster, policy, snapshot.taken_at)
    _warn(view.problems[len(snapshot.cluster.problems) :])
    return msgspec.structs.replace(snapshot, cluster=view)


def _live(loaded: Loaded) -> ClusterSnapshot:
    """The cluster as it is now. Objects that cannot be used are told, and left out as the daemon leaves them out."""
    setting = loaded.sandbox
    if setting is None:
        snapshot = _as_learned(loaded, present_cluster(loaded)[0])
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


def _dumped(
    loaded: Loaded, path: Path, at: str | None, types: Sequence[str]
) -> tuple[ClusterSnapshot, Mapping[str, str]]:
    dump, recognised = recognised_in(read_cluster(path), loaded.policy.catalogue, types)
    for line in told_gaps(dump, path):
        warn(line)
    for line in guesses(recognised):
        warn(line)
    view = dump.view
    _warn_of_unpriced(view.nodes, loaded.policy)
    now = instant_in(at, dump)
    claims = claims_seen(view.nodes, (), loaded.policy, now)
    view = capped_view(view, claims, loaded.policy.catalogue)
    _warn(view.problems[len(dump.view.problems) :])
    return ClusterSnapshot(now, view, claims=claims, expects_more=False), dump.ended


def _warn_of_storage(snapshot: ClusterSnapshot, policy: Policy) -> None:
    """A plan buys no flavour of which nobody says what local disk it has for pods that ask for some."""
    learned = learned_allocatable(snapshot, policy.catalogue)
    missing = unstated_storage(policy.catalogue, snapshot.cluster.pods, learned)
    if missing.pods:
        warn(of_unstated_storage(missing))


def _warn_of_unpriced(nodes: Iterable[Node], policy: Policy) -> None:
    """Their bill would be told as nothing."""
    unpriced = _unpriced(nodes, policy)
    if unpriced:
        count, such_as = counted(len(unpriced), "node"), unpriced[0].name
        warn(
            f"{count} without a known price, such as {such_as}, counted as free: the label {INSTANCE_TYPE_LABEL}"
            " names no flavour of the configuration with a price for the node's zone, and none is as large (--type"
            " 'PATTERN=FLAVOUR' names it)"
        )


def _unpriced(nodes: Iterable[Node], policy: Policy) -> list[Node]:
    return [
        node
        for node in nodes
        if not (policy.price_of(node) is not None or policy.is_given(node) or node.is_control_plane)
    ]


def without_price(loaded: Loaded, snapshot: ClusterSnapshot) -> int:
    """How many nodes are counted as free since nobody knows what they cost."""
    return len(_unpriced(snapshot.cluster.nodes, loaded.policy))


def policy_for(loaded: Loaded, snapshot: ClusterSnapshot) -> Policy:
    """What a snapshot is planned by: where HTAS only recommends, nodes are taken for its own."""
    setting = loaded.settings
    if setting.mode != "recommend":
        return loaded.policy
    charge = setting.recommend.model()
    ours = [node for node in snapshot.cluster.nodes if is_in_charge_of(node, loaded.policy, charge)]
    return policy_in_charge(loaded.policy, ours)


def plan_of(loaded: Loaded, snapshot: ClusterSnapshot) -> Plan:
    return plan(snapshot, policy_for(loaded, snapshot), snapshot.taken_at)


def read_cluster(path: Path) -> Dump:
    """A dump; what is passed over in it, such as a wrong annotation, is told to stderr.

    Raises InputError with everything that cannot be used.
    """
    try:
        dump = read_whole(read_bytes(path), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except DumpError as error:
        raise InputError(str(error)) from None
    view = dump.view
    faults = [problem for problem in view.problems if not problem.is_doubt]
    if faults:
        raise InputError("\n".join(f"{problem.where}: {problem.what}" for problem in faults))
    if not view.nodes and not view.pods:
        there = f"{', '.join(dump.other_kinds)} and " if dump.other_kinds else ""
        raise InputError(f"{path}: holds {there}neither nodes nor pods; write it with: {COMMAND}")
    _warn(view.problems)
    return dump


def told_gaps(dump: Dump, path: Path) -> list[str]:
    """All that a dump lacks, what is assumed for it, and the command that gives the rest."""
    if not dump.gaps:
        return []
    told = [f"{DOUBTED}: {gap.doubt}" for gap in dump.gaps if gap.doubt]
    told += [f"{path} has {gap.lacks}: {gap.assumed}" for gap in dump.gaps]
    return [*told, the_rest_told(dump, path)] if the_rest(dump, path) else told


def doubts_of(snapshot: ClusterSnapshot) -> list[str]:
    """Why no figure of a plan for this dump is to be believed."""
    found = one_namespace(snapshot.cluster), lost_nodes(snapshot.cluster)
    return [gap.doubt for gap in found if gap is not None and gap.doubt]


def the_rest_told(dump: Dump, path: Path) -> str:
    command = the_rest(dump, path)
    return f"{'Write it again' if command.startswith(COMMAND) else 'Add the rest'}: {command}"


def the_rest(dump: Dump, path: Path) -> str:
    """The command that adds to a dump what it lacks: one JSON object after another is a dump, too."""
    resources = dict.fromkeys(name for gap in dump.gaps for name in gap.resources)
    if not resources:
        return ""
    if resources.keys() >= set(ALL.split(",")):
        return COMMAND if str(path) == STDIN else f"{COMMAND} > {path}"
    where = "" if str(path) == STDIN or path.suffix == ".gz" else f" >> {path}"
    return f"kubectl get {','.join(resources)} -A -o json{where}"


def instant_in(at: str | None, dump: Dump) -> float:
    """The dump's present: as stated, or the newest instant in it, so that the same dump gives the same plan."""
    return instant_of(at, "--at") if at is not None else dump.newest.at
