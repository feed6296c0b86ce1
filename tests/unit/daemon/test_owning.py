"""Two daemons on one journal, where no lease keeps the second from acting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from htas.adapters.owning import owned
from htas.config.loader import load_configuration
from htas.config.places import config_file
from htas.daemon.service import Service
from htas.ports import PermanentError


@pytest.fixture
def config(tmp_path: Path) -> Path:
    document = {
        "apiVersion": "htas.io/v1alpha1",
        "kind": "HTASConfiguration",
        "cluster": "one",
        "flavours": str(config_file("flavours/nectar.yaml")),
        "store": {"sqlite": {"path": "htas.db"}},
        "nodeGroups": [{"name": "any"}],
    }
    path = tmp_path / "htas.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_second_is_refused_with_the_firsts_name_and_starts_once_it_has_ended(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htas.daemon.service.PREDECESSOR_S", 0.1)
    lock = owned(str(config.with_name("htas.db")), 0.0, "")
    second = Service(load_configuration(config))
    with pytest.raises(
        PermanentError, match=rf"htas\.db: process {os.getpid()} on .* uses it; end it, or name another"
    ):
        second.run()
    os.close(lock)
    Service(load_configuration(config)).run(for_s=0.2)
