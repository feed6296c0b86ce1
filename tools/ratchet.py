"""Fail where a size of HTAS is above the one recorded in ratchet.toml: `python -m tools.ratchet [--write]`."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tomllib import loads

import msgspec
from pydantic import BaseModel

from htas.config.catalogue import CatalogueSetting
from htas.config.settings import Configuration
from tools.site.configuration import section_in

ROOT = Path(__file__).resolve().parents[1]
RECORD = "ratchet.toml"
PLANNING, SOLVERS = Path("htas/planning"), Path("htas/planning/solvers")
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
_SUPPRESSION = re.compile(r"#\s*(?:ruff:\s*)?(?:noqa|type:\s*ignore)\b")

WHAT: Mapping[str, str] = {
    "lines": "lines of htas/",
    "modules": "modules of htas/",
    "configuration-keys": "keys of the configuration",
    "price-file-keys": "keys of the price file",
    "planning-constants": "numbers that are constants of modules in htas/planning, solvers aside",
    "solver-constants": "the same in htas/planning/solvers",
    "suppressions": "noqa and type: ignore in htas/",
}


class Raised(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that may be greater than it was, for a feature."""

    what: str
    by: int
    feature: str
    reason: str


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """ratchet.toml: the limit of a number is its base and all that it was raised by."""

    base: dict[str, int]
    raised: tuple[Raised, ...] = ()

    def limit(self, what: str) -> int:
        """The most that a number may be."""
        return self.base[what] + self._by(what)

    def base_for(self, what: str, number: int) -> int:
        """The base with which the limit is this number."""
        return number - self._by(what)

    def _by(self, what: str) -> int:
        return sum(each.by for each in self.raised if each.what == what)


def read(text: str) -> Record:
    """The record of a file's text; raises ValueError where it lacks a number, a feature or a reason."""
    record = msgspec.convert(loads(text), Record)
    if missing := WHAT.keys() ^ record.base.keys():
        raise ValueError(f"[base] must have {', '.join(WHAT)}; check {', '.join(sorted(missing))}")
    for each in record.raised:
        if each.what not in WHAT or not each.feature.strip() or not each.reason.strip() or each.by <= 0:
            raise ValueError(f"[[raised]] needs a known `what`, `by` above 0, a feature and a reason: {each}")
    return record


def counted(root: Path) -> dict[str, int]:
    """Today's numbers, in the order of WHAT."""
    texts = {path.relative_to(root): path.read_text(encoding="utf-8") for path in sorted(root.glob("htas/**/*.py"))}
    planning = {path: constants(text) for path, text in texts.items() if path.is_relative_to(PLANNING)}
    in_solvers = sum(count for path, count in planning.items() if path.is_relative_to(SOLVERS))
    numbers = (
        sum(text.count("\n") for text in texts.values()),
        len(texts),
        keys(Configuration),
        keys(CatalogueSetting),
        sum(planning.values()) - in_solvers,
        in_solvers,
        sum(len(_SUPPRESSION.findall(text)) for text in texts.values()),
    )
    return dict(zip(WHAT, numbers, strict=True))


def keys(model: type[BaseModel]) -> int:
    """How many keys a file of that form has, those of its sections included; sections themselves do not count."""
    sections = (section_in(field.annotation) for field in model.model_fields.values())
    return sum(1 if section is None else keys(section) for section in sections)


def constants(text: str) -> int:
    """How many constants of a module are numbers, or arithmetic of numbers and constants."""
    return sum(_is_number(value) for _, value in _assigned(ast.parse(text)))


def _assigned(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in module.body:
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from _pairs(statement.target, statement.value)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from _pairs(target, statement.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Each constant's name and value; `A, B = 1, 2` has two."""
    if isinstance(target, ast.Name) and _CONSTANT.fullmatch(target.id):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for each, its in zip(target.elts, value.elts, strict=False):
            yield from _pairs(each, its)


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.BinOp(left=left, right=right):
            return any(map(_is_number, (left, right))) and all(map(_is_operand, (left, right)))
        case _:
            return False


def _is_operand(value: ast.expr) -> bool:
    is_constant = isinstance(value, ast.Name) and _CONSTANT.fullmatch(value.id) is not None
    return is_constant or _is_number(value)


def judged(record: Record, numbers: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """What is above its limit, with what to do, and what is below."""
    above, below = list[str](), list[str]()
    for what, number in numbers.items():
        limit = record.limit(what)
        if number > limit:
            above.append(
                f"{WHAT[what]}: {number:,}, and {RECORD} allows {limit:,}. Make it {number - limit:,} less; or, if a"
                f" feature needs it, add to {RECORD}:\n"
                f'[[raised]]\nwhat = "{what}"\nby = {number - limit}\nfeature = "…"\nreason = "…"'
            )
        elif number < limit:
            below.append(f"{WHAT[what]}: {number:,}, and {RECORD} allows {limit:,}")
    return above, below


def lowered(text: str, record: Record, numbers: Mapping[str, int]) -> str:
    """The file's text with each number that is lower now."""
    for what, number in numbers.items():
        if number < record.limit(what):
            text = re.sub(rf"^{what} = -?\d+", f"{what} = {record.base_for(what, number)}", text, flags=re.MULTILINE)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the numbers that are lower now")
    chosen = parser.parse_args(arguments)
    file = ROOT / RECORD
    text = file.read_text(encoding="utf-8")
    record, numbers = read(text), counted(ROOT)
    above, below = judged(record, numbers)
    if chosen.write:
        file.write_text(lowered(text, record, numbers), encoding="utf-8")
    for each in (*above, *below):
        print(each)
    if below:
        print("Recorded." if chosen.write else "Record what is lower: python -m tools.ratchet --write")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
