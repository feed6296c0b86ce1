"""What the chart has from the code is current, and what it says of the code is so. It needs files alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from htas.config import values as types
from htas.config.catalogue import CatalogueSetting
from htas.config.settings import Configuration
from htas.daemon.telemetry.metrics import Metrics
from htas.model.reasons import Unplaced
from tools.chart.dashboards import DASHBOARDS, chosen, dashboard_text, expressions
from tools.chart.readme import UndescribedError, values_of, with_values
from tools.chart.schema import schema_text, values_schema
from tools.site.metrics import metric_rows

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "htas"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
ALERTS = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["alerts"]


def test_the_schema_is_that_of_the_settings() -> None:
    assert (CHART / "values.schema.json").read_text() == schema_text(), "run make chart"


def test_the_readme_lists_every_value() -> None:
    readme, values = (CHART / "README.md").read_text(), (CHART / "values.yaml").read_text()
    assert readme == with_values(readme, values), "run make chart"
    assert {row.key.partition(".")[0] for row in values_of(values)} == set(VALUES)


def test_a_value_that_nobody_described_is_told() -> None:
    readme = (CHART / "README.md").read_text()
    with pytest.raises(UndescribedError, match=r"image\.tag"):
        with_values(readme, 'image:\n  repository: htas   # where from\n  tag: ""\n')


def keys_of(value: Any, section: dict[str, Any], path: str = "") -> Iterator[tuple[str, set[str], set[str]]]:
    """Of every mapping of values.yaml: its keys, and those the schema has for it, where it has a list of them."""
    if isinstance(value, dict) and section.get("additionalProperties") is False and "$ref" not in section:
        yield path, set(value), set(section["properties"])
        for key, item in value.items():
            yield from keys_of(item, section["properties"].get(key, {}), f"{path}.{key}")


def test_the_schema_and_the_file_have_the_same_values() -> None:
    found = list(keys_of(VALUES, values_schema()))
    assert len(found) > 10
    for path, written, known in found:
        assert written == known - ({"global"} if not path else set()), path or "the whole"


def stated(setting: BaseModel, raw: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    """Every key that is written in `raw`, and whether it says something else than the code would."""
    for name, field in type(setting).model_fields.items():
        key = field.alias or name
        if key not in raw:
            continue
        value, default = getattr(setting, name), field.get_default(call_default_factory=True)
        yield f"{path}{key}", value != default
        inner = [(value, raw[key])] if isinstance(value, BaseModel) else []
        inner = list(zip(value, raw[key], strict=True)) if isinstance(value, tuple) else inner
        for i, (item, below) in enumerate(inner):
            if isinstance(item, BaseModel):
                yield from stated(item, below, f"{path}{key}[{i}].")


@pytest.mark.parametrize("part", ["config", "flavours"])
def test_its_configuration_states_only_what_differs_from_the_codes_defaults(part: str) -> None:
    """So that a better default reaches those who upgrade."""
    if part == "flavours":
        raw = yaml.load((CHART / "values.yaml").read_text(), yaml.BaseLoader)["flavours"]  # numbers as text
        setting: BaseModel = CatalogueSetting.model_validate(raw)
    else:
        given = yaml.load((CHART / "values.yaml").read_text(), yaml.BaseLoader)["config"]
        raw = {"apiVersion": "htas.io/v1alpha1", "kind": "HTASConfiguration", "flavours": "f.yaml", **given}
        setting = Configuration.model_validate(raw)
    idle = [path for path, differs in stated(setting, raw) if not differs]
    assert not idle, "these are the defaults"


FORMS: list[Any] = [
    pytest.param(types.Seconds, "20s", id="a duration"),
    pytest.param(types.Seconds, "1h30m", id="a duration of two parts"),
    pytest.param(types.Seconds, "20", id="a duration without a unit"),
    pytest.param(types.Seconds, "soon", id="no duration"),
    pytest.param(types.Millicores, "1500m", id="millicores"),
    pytest.param(types.Units, "8Gi", id="gibibytes"),
    pytest.param(types.Units, "2e3", id="an exponent"),
    pytest.param(types.Units, "8GB", id="no unit of Kubernetes"),
    pytest.param(types.Units, "-1", id="a negative amount"),
    pytest.param(types.Nanos, "0.1371", id="a price"),
    pytest.param(types.Nanos, ".5", id="a price without a nought"),
    pytest.param(types.Nanos, "abc", id="no price"),
    pytest.param(types.Nanos, "-0.1", id="a negative price"),
    pytest.param(types.Nanos, "NaN", id="a price that is no number"),
    pytest.param(types.Integer, "-3", id="a negative whole number"),
    pytest.param(types.Integer, "3.5", id="no whole number"),
    pytest.param(types.Real, "1e-3", id="a decimal with an exponent"),
    pytest.param(types.Name, "batch-2", id="a name"),
    pytest.param(types.Name, "Batch", id="a name with a capital"),
    pytest.param(types.Name, "a" * 31, id="a name that is too long"),
    pytest.param(types.NodeKey, "example.com/gpu", id="a label's key"),
    pytest.param(types.NodeKey, "Example.com/gpu", id="a domain with a capital"),
    pytest.param(types.LabelValue, "", id="an empty label"),
    pytest.param(types.LabelValue, "a b", id="a label with a space"),
    pytest.param(types.NodeName, "m1.large", id="a flavour's name"),
    pytest.param(types.Text, "x", id="a text"),
    pytest.param(types.Text, " ", id="a blank text"),
]


@pytest.mark.parametrize(("kind", "text"), FORMS)
def test_the_schema_takes_what_the_loader_takes(kind: Any, text: str) -> None:
    schema = TypeAdapter(kind).json_schema()
    assert "string" in schema["type"]
    try:
        TypeAdapter(kind).validate_python(text)
        is_taken = True
    except ValidationError:
        is_taken = False
    assert (re.search(schema["pattern"], text) is not None) is is_taken


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        pytest.param(types.Count, {"type": ["integer", "string"], "minimum": 0}, id="a count"),
        pytest.param(types.Share, {"type": ["number", "string"], "minimum": 0, "maximum": 1}, id="a share"),
        pytest.param(types.Nanos, {"type": ["number", "string"], "minimum": 0}, id="a price"),
        pytest.param(types.Seconds, {"type": "string"}, id="a duration, which needs a unit"),
    ],
)
def test_numbers_have_their_bounds_in_the_schema(kind: Any, bounds: dict[str, Any]) -> None:
    schema = TypeAdapter(kind).json_schema()
    assert {key: value for key, value in schema.items() if key != "pattern"} == bounds


def test_alerts_are_on_metrics_that_the_daemon_exports() -> None:
    """Every metric is in the reference, which another test holds against a daemon at work."""
    exported = set(documented())
    for alert in ALERTS:
        named = set(re.findall(r"htas_\w+", alert["expr"]))
        assert named, alert["alert"]
        assert named <= exported, alert["alert"]
        assert len(re.findall(r"htas_\w+\{", alert["expr"])) == len(re.findall(r"htas_\w+", alert["expr"])), (
            "the chart adds job and namespace to the braces"
        )


def test_alerts_name_reasons_that_pods_wait_for() -> None:
    named = {
        reason
        for alert in ALERTS
        for selector in re.findall(r'htas_unschedulable_pods\{reason(?:=|!=|=~|!~)"([^"]+)"', alert["expr"])
        for reason in selector.split("|")
    }
    assert named and named <= {reason.value for reason in Unplaced}


BUCKETS = re.compile(r"_bucket$")
GIVEN = {"job", "namespace", "le"}


@cache
def documented() -> dict[str, set[str]]:
    """Every metric of the reference with its labels."""
    return {row.name: set(row.labels) for row in metric_rows()}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_the_one_that_was_made(name: str) -> None:
    assert (CHART / "files" / "dashboards" / f"{name}.json").read_text() == dashboard_text(name), "run make chart"


@pytest.mark.parametrize("query", [query for name in DASHBOARDS for query in expressions(name)])
def test_dashboards_ask_for_metrics_and_labels_that_the_daemon_exports(query: str) -> None:
    known = documented()
    used = re.findall(r"(htas_\w+)\{([^}]*)\}", query)
    assert used and len(used) == len(re.findall(r"htas_\w+", query)), (
        "each metric has its braces, for job and namespace"
    )
    assert all(query.count(a) == query.count(b) for a, b in ("()", "{}", "[]"))
    grouped = {label.strip() for part in re.findall(r"by \(([^)]*)\)", query) for label in part.split(",")}
    for metric, selector in used:
        name = BUCKETS.sub("", metric)
        assert name in known, name
        asked = set(re.findall(r"(\w+)(?:=|!)", selector)) | (grouped if len(used) == 1 else set())
        assert asked <= known[name] | GIVEN, (name, asked)
        assert not name.endswith("_total") or re.search(rf"(rate|increase)\({metric}", query), (
            "a counter alone says nothing"
        )
    assert 'job=~"$job",namespace=~"$namespace"' in chosen(query)


def test_the_documentation_has_the_charts_alerts() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    found = re.findall(r"^\| \[`(HTAS\w+)`\]\(runbook\.md#(\w+)\) \| (\w+) \| (\w*) ?\| (.*) \|$", text, re.MULTILINE)
    assert found == [
        (
            each["alert"],
            each["alert"].lower(),
            each["severity"],
            each.get("for", ""),
            each["summary"].partition(": {{")[0],
        )
        for each in ALERTS
    ]


def test_the_runbook_has_a_section_for_every_alert() -> None:
    """`runbook_url` ends in `#` and the alert's name in small letters, which is the anchor of a heading of that name."""
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert sorted(each for each in headings if each.startswith("HTAS")) == sorted(each["alert"] for each in ALERTS)
    rule = (CHART / "templates" / "prometheusrule.yaml").read_text()
    assert 'printf "%s#%s" $.Values.prometheusRule.runbookUrl (lower .alert)' in rule


def test_the_runbook_begins_with_a_table_of_every_alert() -> None:
    """An on-call finds the section from there, on the first screen."""
    first = (ROOT / "docs" / "runbook.md").read_text().partition("\n## ")[0]
    assert len(first.splitlines()) < 30
    assert [each["alert"] for each in ALERTS if f"`{each['alert']}`" not in first] == []


def test_a_first_refusal_is_an_increase() -> None:
    """A series that begins with 1 has none for Prometheus, and the alert would miss it."""
    assert 'htas_config_reloads_total{result="refused"} 0.0' in Metrics().render().decode()
