"""A dump: what `kubectl get nodes,pods,… -A -o json` prints, or YAML, or one JSON object after another."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping

import msgspec
import yaml

from htas.adapters.kubernetes.dump_view import ViewBuilder
from htas.adapters.kubernetes.gaps import ALL, Gap, gaps
from htas.adapters.kubernetes.instants import Instant
from htas.model.resources import Resources
from htas.model.snapshot import ClusterView
from htas.ports import HTASError
from htas.yaml_bounds import YamlBoundsError, check

_BYTE = re.compile(r"\(byte (\d+)\)$")
_LOGS = b"==== START logs for container"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DOCUMENTS = msgspec.json.Decoder(msgspec.Raw)


COMMAND = f"kubectl get {ALL} -A -o json"


class DumpError(HTASError):
    """The text is neither JSON nor YAML; the message begins with its place, `name:line:column`."""


class Dump(msgspec.Struct, frozen=True):
    """A dump as it was read: the cluster, the newest instant in it, and what it lacks.

    `machines` are the nodes' capacities by name, where they state them: what a machine has before anything is reserved.
    """

    view: ClusterView
    newest: Instant
    gaps: tuple[Gap, ...] = ()
    machines: Mapping[str, Resources] = {}
    ended: Mapping[str, str] = {}
    """The phases of pods that have ended, by namespace/name: they are not in the view."""
    other_kinds: tuple[str, ...] = ()
    """What it holds that HTAS does not read."""


def read_dump(text: bytes, name: str) -> ClusterView:
    """The view of a dump alone: see `read_whole`."""
    return read_whole(text, name).view


def read_whole(text: bytes, name: str) -> Dump:
    """What a dump holds; `name` (its file) leads the place of every problem.

    Raises DumpError on text that is no JSON and no YAML. Objects that cannot be understood are left out and told in
    the view's problems.
    """
    builder = ViewBuilder(source=f"{name}: ")
    documents = list(_documents(_utf_8(text, name), name))
    for number, document in enumerate(documents, 1):
        builder.add(document, f"document {number}" if len(documents) > 1 else "")
    view = builder.view()
    return Dump(
        view,
        builder.newest,
        gaps(view, builder.kinds, has_empty_list=builder.has_empty_list),
        builder.capacities(),
        builder.ended(),
        builder.other_kinds,
    )


def _utf_8(text: bytes, name: str) -> bytes:
    """Without a byte order mark; Windows PowerShell writes what it redirects as UTF-16."""
    if not text.startswith(_UTF_16):
        return text.removeprefix(codecs.BOM_UTF8)
    try:
        return text.decode("utf-16").encode()
    except UnicodeDecodeError as error:
        raise DumpError(f"{name}: begins as UTF-16 and is not: {error.reason} at byte {error.start}") from None


def _documents(text: bytes, name: str) -> Iterator[bytes | msgspec.Raw]:
    start = text[:4096].lstrip()[:1] or text.lstrip()[:1]
    if not start:
        raise DumpError(f"{name}: empty; write it with: {COMMAND}")
    try:
        yield from _json_documents(text, name) if start in b"{[" else _yaml_documents(text, name)
    except RecursionError:
        raise DumpError(f"{name}: nested too deeply for a Kubernetes object") from None


def _json_documents(text: bytes, name: str) -> Iterator[bytes | msgspec.Raw]:
    """The values of a JSON text, whatever white space is between them; a list's items are values of their own."""
    try:
        documents = _DOCUMENTS.decode_lines(text)
    except msgspec.DecodeError as error:
        at = _BYTE.search(str(error))
        hint = f"; cluster-info dump writes logs between its objects, use: {COMMAND}" if _LOGS in text else ""
        place = _place(text, int(at[1]) if at else len(text), name)
        raise DumpError(f"{place}: {_complaint(error)}{hint}") from None
    for document in documents:
        if len(memoryview(document)) < 64 and bytes(document).strip(b"{} \t\r\n") == b"":
            raise DumpError(f"{name}: holds an empty object {{}}; write it with: {COMMAND}")
        if bytes(memoryview(document)[:1]) == b"[":
            yield from msgspec.json.decode(document, type=list[msgspec.Raw])
        else:
            yield document


def _place(text: bytes, offset: int, name: str) -> str:
    line = text.count(b"\n", 0, offset) + 1
    return f"{name}:{line}:{offset - text.rfind(chr(10).encode(), 0, offset)}"


def _complaint(error: msgspec.DecodeError) -> str:
    what = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ").strip()
    return f"malformed JSON: {what[:1].lower()}{what[1:]}"


def _yaml_documents(text: bytes, name: str) -> Iterator[bytes]:
    number = 0
    try:
        check(text)
        for number, document in enumerate(yaml.load_all(text, Loader=_Texts), 1):
            if isinstance(document, dict):
                yield _as_json(document, f"{name}: document {number}")
            elif document is not None:
                raise DumpError(f"{name}: document {number} is {type(document).__name__}, not a Kubernetes object")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark is not None else "1:1"
        raise DumpError(f"{name}:{place}: malformed YAML: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise DumpError(f"{_place(text, error.position, name)}: malformed YAML: {error.reason}") from None
    except YamlBoundsError as error:
        raise DumpError(f"{name}:{error.line}: {error.why}. Write the dump with: {COMMAND}") from None
    except ValueError as error:  # Python refuses numbers of more than 4,300 digits
        raise DumpError(f"{name}: document {number + 1} is no Kubernetes object: {error}") from None


def _as_json(document: object, place: str) -> bytes:
    try:
        return msgspec.json.encode(document)
    except TypeError as error:  # a key that is no text, as in `true: 1`
        raise DumpError(f"{place} is no Kubernetes object: {error}") from None


class _Texts(yaml.CSafeLoader):
    """YAML with instants left as text, as JSON has them."""


_Texts.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
