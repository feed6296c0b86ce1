"""`htas`: the commands."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import yaml

import htas
from htas.cli import cost as costs
from htas.cli import experiment as experiments
from htas.cli import history as past
from htas.cli import reports
from htas.cli import simulate as simulations
from htas.cli import store_commands as stores
from htas.cli.console import InputError, escaped, instant_of, told, warn
from htas.cli.console import err as stderr
from htas.cli.console import out as stdout
from htas.cli.cost import CostBy
from htas.cli.explain import explain_node, explain_pod
from htas.cli.handback_command import handback
from htas.cli.history import note_unshipped
from htas.cli.options import Config
from htas.cli.plan_view import plan_view
from htas.cli.planning import plan_of, snapshot_of
from htas.cli.simulate import SimulationForm
from htas.cli.tables import Export, print_lines
from htas.config.loader import load_configuration
from htas.config.migration_files import unseen_files
from htas.model.plan_document import plan_document
from htas.model.policy import MigrationMethod
from htas.profiler.accounts import Window

app = typer.Typer(
    name="htas",
    help="Packs a Kubernetes cluster, buys the cheapest machines for the rest, gives back what is not worth its price.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
explain_app = typer.Typer(help="Why a pod waits, or a node stays.", no_args_is_help=True)
app.add_typer(explain_app, name="explain")
migrate_app = typer.Typer(help="Move what runs, and lose nothing of it.", no_args_is_help=True)
app.add_typer(migrate_app, name="migrate")
app.add_typer(stores.app, name="store")
app.add_typer(experiments.app, name="experiment")

Dump = Annotated[
    Path | None,
    typer.Option("--from", help="A dump: kubectl get nodes,pods,… -A -o json. Else the cluster as it is now."),
]
At = Annotated[str | None, typer.Option("--at", help="The dump's present (ISO 8601); else the latest instant in it.")]
Steady = Annotated[
    bool, typer.Option("--steady", help="As if the cluster had been like this long enough for every cleaning rule.")
]


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def _version(wanted: bool) -> None:
    if wanted:
        stdout.print(f"htas {htas.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


@app.command()
def plan(
    config: Config,
    dump: Dump = None,
    form: Annotated[Form, typer.Option("-o", "--output", help="How to print the plan.")] = Form.TABLE,
    at: At = None,
    steady: Steady = False,
) -> None:
    """Print what htas would do, and change nothing."""
    with told():
        loaded = load_configuration(config)
        made = plan_of(loaded, snapshot_of(loaded, dump, at, steady))
    match form:
        case Form.TABLE:
            stdout.print(plan_view(made))
        case Form.JSON:
            typer.echo(msgspec.json.format(msgspec.json.encode(plan_document(made)), indent=2))
        case Form.YAML:
            typer.echo(yaml.safe_dump(plan_document(made), sort_keys=False), nl=False)


@app.command()
def optimize(
    config: Config,
    dump: Dump = None,
    budget: Annotated[str | None, typer.Option("--budget", help="Time for the search, such as 10s.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Threads of the search.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Another order of search.")] = 0,
    form: Annotated[Form, typer.Option("-o", "--output", help="How to print what was found.")] = Form.TABLE,
    at: At = None,
) -> None:
    """Search for a better placement of what runs and waits, and print it; nothing is changed."""
    from htas.cli import optimize as optimum

    with told():
        loaded = load_configuration(config)
        snapshot = snapshot_of(loaded, dump, at, False)
        found, took_s = optimum.search(loaded, snapshot, budget, workers, seed)
    match form:
        case Form.TABLE:
            stdout.print(optimum.optimum_view(found, took_s, snapshot))
        case Form.JSON:
            typer.echo(msgspec.json.format(msgspec.json.encode(optimum.document(found, took_s)), indent=2))
        case Form.YAML:
            typer.echo(yaml.safe_dump(optimum.document(found, took_s), sort_keys=False), nl=False)


@explain_app.command("pod")
def explain_a_pod(name: str, config: Config, dump: Dump = None, at: At = None, steady: Steady = False) -> None:
    """Why a pod is where it is, or waits."""
    with told():
        loaded = load_configuration(config)
        snapshot = snapshot_of(loaded, dump, at, steady)
        lines = explain_pod(name, snapshot, plan_of(loaded, snapshot), loaded.policy)
    typer.echo("\n".join(lines))


@explain_app.command("node")
def explain_a_node(name: str, config: Config, dump: Dump = None, at: At = None, steady: Steady = False) -> None:
    """Why a node stays, or goes."""
    with told():
        loaded = load_configuration(config)
        snapshot = snapshot_of(loaded, dump, at, steady)
        lines = explain_node(name, snapshot, plan_of(loaded, snapshot), loaded.policy)
    typer.echo("\n".join(lines))


@migrate_app.command("pod")
def migrate_pod(
    name: Annotated[str, typer.Argument(help="namespace/name; in namespace default its name is enough.")],
    config: Config,
    to: Annotated[str, typer.Option("--to", help="The node that it is to run on.")],
    method: Annotated[
        MigrationMethod | None, typer.Option("--method", help="How; else as its node group moves pods.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="The daemon that leads; else http.listen.")] = None,
    token_file: Annotated[Path | None, typer.Option("--token-file", help="Its token; else http.tokenFile.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Watch the move until it is over.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Even a pod that its owner wishes to stay.")] = False,
) -> None:
    """Move a running pod to another node with its progress, or say why not."""
    from htas.cli.migrate import asker_of, failed, line_of

    with told():
        asker = asker_of(load_configuration(config), url, token_file)
        last = None
        for last in asker.move(name, to, method, watch=wait, force=force):
            typer.echo(line_of(last))
    if last is not None and failed(last):
        raise typer.Exit(1)


@app.command()
def check(
    config: Config,
    live: Annotated[
        bool,
        typer.Option("--live", help="Ask cloud and cluster, too: credential, image, flavours, nodes of the edge …"),
    ] = False,
) -> None:
    """Check a configuration and its price file; every mistake is told at once."""
    with told():
        loaded = load_configuration(config)
        problems = reports.cloud_problems_of(loaded, live)
        if not problems:
            stdout.print(reports.configuration_view(loaded))
    for empty in reports.empty_groups_of(loaded) if live else ():
        warn(empty)
    for unseen in unseen_files(loaded.settings.migration, loaded.path):
        stderr.print(f"[bold yellow]file[/] {escaped(f'{unseen.where}: {unseen.what}')}", soft_wrap=True)
    for problem in problems:
        stderr.print(f"[bold yellow]cloud[/] {escaped(problem)}", soft_wrap=True)
    if problems:
        raise typer.Exit(1)


@app.command()
def flavours(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="The configuration file.")] = None,
    cloud: Annotated[str | None, typer.Option("--cloud", help="An entry of clouds.yaml; else the configured.")] = None,
    clouds_file: Annotated[Path | None, typer.Option("--clouds-file", help="That file, where it is elsewhere.")] = None,
    region: Annotated[str | None, typer.Option("--region", help="A region of that cloud.")] = None,
    write: Annotated[Path | None, typer.Option("--write", help="Write a first price file there.")] = None,
    per_core: Annotated[str | None, typer.Option("--per-core", help="For --write: a core's price an hour.")] = None,
    per_gib: Annotated[str | None, typer.Option("--per-gib", help="For --write: a GiB's price an hour.")] = None,
    form: Annotated[Form, typer.Option("-o", "--output", help="How to print them.")] = Form.TABLE,
) -> None:
    """What can be bought: the price file beside the cloud's own flavours, and what is never worth its price."""
    from htas.cli.flavours import Question, flavours_json, flavours_view, rows_of, write_price_file

    with told():
        catalogue, sizes = Question(config, cloud, clouds_file, region).answer()
        if write is not None:
            stdout.print(write_price_file(write, catalogue, sizes, per_core, per_gib), soft_wrap=True)
            return
    rows, currency = rows_of(catalogue, sizes), catalogue.currency if catalogue is not None else "-"
    match form:
        case Form.TABLE:
            stdout.print(flavours_view(rows, currency))
        case Form.JSON:
            typer.echo(msgspec.json.format(msgspec.json.encode(flavours_json(rows, currency)), indent=2))
        case Form.YAML:
            typer.echo(yaml.safe_dump(flavours_json(rows, currency), sort_keys=False), nl=False)


@app.command()
def simulate(
    dump: Annotated[Path, typer.Option("--from", help="A dump: kubectl get nodes,pods,pdb,… -A -o json.")],
    flavours: Annotated[Path | None, typer.Option("--flavours", help="A price file: what can be bought.")] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Groups, limits and rules; else none.")] = None,
    at: At = None,
    as_annotated: Annotated[
        bool, typer.Option("--as-annotated", help="Only move services that have opted in; else all are taken to.")
    ] = False,
    form: Annotated[SimulationForm, typer.Option("-o", "--output", help="How to print it.")] = SimulationForm.TABLE,
) -> None:
    """What any cluster would cost: now, packed, consolidated; what is in the way of less; which flavours to offer."""
    from htas.cli.simulate_view import simulation_view

    with told():
        answer = simulations.simulate(dump, flavours, config, at, as_annotated)
    match form:
        case SimulationForm.TABLE:
            stdout.print(simulation_view(answer, stdout.width))
        case SimulationForm.JSON:
            typer.echo(msgspec.json.format(msgspec.json.encode(simulations.document(answer)), indent=2))
        case SimulationForm.CSV:
            print_lines(simulations.lines(answer), simulations.SimulationLine, Export.CSV)
        case SimulationForm.YAML:
            typer.echo(yaml.safe_dump(simulations.document(answer), sort_keys=False), nl=False)


@app.command()
def run(
    config: Config,
    for_s: Annotated[float | None, typer.Option("--for", help="End after so many real seconds.")] = None,
) -> None:
    """Run the daemon until it is told to end (SIGTERM or Ctrl-C)."""
    from htas.cli.running import run_daemon  # the scheduler is loaded by this command alone

    with told():
        run_daemon(load_configuration(config), for_s)


app.command()(handback)


@app.command()
def agent(
    registry: Annotated[str, typer.Option("--registry", help="https://HOST[:PORT], where checkpoints are pushed to.")],
    token_file: Annotated[Path, typer.Option("--token-file", help="What those who ask must know.")],
    repository: Annotated[str, typer.Option("--repository", help="In the registry.")] = "htas",
    listen: Annotated[str, typer.Option("--listen", help="[HOST]:PORT.")] = ":10270",
    credentials_file: Annotated[Path | None, typer.Option("--credentials-file", help="One line user:password.")] = None,
    ca_file: Annotated[Path | None, typer.Option("--ca-file", help="Who signed its certificate.")] = None,
    directory: Annotated[Path, typer.Option("--directory", help="Where the kubelet writes checkpoints.")] = Path(
        "/var/lib/kubelet/checkpoints"
    ),
) -> None:
    """Push checkpoints of this node to a registry, for those who know the token (migration.transfer: registry)."""
    from htas.adapters.checkpoint.oci_registry import OciRegistry
    from htas.cli.agent import serve

    with told():
        there = OciRegistry(registry, repository, str(credentials_file or ""), str(ca_file or ""))
        serve(listen, token_file, there, directory)


@app.command()
def sandbox(
    config: Config,
    socket: Annotated[Path, typer.Option("--socket", help="Where the world listens (a Unix socket).")],
) -> None:
    """Run a sandbox world in a process of its own, for daemons to come and go."""
    from htas.cli.running import run_world

    with told():
        run_world(load_configuration(config), socket)


@app.command()
def demo(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Not the demo's own configuration.")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Play an openb trace instead of the day.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Play the trace sample that comes with htas.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Another day of the same kind.")] = 1,
    hours: Annotated[float, typer.Option("--hours", min=0.1, max=24 * 31, help="How much of the day to play.")] = 24.0,
    seconds: Annotated[float, typer.Option("--seconds", min=0, max=86_400, help="Real time for the day.")] = 60.0,
) -> None:
    """Play a day of mixed work in the sandbox and show what it costs."""
    from htas.cli.demo import DemoOptions, play

    with told():
        play(DemoOptions(config, trace, sample, seed, hours, seconds))


@app.command()
def top(
    config: Config,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on looking.")] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="As last written to the store; asks nobody.")] = False,
) -> None:
    """The cluster now (of a sandbox within a daemon: as that last saw it): nodes, utilisation, queue, price."""
    with told():
        loaded = load_configuration(config)
        if recorded:
            stdout.print(reports.recorded_view(loaded))
        else:
            reports.top(loaded, watch)


@app.command()
def cost(
    config: Config,
    by: Annotated[CostBy, typer.Option("--by", help="What to split the sum by.")] = CostBy.GROUP,
    against: Annotated[
        str | None,
        typer.Option("--against", help='Beside another way: "3 m1.large", "homogeneous [FLAVOUR]", "peak [FLAVOUR]".'),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="From an instant or day on (ISO 8601).")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Until before an instant or day.")] = None,
    form: Annotated[Export, typer.Option("-o", "--output", help="How to print it.")] = Export.TABLE,
) -> None:
    """What was spent, exactly: on what, or for whom."""
    with told():
        window = Window(_instant(since, "--since", 0.0), _instant(until, "--until", math.inf))
        if window.since >= window.until:
            raise InputError("--since: is not before --until; there is nothing between them")
        if against is not None and form is not Export.TABLE:
            raise InputError("--against: is told beside a table; leave out --output")
        loaded = load_configuration(config)
        note_unshipped(loaded)
        books = costs.books_of(loaded, window)
        if form is Export.TABLE:
            stdout.print(costs.cost_view(books, by, against))
        else:
            print_lines(costs.cost_lines(books, by), costs.CostLine, form)


@app.command()
def history(
    config: Config,
    verb: Annotated[
        str | None,
        typer.Option("--verb", help="Only this: launch, drain, release, bind, evict, moved, suggest, suggested …"),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10**9, help="Of the newest so many cycles.")] = 100,
    since: Annotated[str | None, typer.Option("--since", help="Only from an instant on (ISO 8601).")] = None,
    node: Annotated[str | None, typer.Option("--node", help="What the profiler wrote of one node instead.")] = None,
    cycles: Annotated[bool, typer.Option("--cycles", help="With csv or jsonl: one line a cycle instead.")] = False,
    form: Annotated[Export, typer.Option("-o", "--output", help="How to print it.")] = Export.TABLE,
) -> None:
    """What was done when, why, and what it saved."""
    with told():
        loaded, start = load_configuration(config), _instant(since, "--since", 0.0)
        note_unshipped(loaded)
        if node is not None:
            if form is not Export.TABLE:
                raise InputError("--node: is told as a table; leave out --output")
            stdout.print(past.node_view(loaded, node))
        elif cycles:
            rows = past.cycle_lines(loaded, limit, start)
            print_lines(rows, past.CycleLine, Export.JSONL if form is Export.TABLE else form)
        else:
            found = past.history_entries(loaded, verb, limit, start)
            if form is Export.TABLE:
                stdout.print(past.history_view(found, loaded.policy.catalogue.currency))
            else:
                print_lines(past.entry_lines(found), past.EntryLine, form)


@app.command()
def replay(
    config: Config,
    record: Annotated[int, typer.Argument(min=1, max=10**15, help="A cycle's number.")],
) -> None:
    """Plan a recorded cycle again, offline, and show what would be different now."""
    with told():
        is_same = past.replay(load_configuration(config), record)
    if not is_same:
        raise typer.Exit(1)


def _instant(text: str | None, option: str, default: float) -> float:
    return instant_of(text, option) if text is not None else default


def main() -> None:
    app()


if __name__ == "__main__":
    main()
