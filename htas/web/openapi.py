"""The OpenAPI document, from the endpoints themselves."""

from __future__ import annotations

import re
from typing import Any

import msgspec

import htas
from htas.web.endpoints import ENDPOINTS, PREFIX, Endpoint

REF = "#/components/schemas/{name}"


def openapi() -> dict[str, Any]:
    """OpenAPI 3.1 of everything under /api/v1."""
    kinds = [each.returns for each in ENDPOINTS if each.returns is not dict]
    kinds += [each.body for each in ENDPOINTS if each.body is not None]
    queries = [each.query for each in ENDPOINTS]
    _, components = msgspec.json.schema_components(list(dict.fromkeys([*kinds, *queries])), ref_template=REF)
    paths: dict[str, dict[str, Any]] = {}
    for each in ENDPOINTS:
        paths.setdefault(f"{PREFIX}{each.path}", {})[each.method.lower()] = _operation(each, components)
    paths[f"{PREFIX}/events"] = {"get": _events()}
    unwanted = {each.__name__ for each in queries}
    return {
        "openapi": "3.1.0",
        "info": {"title": "HTAS", "version": htas.__version__, "description": "What HTAS sees, decides and spends."},
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in unwanted},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(each: Endpoint, components: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object"} if each.returns is dict else {"$ref": REF.format(name=each.returns.__name__)}
    in_path = re.findall(r"{(\w+)}", each.path)
    asked = components[each.query.__name__]
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in in_path]
    parameters += [
        {"name": name, "in": "query", "required": name in asked.get("required", ()), "schema": kind}
        for name, kind in asked.get("properties", {}).items()
    ]
    found: dict[str, Any] = {
        "summary": each.summary,
        "operationId": re.sub(r"\W+", "_", f"{each.method.lower()}{each.path}").strip("_"),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "The document; ETag names what is in it.",
                "content": {"application/json": {"schema": schema}},
            },
            "304": {"description": "It is as If-None-Match has it."},
            **_REFUSALS,
        },
    }
    if each.body is not None:
        content = {"application/json": {"schema": {"$ref": REF.format(name=each.body.__name__)}}}
        found["requestBody"] = {"required": True, "content": content}
        found["responses"] |= _REFUSALS_OF_BODIES
        del found["responses"]["304"]
    return found


def _events() -> dict[str, Any]:
    return {
        "summary": "Server-sent events: `cycle` with the version of the cluster, whenever that has changed",
        "operationId": "get_events",
        "responses": {
            "200": {"description": "A stream.", "content": {"text/event-stream": {}}},
            **{status: _REFUSALS[status] for status in ("401", "403", "405", "429", "503")},
        },
    }


def _said(why: str) -> dict[str, Any]:
    """An answer that is no document: one line of text."""
    return {"description": why, "content": {"text/plain": {"schema": {"type": "string"}}}}


_REFUSALS = {
    "400": _said("The request is invalid; the text shows what to write instead."),
    "401": _said("No token, or an unknown one (WWW-Authenticate: Bearer)."),
    "403": _said("This user may not, or a page of another site sends it."),
    "404": _said("There is none of that name now."),
    "405": _said("Another method; Allow names those there are."),
    "429": _said("Too many wrong tokens from this address; try again in some seconds."),
    "503": _said("There is nothing to show yet, or of a dump, or the planner is busy (Retry-After)."),
}
_REFUSALS_OF_BODIES = {
    "408": _said("The body did not arrive in time."),
    "409": _said("It is decided otherwise already; the text says how."),
    "413": _said("The body is too long."),
    "415": _said("The body is no JSON (Content-Type: application/json)."),
}
