"""Spoiled documents, streams of watch events, and bytes that call themselves HTTP."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml
from hypothesis import strategies as st

from tools.fuzz.documents import configuration, objects, prices

Steps = tuple[str | int, ...]

STRANGE = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**40, 0.5, 1e308, -0.0,
    "", " ", "x", "é", "\u202e", "\x00", "\n", "a/b/c", "../..", "*", "null", "-1", "0", "1e99", "9" * 400, "1Ei", "5m", "-5m",
    "100%", "nan", "inf", "0x10", "1.5.5", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-13-45T99:99:99Z", "In",
    "NotIn", "Exists", "Gt", "NoSchedule", "DoNotSchedule", "kubernetes.io/hostname", "htas", "default", "Node", "DaemonSet",
    [], {}, [None], [[]], [{}], {"": ""}, {"a": None},
]  # fmt: skip
"""Values that some reader somewhere takes for something else."""

scalars = st.one_of(
    st.sampled_from(STRANGE), st.text(max_size=20), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)
junk = st.one_of(
    scalars,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=8,
    ),
)


def places(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    """Where something stands in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (*steps, step)
        yield from places(inner, (*steps, step))


def _at(document: Any, steps: Steps) -> Any:
    for step in steps:
        document = document[step]
    return document


def _many(value: Any, times: int) -> Any:
    """Much more of the same: of a list its entries, of a mapping its keys under other names, of a text its characters."""
    if isinstance(value, list):
        return (value or [{}]) * times
    if isinstance(value, dict):
        first = next(iter(value.values()), "x")
        return value | {f"k{number}": first for number in range(times)}
    return str(value) * times


@st.composite
def spoiled(draw: st.DrawFn, whole: Any) -> Any:
    """A document with one to six places changed: replaced, removed, many times over, or taken from elsewhere in it."""
    document = copy.deepcopy(whole)
    is_large = False  # a thousand times a thousand would be refused for its size alone
    for _ in range(draw(st.integers(1, 6))):
        there = list(places(document))
        if not there:
            break
        *around, last = draw(st.sampled_from(there))
        parent = _at(document, tuple(around))
        match draw(st.sampled_from(["junk", "junk", "junk", "gone", "many", "elsewhere"])):
            case "junk":
                parent[last] = copy.deepcopy(draw(junk))  # which later changes may be within
            case "gone":
                del parent[last]
            case "many" if not is_large:
                is_large = True
                parent[last] = _many(parent[last], draw(st.sampled_from([2, 50, 1000])))
            case _:
                parent[last] = copy.deepcopy(_at(document, draw(st.sampled_from(there))))
    return document


@st.composite
def torn(draw: st.DrawFn, texts: st.SearchStrategy[bytes]) -> bytes:
    """Bytes as they are, or cut off, or with something in their midst."""
    text = draw(texts)
    at = draw(st.integers(0, len(text)))
    match draw(st.sampled_from(["whole", "whole", "whole", "cut", "into"])):
        case "cut":
            return text[:at]
        case "into":
            return text[:at] + draw(st.binary(max_size=6)) + text[at + draw(st.integers(0, 3)) :]
    return text


def _as_yaml(document: Any) -> bytes:
    return yaml.safe_dump(document, allow_unicode=True).encode(errors="replace")


def _as_list(items: Any) -> bytes:
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


dumps = torn(spoiled(objects()).map(_as_list) | spoiled(objects()).map(_as_yaml))
configurations = torn(spoiled(configuration()).map(_as_yaml))
price_files = torn(spoiled(prices()).map(_as_yaml))

watch_events = st.lists(
    st.tuples(st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), st.sampled_from(objects()).flatmap(spoiled)),
    max_size=12,
)

_METHODS = st.sampled_from(["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "CONNECT", "get", "", "G\x00T"])
_PATHS = st.sampled_from(
    ["/", "/healthz", "/readyz", "/metrics", "/planz", "/snapshotz", "/api/optimize", "/api/migrate", "/api/migrate/1", "*",
     "//planz", "/healthz/../planz", "/%2e%2e/planz", "http://elsewhere/planz", "/api/migrate/\x00", "/é", "/planz?token=x"]
)  # fmt: skip
_HEADERS = st.sampled_from(
    ["Host: 127.0.0.1", "Host: ", "Content-Length: 0", "Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999",
     "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Expect: 100-continue", "Connection: close", "Upgrade: h2c",
     "Connection: Upgrade", "Upgrade: websocket", "Authorization: Bearer ", "Authorization: Bearer é", "Authorization: Basic eA==",
     "Origin: null", "Content-Type: application/json", "Content-Type: text/plain", "X" * 9000 + ": y", "X: " + "y" * 70_000,
     " folded", "no colon", "Range: bytes=0-", "Accept-Encoding: gzip", "Content-Encoding: gzip"]
)  # fmt: skip


@st.composite
def _request(draw: st.DrawFn) -> bytes:
    path = draw(_PATHS | st.text(max_size=30).map(lambda text: f"/{text}"))
    version = draw(st.sampled_from(["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", ""]))
    headers = draw(st.lists(_HEADERS, max_size=5))
    end = draw(st.sampled_from(["\r\n", "\r\n", "\n", "\r"]))
    head = end.join([f"{draw(_METHODS)} {path} {version}", *headers, "", ""])
    body = draw(
        st.sampled_from([b"", b"{}", b"5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffff\r\n", b"0\r\n\r\n"]) | st.binary()
    )
    return head.encode(errors="replace") + body


requests = torn(st.lists(_request(), min_size=1, max_size=3).map(b"".join))
