"""Where in a file a key stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from htas.config.document import Document


class Counted(list[Any]):
    """A list that knows how often it was walked through."""

    walks = 0

    def __iter__(self) -> Iterator[Any]:
        self.walks += 1
        return super().__iter__()


def document_of(text: str) -> tuple[Document, Counted]:
    root = yaml.compose(text, yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    root.value = Counted(root.value)
    return Document("htas.yaml", root, yaml.safe_load(text)), root.value


def test_a_thousand_keys_are_placed_in_one_walk_through_the_file() -> None:
    document, entries = document_of("".join(f"key{number}: 1\n" for number in range(1000)))
    assert [document.place((f"key{number}",)) for number in (0, 999)] == ["htas.yaml:1 key0", "htas.yaml:1000 key999"]
    for number in range(1000):
        document.place((f"key{number}",))
    assert entries.walks == 1


@pytest.mark.parametrize(
    ("steps", "where"),
    [
        pytest.param(("a", 1, "b"), "htas.yaml:3 a[1].b", id="in a list"),
        pytest.param(("a", 1, "c"), "htas.yaml:3 a[1].c", id="a missing key: where its mapping is"),
        pytest.param(("a", 7), "htas.yaml:1 a[7]", id="beyond the end of a list: where the list's key is"),
        pytest.param((1,), "htas.yaml:1 [1]", id="a place in what is no list: where the mapping is"),
    ],
)
def test_a_place_is_that_of_the_nearest_key_there_is(steps: tuple[str | int, ...], where: str) -> None:
    document, _ = document_of("a:\n- x: 1\n- b: 2\n'1': 3\n")
    assert document.place(steps) == where
