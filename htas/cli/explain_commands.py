"""`htas explain pod|node`: asked of a daemon, or told from a plan made of a dump or of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from htas.cli.completing import names
from htas.cli.console import exit_on_error, say, warn
from htas.cli.daemon_client import Authority, ServerUrl, TokenFile, asked_instead
from htas.cli.options import At, Config, Dump, Steady, Types, configured

if TYPE_CHECKING:  # the planner is loaded by the command, not by its help
    from htas.config.loader import Loaded
    from htas.model.plan import Plan
    from htas.model.policy import Policy
    from htas.model.snapshot import ClusterSnapshot

    Explain = Callable[[str, ClusterSnapshot, Plan, Policy], list[str]]

app = typer.Typer(help="Explain why a pod is pending, or a node stays.", no_args_is_help=True)


def _explaining(kind: str, explain: Callable[[], Explain], what: str) -> None:
    """Add `htas explain KIND NAME`, which says `what`."""

    def command(
        name: Annotated[str, typer.Argument(autocompletion=names)],
        config: Config = None,
        dump: Dump = None,
        at: At = None,
        steady: Steady = False,
        types: Types = None,
        server: ServerUrl = None,
        token_file: TokenFile = None,
        ca: Authority = None,
    ) -> None:
        from htas.cli.planning import plan_of, policy_for, snapshot_and_ended
        from htas.documents.explain import NotThereError
        from htas.documents.history import Explained

        with exit_on_error():
            asked = asked_instead(server, token_file, ca, dump, at, steady, types)
            if asked is not None:
                lines = asked.get(f"/explain/{kind}", Explained, name=name).lines
            else:
                loaded = configured(config)
                snapshot, ended = snapshot_and_ended(loaded, dump, at, steady, types or ())
                lines = _of_ended(name, kind, ended, snapshot)
                try:
                    lines = lines or explain()(name, snapshot, plan_of(loaded, snapshot), policy_for(loaded, snapshot))
                except NotThereError:
                    lines = _past(kind, name, loaded) if dump is None else []
                    if not lines:
                        raise
        say("\n".join(lines))

    app.command(kind, help=what)(command)


def _of_ended(name: str, kind: str, ended: Mapping[str, str], snapshot: ClusterSnapshot) -> list[str]:
    """Of pods that have ended, where none of that name is still there."""
    if kind != "pod" or any(name in (pod.key, pod.name) for pod in snapshot.cluster.pods):
        return []
    named = [key for key in ended if name in (key, key.partition("/")[2])]
    return [f"{key}: has ended ({ended[key]}): it needs no resources" for key in named]


def _past(kind: str, name: str, loaded: Loaded) -> list[str]:
    """What was decided about what is not there any more, as far as the store can be read here."""
    from htas.daemon.wiring.stores import has_store, reading_store
    from htas.ports import HTASError
    from htas.web.chronicle import Chronicle, past_of
    from htas.web.reports.decisions import REMEMBERED

    chronicle = Chronicle()
    try:
        if has_store(loaded):
            with reading_store(loaded) as store:
                chronicle.remember(store.cycles(limit=REMEMBERED))
    except HTASError as error:
        warn(f"the past cannot be read: {error}")
    return past_of(kind, name, chronicle.decisions())


def _of_pod() -> Explain:
    from htas.documents.explain import explain_pod

    return explain_pod


def _of_node() -> Explain:
    from htas.documents.explain import explain_node

    return explain_node


_explaining("pod", _of_pod, "Why a pod runs where it is, or is pending.")
_explaining("node", _of_node, "Why a node is kept or deleted.")
