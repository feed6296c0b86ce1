"""The reference of the API: from the OpenAPI document, which is made from the endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from htas.web.openapi import openapi

HEAD = """# API
Under `/api/v1` of the daemon, and of `htas ui`. The daemon itself serves this as an OpenAPI document,
`/api/v1/openapi.json`, with the structure of every answer; [the dashboard's page](../dashboard.md#the-api) says how to
ask, and who may.

"""


def api_page() -> str:
    """docs/reference/api.md: an endpoint a section, with what may be asked."""
    return HEAD + "\n".join(_endpoints(openapi()))


def _endpoints(document: dict[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"## `{method.upper()} {path}`\n"
            yield f"{operation['summary']}.\n"
            rows = [row for each in operation.get("parameters", ()) for row in _row(each)]
            if rows:
                yield "| asked with | where | form |\n|---|---|---|"
                yield from rows
                yield ""
            if "requestBody" in operation:
                name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                yield f"Its body, as JSON (`{name}`):\n"
                yield "| key | form |\n|---|---|"
                sent = document["components"]["schemas"][name]
                yield from (f"| `{key}` | {_form(kind)} |" for key, kind in sent["properties"].items())
                yield ""


def _row(parameter: dict[str, Any]) -> Iterator[str]:
    where = parameter["in"] + ("" if parameter["required"] else ", may be left out")
    yield f"| `{parameter['name']}` | {where} | {_form(parameter['schema'])} |"


def _form(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "anyOf" in schema:
        return " or ".join(_form(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_form(schema.get('items', {}))}"
    bounds = [f"{word} {schema[key]:g}" for key, word in _BOUNDS.items() if key in schema]
    default = [f"default `{schema['default']}`"] if schema.get("default") not in (None, "") else []
    return ", ".join([str(schema.get("type", "any")), *bounds, *default])


_BOUNDS = {"minimum": "at least", "maximum": "at most"}
