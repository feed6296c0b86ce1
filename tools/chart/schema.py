"""values.schema.json: the chart's own values by hand, configuration and price file from the settings' models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from htas.config.catalogue import CatalogueSetting
from htas.config.settings import CassandraSetting, Configuration, SqliteSetting

OWN = Path(__file__).parent / "own_values.schema.json"
"""What only the chart knows, such as `replicas`; it refers to the settings' sections by `#/definitions/…`."""

SET_BY_THE_CHART = {
    "Configuration": ("apiVersion", "kind", "flavours", "http", "store"),
    "LoggingSetting": ("format",),
    "SqliteSetting": ("path",),
    "BufferSetting": ("path",),
    "CassandraSetting": ("passwordFile",),
}
"""Keys of sections that the templates write: a value of one's own would be lost."""
GIVEN_BY_A_SECRET = {"CassandraTlsSetting": ("caFile",)}
"""Keys that the models require and the templates fill in where `store.tlsSecret` is named."""
NEEDED_HERE = {"Configuration": ("provider",)}
"""Keys with a default that makes no sense in a cluster: the sandbox."""

_NO_USE = ("title", "default", "ge", "gt", "le", "lt")
"""What pydantic says beside the standard's own words: defaults are in the model's units, 60.0 for `60s`."""

Schema = dict[str, Any]


def values_schema() -> Schema:
    """The schema of values.yaml, as a draft that every helm 3 understands."""
    own: Schema = json.loads(OWN.read_text())
    models = (Configuration, CatalogueSetting, SqliteSetting, CassandraSetting)
    _, generated = models_json_schema(
        [(model, "validation") for model in models], by_alias=True, ref_template="#/definitions/{model}"
    )
    definitions = _used({name: _plain(section) for name, section in _adapted(generated["$defs"]).items()}, own)
    return {**own, "definitions": dict(sorted(definitions.items()))}


def schema_text() -> str:
    return json.dumps(values_schema(), indent=1) + "\n"


def _adapted(definitions: Schema) -> Schema:
    for name, keys in SET_BY_THE_CHART.items():
        for key in keys:
            del definitions[name]["properties"][key]
    for name, section in definitions.items():
        unneeded = (*SET_BY_THE_CHART.get(name, ()), *GIVEN_BY_A_SECRET.get(name, ()))
        required = [key for key in section.get("required", ()) if key not in unneeded]
        if "properties" in section:
            section["required"] = [*NEEDED_HERE.get(name, ()), *required]
    definitions["ProviderSetting"]["minProperties"] = 1
    return definitions


def _plain(value: Any, *, are_names: bool = False) -> Any:
    """Without what is of no use to those who write values."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: _plain(item, are_names=key in ("properties", "patternProperties"))
        for key, item in value.items()
        if are_names or (key not in _NO_USE and not (key == "required" and not item))
    }
    if "patternProperties" in kept and not are_names:
        kept["additionalProperties"] = False  # a label whose key is none
    return kept


def _used(definitions: Schema, own: Schema) -> Schema:
    """The sections that are referred to, from the chart's values on."""
    found: Schema = {}
    waiting = list(_references(own))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            waiting += _references(definitions[name])
    return found


def _references(value: Any) -> list[str]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    here = [value["$ref"].rpartition("/")[2]] if isinstance(value, dict) and isinstance(value.get("$ref"), str) else []
    return here + [name for item in items for name in _references(item)]
