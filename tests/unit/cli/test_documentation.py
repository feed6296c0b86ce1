"""What README and docs tell people to type: run as printed where that needs nothing but files, else parsed, and why.

Blocks are found, not listed: a new command fails here until it is run, or stands below with the reason why it is not.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from htas.cli.main import app
from htas.config.loader import load_configuration
from htas.daemon.loops.cycle import Daemon
from htas.daemon.loops.virtual import VirtualDriver
from htas.daemon.wiring.stores import open_store
from htas.execution.ports import Ports
from htas.sandbox.workload import Workload
from htas.sandbox.world import World
from tests.stories.play import job, service
from tests.unit.cli.dump import everything
from tools.lab.commands import app as lab
from tools.site.commands import HEAD

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = [*(page.read_text() for page in PAGES), HEAD]

CLOUD, CLUSTER, LONG = "asks a real cloud", "asks a live cluster", "takes minutes; its own tests play a part of it"
FOREVER, STORE, SERVER = "goes on until it is ended", "needs a Cassandra", "asks a running daemon"
PARSED = {
    "htas demo --sample": LONG,
    "htas demo --trace FILE": LONG,
    "htas demo --hours 6 --seconds 10": LONG,
    "htas plan --config config/kwok.yaml": CLUSTER,
    "htas plan --config config/mine.yaml": CLUSTER,
    "htas plan --server htas-system/htas": SERVER,
    "htas optimize --config htas.yaml": CLUSTER,
    "htas explain pod NAMESPACE/NAME --server htas-system/htas": SERVER,
    "htas explain pod shop/web-7c9 --server htas-system/htas": SERVER,
    "htas explain node NAME --server htas-system/htas --steady": SERVER,
    "htas history --server htas-system/htas --verb launch": SERVER,
    "htas history --server htas-system/htas --verb suggested": SERVER,
    "htas history --server htas-system/htas --verb undo-drain": SERVER,
    "htas run --config config/kwok.yaml": FOREVER,
    "htas run --config my.yaml": FOREVER,
    "htas handback --all --config htas.yaml -n htas-system": CLUSTER,
    "htas handback --keep --config htas.yaml -n htas-system": CLUSTER,
    "htas check --live --config htas.yaml": CLUSTER,
    "htas adopt --group batch --dry-run --config htas.yaml": CLUSTER,
    "htas adopt --group batch node-1 node-2 --config htas.yaml": CLUSTER,
    "htas adopt --group batch --cluster OLD --config htas.yaml -n htas-system": CLUSTER,
    "htas handback --orphans --config htas.yaml -n htas-system": CLUSTER,
    "htas handback --orphans --cluster OLD --config htas.yaml -n htas-system": CLUSTER,
    "htas sandbox --config my.yaml --socket world.sock": FOREVER,
    "htas ui --demo": FOREVER,
    "htas ui --demo --recommend": FOREVER,
    "htas ui --demo --approve --port 8081 --token-file ui-token": FOREVER,
    "htas approve --list --server http://127.0.0.1:8081 --token-file ui-token": SERVER,
    "htas approve --list --server htas-system/htas": SERVER,
    "htas approve drain-3fa9c1d2b7e6045f --server htas-system/htas": SERVER,
    "htas ui --from dump.json --flavours config/flavours/mine.yaml": FOREVER,
    "htas cost --server htas-system/htas": SERVER,
    "htas cost --server https://htas.example --token-file token": SERVER,
    "htas top --server htas-system/htas": SERVER,
    "htas top --server http://localhost:8080 --token-file token": SERVER,
    "htas flavours --cloud NAME --write prices.yaml": CLOUD,
    "htas flavours --cloud htas --write config/flavours/mine.yaml": CLOUD,
    "htas flavours --cloud htas --write config/flavours/mine.yaml --per-core 0.02 --per-gib 0.004": CLOUD,
    "htas flavours --config config/mine.yaml": CLOUD,
    "htas check --config config/mine.yaml --live": CLOUD,
    "htas store backup /backups/htas-2026-11-28.db --config htas.yaml": "tests/unit/cli/test_store.py runs it",
    "htas store restore /backups/htas-2026-11-28.db --config htas.yaml": "tests/unit/cli/test_store.py runs it",
    "htas migrate pod NAMESPACE/NAME --to NODE --config htas.yaml --url http://127.0.0.1:8080 --token-file FILE": SERVER,
}
"""Commands that cannot be run here, each with the reason. All their verbs and options are there, as with the others."""

LAB_RUN = "python -m tools.lab"
PLACEHOLDERS = {"NAMESPACE/NAME": "default/huge", "NAME": "fixed-1", "N": "1"}


def lines(page: str) -> Iterator[str]:
    """The lines of a page's blocks of code, those that a backslash continues joined."""
    held, is_fenced = "", False
    for line in page.splitlines():
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif is_fenced or line.startswith("    "):
            text = held + line.strip()
            held = text.removesuffix("\\") if text.endswith("\\") else ""
            if not held:
                yield text


def typed(text: str) -> str:
    """A line as it is typed: without its comment and the file it writes to, one blank between words."""
    words = shlex.split(text, comments=True)
    return shlex.join(words[: words.index(">")] if ">" in words else words)


COMMANDS = sorted(
    {
        typed(found)
        for page in TEXTS
        for line in lines(page)
        for found in re.findall(r"^htas .*|(?<=<\()htas [^)]*", line)
    }
)
MENTIONED = sorted({" ".join(found.split()) for page in TEXTS for found in re.findall(r"`(htas [a-z][^`]*)`", page)})
IN_A_CONTAINER = sorted(
    {typed(found) for page in TEXTS for line in lines(page) for found in re.findall(r"(?<= -- )htas .*", line)}
)
LAB = sorted({typed(found) for page in TEXTS for found in re.findall(rf"{LAB_RUN} [^`\n]+", page)})
OTHERS = sorted(
    {
        line
        for page in TEXTS
        for line in lines(page)
        if re.match(r"(make|helm|kubectl|openstack|curl|python|tools/)\b", line)
    }
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout's `config`, a dump, price files, and a sandbox's configuration with an hour on record."""
    desk = tmp_path_factory.mktemp("desk")
    shutil.copytree(ROOT / "config", desk / "config")
    shutil.copytree(ROOT / "deploy/openstack", desk / "deploy/openstack")
    prices = (ROOT / "config/flavours/nectar.yaml").read_text()
    for name in ("prices.yaml", "config/flavours/mine.yaml"):
        (desk / name).write_text(prices)
    shutil.copy(ROOT / "config/openstack.yaml", desk / "config/mine.yaml")
    items = everything()
    for item in items:
        if item["kind"] == "Node":
            item["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "m1.medium"
    (desk / "dump.json").write_text(json.dumps({"kind": "List", "items": items}))
    settings = "apiVersion: htas.io/v1alpha1\nkind: HTASConfiguration\ncluster: demo\nflavours: prices.yaml\n"
    settings += "provider: {sandbox: {}}\nnodeGroups: [{name: any}]\n"
    for name in ("htas.yaml", "my.yaml"):
        (desk / name).write_text(settings)
    loaded = load_configuration(desk / "htas.yaml")
    world = World()
    world.load(
        Workload("hour", (service("web", 2, namespace="shop"), *(job(f"j{i}", 60.0 * i, 600.0) for i in range(6))))
    )
    store = open_store(loaded, world.clock.now)
    ports = Ports(world.clock, world.cluster, world.cloud, world.migration, store, world.announcer)
    VirtualDriver(world, Daemon(ports, loaded.policy)).run_until(world.clock.now() + 3600)
    store.close()
    return desk


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in PARSED])
def test_commands_run_as_they_are_printed(desk: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(desk)
    monkeypatch.delenv("HTAS_CONFIG", raising=False)
    said = CliRunner().invoke(app, [PLACEHOLDERS.get(word, word) for word in shlex.split(command)[1:]])
    assert said.exit_code == 0, said.output
    assert said.stdout.strip()


@pytest.mark.parametrize(
    "command", sorted({*COMMANDS, *IN_A_CONTAINER, *(text for text in MENTIONED if "…" not in text)})
)
def test_every_verb_and_option_that_is_printed_exists(command: str) -> None:
    """Also those within sentences and tables, and after `kubectl exec … --`."""
    numbered = [{"N": "1"}.get(word, word) for word in shlex.split(command)[1:]]
    try:
        _idle(get_command(app)).main(numbered, prog_name="htas", standalone_mode=False)
    except Exception as error:
        # A sentence may name a command without what it needs; it may not name what there is not.
        assert command in MENTIONED and type(error).__name__ in ("MissingParameter", "NoArgsIsHelpError"), error


@pytest.mark.parametrize("command", LAB)
def test_every_experiment_that_is_printed_can_be_asked_for(command: str) -> None:
    _idle(get_command(lab)).main(shlex.split(command.removeprefix(LAB_RUN)), standalone_mode=False)


def _idle(command: Any) -> Any:
    """A command that checks what it is given and does nothing."""
    for inner in getattr(command, "commands", {}).values():
        _idle(inner)
    if not hasattr(command, "commands"):
        command.callback = lambda **_: None
    return command


def test_no_reason_is_kept_for_a_command_that_is_printed_no_more() -> None:
    assert sorted(PARSED.keys() - {*COMMANDS}) == []


@pytest.mark.parametrize("line", OTHERS)
def test_what_other_tools_are_given_is_there(line: str) -> None:
    """Targets of make, and files of this project."""
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    paths = [word.partition("=")[2] or word for word in words]
    named = [path for path in paths if re.match(r"(deploy|tools|config|docs)/", path)]
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_blocks_are_found() -> None:
    """That the patterns above still find what there is: a page in another style would pass unseen."""
    assert len(COMMANDS) > 40
    assert len(IN_A_CONTAINER) > 10
    assert len(LAB) > 6
    assert {"htas simulate --from dump.json --flavours config/flavours/nectar.yaml", "htas cost --against peak"} <= {
        *COMMANDS
    }
    assert "make demo     # a day of mixed work in the sandbox" in OTHERS
