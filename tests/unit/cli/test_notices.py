"""`htas notices test`: told by each receiver what came of it, and never its address."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from htas.cli.main import app
from tests.unit.adapters.webhook.test_webhook import Inbox


def configuration(folder: Path, *notices: dict) -> Path:
    settings = {
        "apiVersion": "htas.io/v1alpha1",
        "kind": "HTASConfiguration",
        "cluster": "demo",
        "flavours": [{"name": "a", "cpu": 2, "memory": "4Gi", "pricePerHour": "0.1"}],
        "notices": list(notices),
        "nodeGroups": [{"name": "any"}],
    }
    file = folder / "htas.yaml"
    file.write_text(yaml.safe_dump(settings))
    return file


def test_each_receiver_is_tried_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Inbox() as inbox:
        monkeypatch.setenv("CHAT_URL", inbox.url)
        (tmp_path / "away").write_text("http://127.0.0.1:1/hooks/s3cret")
        file = configuration(
            tmp_path,
            {"name": "chat", "urlFrom": {"env": "CHAT_URL"}, "form": "slack", "on": ["budget"], "insecure": True},
            {"name": "away", "urlFrom": {"file": "away"}, "insecure": True},
        )
        said = CliRunner().invoke(app, ["notices", "test", "--config", str(file)])
        inbox.shutdown()
    assert said.exit_code == 1
    assert "chat: delivered" in said.output
    assert "away" in said.output and "refused" in said.output.lower()
    assert "s3cret" not in said.output
    ((_, _, body),) = inbox.got
    assert "A test of HTAS's notices" in body["text"] and "demo" in body["text"]


def test_without_receivers_it_says_what_to_write(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["notices", "test", "--config", str(configuration(tmp_path))])
    assert said.exit_code == 2
    assert "notices: none is configured" in said.output


@pytest.mark.parametrize(
    ("notice", "told"),
    [
        pytest.param({"name": "a"}, "needs one of url and urlFrom", id="no address"),
        pytest.param({"name": "a", "url": "https://x", "urlFrom": {"env": "X"}}, "needs one of", id="two addresses"),
        pytest.param({"name": "a", "url": "http://x.example/"}, "insecure: true", id="in the clear"),
        pytest.param({"name": "a", "url": "ftp://x.example/"}, "is no address", id="no web address"),
        pytest.param({"name": "a", "url": "https://u:p@x.example/"}, "has a password in it", id="a password in it"),
        pytest.param({"name": "a", "urlFrom": {}}, "needs one of file and env", id="from nowhere"),
        pytest.param({"name": "a", "url": "https://x", "on": []}, "write at least one", id="of nothing"),
        pytest.param({"name": "a", "url": "https://x", "on": ["fire"]}, "limit-reached", id="of what there is not"),
    ],
)
def test_mistakes_are_told_with_their_key(notice: dict, told: str, tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["check", "--config", str(configuration(tmp_path, notice))])
    assert said.exit_code == 2
    assert told in " ".join(said.output.split())
    assert "notices[0]" in said.output
