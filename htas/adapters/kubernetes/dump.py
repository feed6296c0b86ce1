"""A dump: what `kubectl get nodes,pods,… -A -o json` prints, or YAML, or one JSON object after another."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import yaml

from htas.adapters.kubernetes import wire
from htas.adapters.kubernetes.view import ViewBuilder
from htas.model.snapshot import ClusterView
from htas.ports import HTASError


class DumpError(HTASError):
    """The text is neither JSON nor YAML."""


def read_dump(text: bytes, name: str) -> ClusterView:
    """The view of a dump; `name` (its file) leads the place of every problem. Raises DumpError."""
    builder = ViewBuilder(source=f"{name}: ")
    for document, place in _documents(text, name):
        for raw, where in _items(document, place):
            builder.add(raw, where)
    return builder.view()


def _documents(text: bytes, name: str) -> Iterator[tuple[bytes, str]]:
    if not text.strip():
        raise DumpError(f"{name}: empty; write it with: kubectl get nodes,pods,pdb,pv,pvc -A -o json")
    if text.lstrip()[:1] in (b"{", b"["):
        yield from _json_documents(text, name)
    else:
        yield from _yaml_documents(text, name)


def _json_documents(text: bytes, name: str) -> Iterator[tuple[bytes, str]]:
    """One JSON value after another. The common case, one List, is decoded without being split."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:
        pass
    else:
        yield text, "document 1"
        return
    decoder, rest, number = json.JSONDecoder(), text.decode(errors="replace"), 0
    at = 0
    while at < len(rest):
        number += 1
        try:
            _, end = decoder.raw_decode(rest, at)
        except json.JSONDecodeError as error:
            raise DumpError(f"{name}:{error.lineno}:{error.colno}: malformed JSON: {error.msg}") from None
        yield rest[at:end].encode(), f"document {number}"
        at = end + len(rest[end:]) - len(rest[end:].lstrip())


def _yaml_documents(text: bytes, name: str) -> Iterator[tuple[bytes, str]]:
    try:
        for number, document in enumerate(yaml.load_all(text, Loader=_Texts), 1):
            if isinstance(document, dict):
                yield msgspec.json.encode(document), f"document {number}"
            elif document is not None:
                raise DumpError(f"{name}: document {number} is {type(document).__name__}, not a Kubernetes object")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark is not None else "1:1"
        raise DumpError(f"{name}:{place}: malformed YAML: {error.problem}") from None


def _items(document: bytes, place: str) -> Iterator[tuple[bytes | msgspec.Raw, str]]:
    """The objects of a List, or the object itself."""
    if document.lstrip()[:1] == b"[":
        for i, item in enumerate(msgspec.json.decode(document, type=list[msgspec.Raw])):
            yield item, f"{place}[{i}]"
        return
    try:
        head = msgspec.json.decode(document, type=wire.ListHead)
    except msgspec.ValidationError:
        yield document, place
        return
    if head.items is None or not head.kind.endswith("List"):
        yield document, place
        return
    kind = head.kind.removesuffix("List")
    for i, item in enumerate(head.items):
        yield (_with_kind(item, kind) if kind else item), f"items[{i}]"


def _with_kind(item: msgspec.Raw, kind: str) -> bytes | msgspec.Raw:
    """Items of a typed list (PodList) carry no kind of their own."""
    if msgspec.json.decode(item, type=wire.Head).kind:
        return item
    return msgspec.json.encode({"kind": kind, **msgspec.json.decode(item)})


class _Texts(yaml.CSafeLoader):
    """YAML with instants left as text, as JSON has them."""


_Texts.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
