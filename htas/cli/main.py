"""`htas`: the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import htas
from htas.cli import explain_commands as explaining
from htas.cli import record_commands as records
from htas.cli import shell_commands as shells
from htas.cli import store_commands as stores
from htas.cli.adopt import adopt
from htas.cli.approve_command import approve
from htas.cli.completing import names
from htas.cli.console import InputError, exit_on_error, labelled, print_as, say, warn
from htas.cli.console import err as stderr
from htas.cli.console import out as stdout
from htas.cli.daemon_client import Authority, ServerUrl, TokenFile, asked_instead
from htas.cli.forms import Export, Form, SimulationForm
from htas.cli.handback_command import handback
from htas.cli.help import arrange
from htas.cli.options import PLACES, VARIABLE, At, Config, Dump, Steady, Types, configured
from htas.model.moves import MigrationMethod

# Modules that a command alone needs are imported within it: `htas --help`, and each tab that completes a command, load
# neither the planner (numpy: 0.1 s) nor a configuration (pydantic: 0.2 s) nor a client of any cloud.

app = typer.Typer(
    name="htas",
    help="A cost-aware node autoscaler and bin-packing scheduler for Kubernetes on OpenStack.",
    epilog=f"Configuration: --config, else ${VARIABLE}, else the first of {', '.join(PLACES)} that exists.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(explaining.app, name="explain")
migrate_app = typer.Typer(help="Migrate a running pod with its progress.", no_args_is_help=True)
app.add_typer(migrate_app, name="migrate")
app.add_typer(stores.app, name="store")


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
    config: Config = None,
    dump: Dump = None,
    form: Annotated[Form, typer.Option("-o", "--output", help="How to print the plan.")] = Form.TABLE,
    at: At = None,
    steady: Steady = False,
    types: Types = None,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    ca: Authority = None,
) -> None:
    """Print what HTAS would do now; change nothing."""
    from htas.cli.plan_view import plan_view
    from htas.cli.planning import doubts_of, plan_of, policy_for, snapshot_of, without_price
    from htas.documents.least import least_after
    from htas.model.plan import Plan
    from htas.model.plan_document import plan_document

    with exit_on_error():
        asked = asked_instead(server, token_file, ca, dump, at, steady, types)
        doubts, unpriced, least = list[str](), 0, None
        if asked is not None:
            made = asked.get("/plan", Plan, form="record")
        else:
            loaded = configured(config)
            snapshot = snapshot_of(loaded, dump, at, steady, types or ())
            made, unpriced = plan_of(loaded, snapshot), without_price(loaded, snapshot)
            least = least_after(snapshot.cluster, made, policy_for(loaded, snapshot))
            doubts = doubts_of(snapshot) if dump is not None else []
    nanos = least.nanos if least is not None else None
    print_as(form, lambda: plan_view(made, doubts, unpriced, least), lambda: plan_document(made, nanos))


@app.command()
def ui(
    dump: Dump = None,
    demo: Annotated[bool, typer.Option("--demo", help="The sandbox's day instead, on virtual time.")] = False,
    recommend: Annotated[
        bool, typer.Option("--recommend", help="Of the demo: HTAS only recommends, on existing nodes.")
    ] = False,
    approve: Annotated[
        bool, typer.Option("--approve", help="Of the demo: disruptions of running pods need your approval.")
    ] = False,
    flavours: Annotated[Path | None, typer.Option("--flavours", help="A price file, for a dump.")] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A configuration, for a dump.")] = None,
    at: At = None,
    hours: Annotated[
        float | None,
        typer.Option(
            "--hours", min=0.1, max=240, help="Of the demo: played at once (10; with --approve until some are pending)."
        ),
    ] = None,
    speed: Annotated[float, typer.Option("--speed", min=0, help="Then so many times real time; 0: it stops.")] = 60.0,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same day.")] = 1,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="On loopback; 0: any that is free.")] = 0,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="Written: a token for commands with --server, while this runs.")
    ] = None,
) -> None:
    """Open the dashboard on a dump or on the demo; contact no cluster."""
    from htas.cli import ui as pages

    with exit_on_error():
        if (dump is None) == (not demo):
            raise InputError("--from: name a dump, or give --demo instead")
        if (recommend or approve) and not demo:
            raise InputError(f"{'--recommend' if recommend else '--approve'}: goes with --demo")
        if recommend and approve:
            raise InputError("--approve: mode recommend asks for no approval; leave out --recommend")
        if demo:
            pages.demo(seed, hours, speed, port, token_file, recommend=recommend, approve=approve)
        elif dump is not None:
            pages.run(pages.seat_of_dump(dump, flavours, config, at), port, token_file)


@app.command()
def optimize(
    config: Config = None,
    dump: Dump = None,
    budget: Annotated[str | None, typer.Option("--budget", help="Time for the search, such as 10s.")] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", help="decomposition, cp-sat or portfolio; else that of the configuration.")
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Threads of the constraint solver.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Another order of search.")] = 0,
    consider: Annotated[
        str, typer.Option("--consider", help="movable: pods that may move; all: what if every pod might.")
    ] = "movable",
    form: Annotated[Form, typer.Option("-o", "--output", help="How to print what was found.")] = Form.TABLE,
    at: At = None,
) -> None:
    """Search for a better placement of running and pending pods, and print it."""
    from htas.cli import optimize as optimum
    from htas.cli.planning import snapshot_of

    with exit_on_error():
        loaded = configured(config)
        snapshot = optimum.considered(loaded, snapshot_of(loaded, dump, at, False), consider)
        found, took_s = optimum.search(loaded, snapshot, budget, engine, workers, seed)
        out = optimum.left_out(loaded, snapshot)
    print_as(
        form,
        lambda: optimum.optimum_view(found, took_s, snapshot, out, consider),
        lambda: optimum.document(found, took_s, snapshot, out, consider),
    )


@migrate_app.command("pod")
def migrate_pod(
    name: Annotated[
        str, typer.Argument(help="namespace/name; in namespace default its name is enough.", autocompletion=names)
    ],
    to: Annotated[str, typer.Option("--to", help="The node that it is to run on.")],
    config: Config = None,
    method: Annotated[
        MigrationMethod | None, typer.Option("--method", help="How; else as its node group moves pods.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="The daemon that leads; else http.listen.")] = None,
    token_file: Annotated[Path | None, typer.Option("--token-file", help="Its token; else http.tokenFile.")] = None,
    ca_file: Annotated[Path | None, typer.Option("--ca-file", help="The CA of its certificate, for https://.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Watch the move until it is over.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Even a pod that opted out of disruption.")] = False,
) -> None:
    """Migrate a running pod to another node with its progress, or print why not."""
    from htas.cli.migrate import asker_of, failed, line_of

    with exit_on_error():
        asker = asker_of(configured(config), url, token_file, ca_file)
        last = None
        for last in asker.move(name, to, method, watch=wait, force=force):
            say(line_of(last))
    if last is not None and failed(last):
        raise typer.Exit(1)


@app.command()
def check(
    config: Config = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Check cloud and cluster, too: credential, image, flavours, nodes of the edge …"),
    ] = False,
) -> None:
    """Check a configuration and its price file; report every mistake at once."""
    from htas.cli import reports
    from htas.config.migration_files import unseen_files

    with exit_on_error():
        loaded = configured(config)
        problems = reports.cloud_problems_of(loaded, live)
        if not problems:
            stdout.print(reports.configuration_view(loaded))
    for odd in (*reports.assumed(loaded), *reports.idle_caps(loaded)):
        warn(odd)
    for empty in reports.empty_groups_of(loaded) if live else ():
        warn(empty)
    for orphan in reports.orphans_of(loaded, live):
        warn(orphan)
    for unseen in unseen_files(loaded.settings.migration, loaded.path):
        stderr.print(labelled("file", f"{unseen.where}: {unseen.what}", "bold yellow"), soft_wrap=True)
    for problem in problems:
        stderr.print(labelled("cloud", problem, "bold yellow"), soft_wrap=True)
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
    """List flavours and prices, compared with the cloud's; name those that never pay."""
    from htas.cli.flavours import Question, flavours_json, flavours_view, rows_of, write_price_file

    with exit_on_error():
        catalogue, sizes = Question(config, cloud, clouds_file, region).answer()
        if write is not None:
            stdout.print(write_price_file(write, catalogue, sizes, per_core, per_gib), soft_wrap=True)
            return
    rows, currency = rows_of(catalogue, sizes), catalogue.currency if catalogue is not None else "-"
    print_as(form, lambda: flavours_view(rows, currency), lambda: flavours_json(rows, currency))


@app.command()
def simulate(
    dump: Annotated[
        Path,
        typer.Option("--from", help="A dump: kubectl get nodes,pods,pdb,… -A -o json; may be .gz, or - for stdin."),
    ],
    flavours: Annotated[
        Path | None, typer.Option("--flavours", help="A price file: flavours that HTAS may launch.")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Groups, limits and rules; else none.")] = None,
    at: At = None,
    as_annotated: Annotated[
        bool, typer.Option("--as-annotated", help="Move only services that have opted in; else all.")
    ] = False,
    types: Types = None,
    form: Annotated[SimulationForm, typer.Option("-o", "--output", help="How to print it.")] = SimulationForm.TABLE,
) -> None:
    """Calculate what a cluster costs now, packed and consolidated, and why not less."""
    from htas.cli import simulate_document as documents
    from htas.cli.simulate import simulate as simulated
    from htas.cli.simulate_view import simulation_view
    from htas.cli.tables import print_lines

    with exit_on_error():
        answer = simulated(dump, flavours, config, at, as_annotated, types or ())
    if form is SimulationForm.CSV:
        print_lines(documents.lines(answer), documents.SimulationLine, Export.CSV)
        return
    print_as(Form(form.value), lambda: simulation_view(answer, stdout.width), lambda: documents.document(answer))


@app.command()
def run(
    config: Config = None,
    for_s: Annotated[float | None, typer.Option("--for", help="End after so many real seconds.")] = None,
) -> None:
    """Run the daemon until SIGTERM or Ctrl-C."""
    from htas.cli.running import run_daemon  # the scheduler is loaded by this command alone

    with exit_on_error():
        run_daemon(configured(config), for_s)


app.command()(adopt)
app.command()(handback)
app.command()(approve)


@app.command()
def agent(
    registry: Annotated[str, typer.Option("--registry", help="https://HOST[:PORT], where checkpoints are pushed to.")],
    token_file: Annotated[Path, typer.Option("--token-file", help="The token that callers must send.")],
    repository: Annotated[str, typer.Option("--repository", help="In the registry.")] = "htas",
    listen: Annotated[str, typer.Option("--listen", help="[HOST]:PORT.")] = ":10270",
    credentials_file: Annotated[Path | None, typer.Option("--credentials-file", help="One line user:password.")] = None,
    ca_file: Annotated[Path | None, typer.Option("--ca-file", help="The CA of its certificate.")] = None,
    directory: Annotated[Path, typer.Option("--directory", help="Where the kubelet writes checkpoints.")] = Path(
        "/var/lib/kubelet/checkpoints"
    ),
) -> None:
    """Push checkpoints of this node to a registry (migration.transfer: registry)."""
    from htas.adapters.migration.copying.oci_registry import OciRegistry
    from htas.cli.agent import serve

    with exit_on_error():
        there = OciRegistry(registry, repository, str(credentials_file or ""), str(ca_file or ""))
        serve(listen, token_file, there, directory)


@app.command()
def sandbox(
    socket: Annotated[Path, typer.Option("--socket", help="Where the world listens (a Unix socket).")],
    config: Config = None,
) -> None:
    """Run a sandbox (cluster and cloud in memory) in a process of its own."""
    from htas.cli.running import run_world

    with exit_on_error():
        run_world(configured(config), socket)


@app.command()
def demo(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Not the demo's own configuration.")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Play an openb trace instead of the day.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Play the trace sample that comes with htas.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Another day of the same kind.")] = 1,
    hours: Annotated[
        float | None, typer.Option("--hours", min=0.1, max=24 * 366, help="How much to play (24, or the whole trace).")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0, max=86_400, help="Real time for the day.")] = 60.0,
) -> None:
    """Simulate a day of mixed work in the sandbox and show its cost."""
    from htas.cli.demo import DemoOptions, play

    with exit_on_error():
        play(DemoOptions(config, trace, sample, seed, hours, seconds))


for command in (records.top, records.cost, records.history, records.replay):
    app.command()(command)
app.command()(shells.completion)
app.command()(shells.man)
arrange(app)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
