"""A module broken in the memory of a process that has imported it: the code of its functions is exchanged."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from inspect import CO_OPTIMIZED
from types import CodeType, FunctionType

RUN_AT_ONCE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Functions that run where they stand: those of a module's or a class's body have run when it was imported."""

Changes = Mapping[CodeType, CodeType]
"""Code as it is, and as it is to be."""


def changed_functions(text: str, broken: str, file: str) -> Changes | None:
    """The functions whose code differs; None: what differs is run by the import, such as a default or a constant."""
    pairs: dict[CodeType, CodeType] = {}
    whole, other = (compile(each, file, "exec", dont_inherit=True) for each in (text, broken))
    return pairs if _is_within_functions(whole, other, pairs) and pairs else None


def _is_within_functions(code: CodeType, other: CodeType, pairs: dict[CodeType, CodeType]) -> bool:
    """Of the body of a module or class; collects what differs into `pairs`."""
    inner, others = list(_inner(code)), list(_inner(other))
    if _by_itself(code) != _by_itself(other) or len(inner) != len(others):
        return False
    for one, two in zip(inner, others, strict=True):
        if one.co_name in RUN_AT_ONCE:
            if one != two:
                return False
        elif one.co_flags & CO_OPTIMIZED:
            if one != two:
                pairs[one] = two
        elif not _is_within_functions(one, two, pairs):
            return False
    return True


def _inner(code: CodeType) -> Iterator[CodeType]:
    return (each for each in code.co_consts if isinstance(each, CodeType))


def _by_itself(code: CodeType) -> tuple[object, ...]:
    constants = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


class Functions:
    """All functions of modules that are imported now, by their code."""

    def __init__(self, modules: Iterable[str]) -> None:
        files = set(modules)
        self._by_code: dict[tuple[str, CodeType], list[FunctionType]] = {}
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename in files:
                self._by_code.setdefault((each.__code__.co_filename, each.__code__), []).append(each)

    def have(self, file: str, changes: Changes) -> bool:
        """Whether each is there as the module's text has it; not, where the module is not imported."""
        return all((file, code) in self._by_code for code in changes)

    def exchange(self, file: str, changes: Changes) -> None:
        for code, other in changes.items():
            for function in self._by_code[file, code]:
                function.__code__ = other
