"""Which namespaces a selector chooses, by the labels that they have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from htas.model.selectors import LabelSelector, Operator, Requirement


class NamespaceIndex:
    """Namespaces by label. A selector costs what it asks for, not what there is: 16 terms of 500 pods over 3,000
    namespaces of 50 labels took two minutes one by one.
    """

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._labels = namespaces
        self._all = frozenset(namespaces)
        self._chosen: dict[LabelSelector, frozenset[str]] = {}
        self._with_key: dict[str, set[str]] | None = None
        self._with_label: dict[tuple[str, str], set[str]] = {}

    def chosen(self, selector: LabelSelector) -> frozenset[str]:
        """The names of the namespaces that a selector takes."""
        found = self._chosen.get(selector)
        if found is None:
            found = self._chosen[selector] = self._choose(selector)
        return found

    def _choose(self, selector: LabelSelector) -> frozenset[str]:
        found = self._all
        for requirement in selector.requirements:
            if not found:
                break
            found = self._narrowed(found, requirement)
        return found

    def _narrowed(self, found: frozenset[str], requirement: Requirement) -> frozenset[str]:
        """Those of some namespaces that meet a requirement; the same object where all do."""
        with_key = self._indexed()
        match requirement.operator:
            case Operator.IN:
                return found & self._with_values(requirement)
            case Operator.NOT_IN:
                without = self._with_values(requirement)
                return found - without if without else found
            case Operator.EXISTS:
                return found & with_key.get(requirement.key, set())
            case Operator.DOES_NOT_EXIST:
                having = with_key.get(requirement.key)
                return found - having if having else found
        return frozenset(name for name in found if requirement.holds_for(self._labels[name].get(requirement.key)))

    def _with_values(self, requirement: Requirement) -> set[str]:
        found: set[str] = set()
        for value in requirement.values:
            found |= self._with_label.get((requirement.key, value), set())
        return found

    def _indexed(self) -> dict[str, set[str]]:
        """Names by label key; made once somebody asks, as few do."""
        if self._with_key is None:
            self._with_key = defaultdict(set)
            for name, labels in self._labels.items():
                for key, value in labels.items():
                    self._with_key[key].add(name)
                    self._with_label.setdefault((key, value), set()).add(name)
        return self._with_key
