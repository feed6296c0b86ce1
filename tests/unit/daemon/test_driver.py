"""Cassandra's driver is optional: who configures a store there without it is told what to install."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from htas.cli.main import app
from htas.config.loader import Loaded, load_configuration
from htas.daemon.wiring.stores import open_store, recorded_store
from htas.ports import PermanentError, StorePort
from tests.unit.config.files import GOOD

TOLD = "store.cassandra: its driver is not installed: pip install 'htas[cassandra]'"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in Cassandra is configured, and no such package can be imported."""
    monkeypatch.setitem(sys.modules, "cassandra", None)
    file = tmp_path / "htas.yaml"
    file.write_text(GOOD + "store: {cassandra: {contactPoints: [a], localDatacenter: dc1}}")
    return file


@pytest.mark.parametrize("opened", [open_store, recorded_store])
def test_opening_the_store_tells_what_to_install(opened: Callable[[Loaded], StorePort], config: Path) -> None:
    with pytest.raises(PermanentError) as error:
        opened(load_configuration(config))
    assert str(error.value) == TOLD


@pytest.mark.parametrize("verb", ["init", "check"])
def test_commands_tell_what_to_install(verb: str, config: Path) -> None:
    done = CliRunner().invoke(app, ["store", verb, "-c", str(config)])
    assert (done.exit_code, TOLD in " ".join(done.output.split())) == (1, True)


def test_nothing_else_loads_the_driver() -> None:
    """Commands and daemon are imported without it."""
    script = "import sys; sys.modules['cassandra'] = None; import htas.cli.main, htas.daemon.service, htas.cli.simulate"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
