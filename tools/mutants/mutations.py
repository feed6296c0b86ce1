"""Where a module can be broken, and how."""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import msgspec
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

Place = tuple[tuple[int, int], tuple[int, int]]
"""(line, column) of the first character and behind the last one."""

SAME = ("_Is_Eq", "_IsNot_NotEq", "_Eq_Is", "_NotEq_IsNot")
"""Of None and of an enumeration's members `is` and `==` say the same: no test could tell."""

REMEMBER = ("cache", "lru_cache", "abstractmethod", "override")
"""Decorators without which a function returns the same: later, or checked less."""
TYPES = ("Callable", "tuple", "list", "dict", "set", "frozenset", "Mapping", "Sequence", "NDArray", "Iterable")
"""What names of types are made of, at the top of a module: `Rows = tuple[int, ...]`."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module: the `occurrence`-th place at which cosmic-ray's operator can act."""

    module: str
    line: int
    last_line: int
    operator: str
    occurrence: int

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line} {self.operator.removeprefix('core/')} {self.occurrence}"

    def source(self, root: Path) -> str:
        """The module's text with the change made."""
        return _mutated((root / self.module).read_text(), self)

    def is_python(self, root: Path) -> bool:
        """Whether what comes of it can be compiled: the bare `*` of a signature is taken for a product."""
        try:
            ast.parse(self.source(root))
        except SyntaxError:
            return False
        return True


@cache
def _mutated(text: str, mutant: Mutant) -> str:
    mutated = mutate_code(text, get_operator(mutant.operator)(), mutant.occurrence)
    if mutated is None:
        raise ValueError(f"{mutant.name}: nothing to change; has the module been edited meanwhile?")
    return str(mutated)


def sample(root: Path, modules: list[str], count: int, seed: int, known: Path | None = None) -> list[Mutant]:
    """So many places, drawn from all, and for each one of its changes.

    Places are drawn first: a sum can be changed in eleven ways and a comparison in seven, and would else be most of it.
    A larger sample of the same seed begins with the smaller one. What is not Python any more is no mutant: whoever
    imports it would notice. In `known` the places of modules are kept, which take half a minute to find.
    """
    places = [found for module in sorted(modules) for found in _kept_places(root, module, known)]
    random = Random(seed)
    random.shuffle(places)
    chosen = (random.choice(changes) for changes in places)
    return list(islice((each for each in chosen if each.is_python(root)), count))


def _kept_places(root: Path, module: str, known: Path | None) -> list[list[Mutant]]:
    if known is None:
        return _places(root, module)
    text = (root / module).read_bytes()
    file = known / f"{hashlib.sha256(module.encode() + RULES + text).hexdigest()[:16]}.json"
    if not file.exists():
        known.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode(_places(root, module)))
    return msgspec.json.decode(file.read_bytes(), type=list[list[Mutant]])


def _places(root: Path, module: str) -> list[list[Mutant]]:
    passed_over = list(_without_effect((root / module).read_text()))
    found: dict[Place, list[Mutant]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast_from_path(root / module)))
    for name in operator_names():
        if name.endswith(SAME) or get_operator(name).arguments() or name == "core/NoOp":
            continue
        operator = get_operator(name)()
        positions = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(positions):
            if not any(first <= start and end <= last for first, last in passed_over):
                found[start, end].append(Mutant(module, start[0], end[0], name, occurrence))
    return [found[place] for place in sorted(found)]


def _without_effect(text: str) -> Iterator[Place]:
    """What no behaviour depends on, whole kinds of it.

    Annotations and names of types, which nobody evaluates, and what classes are declared to be: frozen, with slots.
    Decorators that remember results, and how many: they change speed alone. `strict` of a zip, which says of our own
    lists that they are of one length: nothing reads what would be cut off. Lines of the log. The work counted for a
    search's clock: how long it looks, not what it may find.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        parts: Sequence[ast.expr | None] = ()
        if isinstance(node, ast.AnnAssign | ast.arg):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [node.returns]
            yield from (_whole_line(each) for each in node.decorator_list if _named(each) in REMEMBER)
        elif isinstance(node, ast.Call):
            parts = _without_effect_in_call(node)
        elif isinstance(node, ast.ClassDef):
            parts = [keyword.value for keyword in node.keywords]
            yield from map(_whole_line, node.decorator_list)
        for each in parts:
            if each is not None and each.end_lineno is not None and each.end_col_offset is not None:
                yield (each.lineno, each.col_offset), (each.end_lineno, each.end_col_offset)
    for statement in tree.body:
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Subscript)
            and _named(statement.value) in TYPES
        ):
            yield _whole_line(statement.value)


def _without_effect_in_call(call: ast.Call) -> Sequence[ast.expr]:
    name = _named(call.func)
    if name == "cast" or name.startswith("log.") or name.endswith("clock.work"):
        return [call]
    return [keyword.value for keyword in call.keywords if name == "zip" and keyword.arg == "strict"]


def _named(node: ast.expr) -> str:
    """`a`, `a.b`; of a call or a subscript what is called or subscripted."""
    if isinstance(node, ast.Call):
        return _named(node.func)
    return ast.unparse(node.value if isinstance(node, ast.Subscript) else node)


def _whole_line(node: ast.expr) -> Place:
    """From the line's beginning, with an `@` there, to the end of its last one."""
    return (node.lineno, 0), ((node.end_lineno or node.lineno) + 1, 0)


RULES = Path(__file__).read_bytes()
"""What places depend on beside a module's text."""
