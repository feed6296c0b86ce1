"""The documentation as a site: it builds without a warning, loads nothing from elsewhere, and shows tables and lists as such."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from enum import StrEnum
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from htas.cli.main import app
from htas.cli.manual import entries
from htas.config.catalogue import (
    BillingSetting,
    CatalogueSetting,
    FlavourSetting,
    ReservedSetting,
    TaintSetting,
    ZonePriceSetting,
)
from htas.config.loader import load_catalogue, load_configuration
from htas.config.settings import Configuration
from tests.unit.cli.test_documentation import PAGES
from tools.site.configuration import configuration_page, price_file_page
from tools.site.metrics import metric_rows
from tools.site.outside import as_on_site, named_files
from tools.site.vocabulary import REASONS, UndescribedError, descriptions, keys, labels_page, reasons_page

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: MkDocs fails on a link that leads nowhere, to a page, an anchor or a file."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def articles(site: Path) -> dict[str, str]:
    """What each page says, by its path."""
    pages = {str(path.relative_to(site)): path.read_text() for path in site.rglob("*.html") if path.name != "404.html"}
    return {path: text.partition("<article")[2].partition("</article>")[0] for path, text in pages.items()}


def test_it_loads_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"([^\"]+)\"", path.read_text())
        assert [address for address in loaded if re.match(r"https?:|//", address)] == [], path


def test_lists_and_tables_are_shown_as_such(site: Path) -> None:
    """Where a blank line is missing before one, a reader of the file does not mind, but the site runs it into the text."""
    raw = re.compile(r"(^|\n)\s*(- |\* |\d+\. |\| )")
    for path, text in articles(site).items():
        paragraphs = re.findall(r"<(?:p|li)>((?:(?!<p>|<li>|<div|<pre).)*?)</(?:p|li)>", text, re.DOTALL)
        assert [paragraph for paragraph in paragraphs if raw.search(paragraph)] == [], path


def test_every_page_is_in_the_navigation(site: Path) -> None:
    first = (site / "index.html").read_text()
    for path in articles(site):
        assert path == "index.html" or f'href="{path}"' in first, path


def keys_of(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_the_reference_names_every_key_with_its_default_as_one_would_write_it() -> None:
    page = configuration_page()
    for key in keys_of(Configuration):
        assert f"`{key}`" in page
    assert "| `maxWaitForCapacity` | `3m` | duration or null |" in page
    assert "| `bandwidth` | `150M` | bytes |" in page
    assert "| `requestsPerSecond` | `200` | decimal |" in page


PRICES = (ROOT / "docs/prices.md").read_text()
PRICE_FILE = (CatalogueSetting, BillingSetting, FlavourSetting, ZonePriceSetting, ReservedSetting, TaintSetting)


def test_the_price_files_keys_are_told_as_the_settings_have_them() -> None:
    page = price_file_page()
    for model in PRICE_FILE:
        assert [key for key in keys_of(model) if f"{key}`" not in page and f"{key}[]`" not in page] == []
    assert "| `flavours[].retired` | `false` | true, false |" in page
    assert "| `billing.granularity` | `1m` | duration |" in page


def test_the_price_file_that_is_shown_is_one_and_has_every_key(tmp_path: Path) -> None:
    shown = PRICES.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "prices.yaml").write_text(shown)
    catalogue = load_catalogue(tmp_path / "prices.yaml")
    assert [flavour.name for flavour in catalogue.flavours] == ["m1.large", "g2.large", "m2.large", "m0.large"]
    for model in PRICE_FILE:
        assert [key for key in keys_of(model) if f"{key}:" not in shown] == []


def test_the_reference_names_every_command(site: Path) -> None:
    text = articles(site)["reference/commands.html"]
    names = [entry.name for entry in entries(app)]
    assert len(names) > 25
    assert [name for name in names if f"<code>{name}</code>" not in text] == []


def test_the_reference_of_metrics_has_labels_and_help() -> None:
    """Another test holds the names against a daemon that runs."""
    found = {row.name: row for row in metric_rows()}
    assert (found["htas_claims"].kind, found["htas_claims"].labels) == ("gauge", ("group", "state"))
    assert found["htas_cloud_requests_total"].labels == ("service", "method", "code")
    assert [name for name, row in found.items() if not row.says] == []


def test_the_reference_of_reasons_has_every_word() -> None:
    page = reasons_page()
    assert [each.value for kind in REASONS.values() for each in kind if f"| `{each.value}` |" not in page] == []
    assert "| `QuotaReached` | The project's quota forbids another machine. | Raise the quota of the project. |" in page


def test_the_reference_of_labels_has_those_of_every_module() -> None:
    used = {
        found
        for path in (ROOT / "htas").rglob("*.py")
        for found in re.findall(r"\"(htas\.io/[a-z-]+)\"", path.read_text())
    }
    assert used - {"htas.io/htas"} == {key for key in keys() if key.startswith("htas.io/")}
    assert "| `htas.io/draining` | The taint (NoSchedule) of a node that HTAS drains. |" in labels_page()


class Unsaid(StrEnum):
    SAID = "Said"
    """It is."""
    UNSAID = "Unsaid"


def test_a_word_without_a_description_is_named() -> None:
    with pytest.raises(UndescribedError, match="Unsaid: Unsaid"):
        descriptions(Unsaid)


def test_the_search_works_from_a_folder(site: Path) -> None:
    """A browser that reads files refuses to fetch an index: it comes as a script, for a worker within a frame."""
    assert (site / "search/search_index.js").read_text().startswith("var __index = {")
    assert (site / "assets/iframe-worker.js").is_file()
    assert '<script src="../assets/iframe-worker.js">' in (site / "start/kubeadm.html").read_text()


def test_links_are_turned_as_the_site_has_them() -> None:
    line = "[a](../deploy/openstack/k3s.yaml), [b](../README.md#try-it), ![c](pictures/now.png), [d](#here)"
    assert as_on_site(line, "start/x.md", "docs/start/x.md".replace("start/", "")) == (
        "[a](../deploy/openstack/k3s.yaml), [b](../index.md#try-it), ![c](../pictures/now.png), [d](#here)"
    )
    assert "deploy/openstack/cloud-init.yaml" in named_files(ROOT)


def settings_in(page: Path) -> list[str]:
    """Blocks of a page that are a values.yaml of the chart."""
    blocks = re.findall(r"(?:^ {4,}.*\n|^\n)+", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"^ {4}", "", block.strip("\n"), flags=re.MULTILINE) for block in blocks)
    found = [re.sub(r"^ {4}", "", text, flags=re.MULTILINE) if text.startswith("    ") else text for text in plain]
    return [text.split("\n\n\n")[0] for text in found if text.startswith("# values.yaml")]


VALUES = [(page, text) for page in PAGES for text in settings_in(page)]


@pytest.mark.parametrize(("page", "text"), VALUES, ids=[f"{page.stem}-{i}" for i, (page, _) in enumerate(VALUES)])
def test_settings_that_are_printed_are_taken(page: Path, text: str, tmp_path: Path) -> None:
    """As the daemon reads them: the chart adds the form and the price file."""
    head, _, rest = text.partition("\n\n")
    given = yaml.load(head if not rest.startswith(("  ", "config", "flavours")) else text, yaml.BaseLoader)
    prices = given.get("flavours") or {"flavours": [{"name": "a", "cpu": "2", "memory": "4Gi", "pricePerHour": "0.1"}]}
    watching = {"mode": "recommend", "provider": {"none": {}}}  # the chart's defaults
    form = {"apiVersion": "htas.io/v1alpha1", "kind": "HTASConfiguration", "flavours": prices}
    settings = {**form, **watching, **given["config"]}
    provider = {key: value for key, value in settings["provider"].items() if value != "null"}
    if "openstack" in provider:
        user_data = provider["openstack"]["userData"]
        user_data["template"] = str(ROOT / "deploy/openstack/cloud-init.yaml")
    file = tmp_path / "htas.yaml"
    file.write_text(yaml.safe_dump(settings | {"provider": provider}))
    assert load_configuration(file).policy.cluster == given["config"]["cluster"]


def test_settings_are_found() -> None:
    assert len(VALUES) >= 3
