"""Which flavour a node is taken for that does not tell."""

from __future__ import annotations

import pytest

from htas.model.flavours import Catalogue, Flavour
from htas.model.nodes import INSTANCE_TYPE_LABEL, Node
from htas.model.resources import Resources
from htas.planning.what_if.recognising import OLD_LABEL, Recognised, nearest, recognise, size_text, unlike_their_flavour

GIB = 2**30


def size(cores: float, gib: float, **devices: int) -> Resources:
    return Resources(int(cores * 1000), int(gib * GIB), 0, 110, tuple(sorted(devices.items())))


CATALOGUE = Catalogue(
    (
        Flavour("small", size(2, 8), 100),
        Flavour("wide", size(4, 8), 150),
        Flavour("large", size(4, 16), 200),
        Flavour("large-ssd", size(4, 16), 250),
        Flavour("gpu", size(4, 16, gpu=1), 900),
    )
)


@pytest.mark.parametrize(
    ("labels", "machine", "offered", "taken_for"),
    [
        pytest.param({}, size(2, 7.75), size(1.9, 7.2), "small", id="a machine of its cores and nearly its memory"),
        pytest.param({}, size(2, 8), size(2, 8), "small", id="one that shows all its memory"),
        pytest.param({}, size(4, 7.7), size(3.9, 7), "wide", id="the one of two with its memory"),
        pytest.param({}, size(4, 15.6), size(3.9, 15), "large", id="the cheaper of two as large"),
        pytest.param({}, size(4, 15.6, gpu=1), size(3.9, 15, gpu=1), "gpu", id="one with its device"),
        pytest.param({}, size(4, 15.6, fuse=100), size(3.9, 15), "large", id="a device that no flavour has was set up"),
        pytest.param({}, size(3, 7.75), size(2.9, 7.2), None, id="no flavour has three cores"),
        pytest.param({}, size(2, 5), size(2, 4.5), None, id="too little memory for any of its cores"),
        pytest.param({}, size(2, 8.1), size(2, 8), None, id="more memory than the flavour"),
        pytest.param({}, None, size(1.9, 7.2), "small", id="only what it offers to pods is known"),
        pytest.param({}, None, size(1.2, 7.2), None, id="that is too little of a flavour"),
        pytest.param({INSTANCE_TYPE_LABEL: "k3s"}, size(2, 7.75), size(2, 7), "small", id="k3s writes its own name there"),
        pytest.param({INSTANCE_TYPE_LABEL: "wide"}, size(2, 7.75), size(2, 7), "wide", id="what the label says stands"),
        pytest.param({OLD_LABEL: "wide"}, size(2, 7.75), size(2, 7), "wide", id="the label of old clusters, too"),
    ],
)  # fmt: skip
def test_a_node_is_taken_for_a_flavour(
    labels: dict[str, str], machine: Resources | None, offered: Resources, taken_for: str | None
) -> None:
    node = Node("n", offered, labels=labels)
    (seen,), told = recognise([node], {"n": machine} if machine is not None else {}, CATALOGUE)
    assert seen.flavour == taken_for
    assert bool(told) == (taken_for is not None and not (set(labels) and taken_for in labels.values()))


def test_others_as_large_for_another_price_are_told() -> None:
    _, told = recognise([Node("n", size(4, 15))], {"n": size(4, 15.6)}, CATALOGUE)
    assert told == (Recognised("n", "large", is_stated=False, others=("large-ssd",)),)


def test_what_is_stated_goes_before_label_and_size() -> None:
    nodes = [Node(name, size(2, 8), labels={INSTANCE_TYPE_LABEL: "small"}) for name in ("a-1", "a-2", "b-1")]
    seen, told = recognise(nodes, {}, CATALOGUE, [("a-1", "large"), ("a-*", "wide")])
    assert [node.flavour for node in seen] == ["large", "wide", "small"]
    assert told == (Recognised("a-1", "large", is_stated=True), Recognised("a-2", "wide", is_stated=True))


def test_types_that_the_price_file_has_for_no_node_are_passed_over() -> None:
    """A distribution that labels all of its nodes alike; one label that means something, and all stand."""
    odd = Node("odd", size(2, 7), labels={INSTANCE_TYPE_LABEL: "bare-metal"})
    (seen,), told = recognise([odd], {"odd": size(2, 7.75)}, CATALOGUE)
    assert seen.flavour == "small"
    assert told == (Recognised("odd", "small", is_stated=False, labelled="bare-metal"),)
    known = Node("known", size(4, 15), labels={INSTANCE_TYPE_LABEL: "large"})
    (seen, _), told = recognise([odd, known], {}, CATALOGUE)
    assert (seen.flavour, told) == ("bare-metal", ())


@pytest.mark.parametrize(
    ("machine", "is_told"),
    [
        pytest.param(size(4, 15.6), False, id="nearly all of its memory"),
        pytest.param(size(4, 32 * 1024), True, id="a thousand times its memory"),
        pytest.param(size(2, 15.6), True, id="half of its cores"),
        pytest.param(size(4, 8), True, id="half of its memory"),
    ],
)
def test_a_node_that_does_not_look_like_its_flavour_is_told(machine: Resources, is_told: bool) -> None:
    node = Node("n", machine, labels={INSTANCE_TYPE_LABEL: "large"})
    told = unlike_their_flavour([node], {"n": machine}, CATALOGUE)
    assert [(each.has, each.flavour_has) for each in told] == [(size_text(machine), "4 cores and 16Gi")] * is_told


def test_the_nearest_flavour_is_that_of_the_closest_size() -> None:
    assert nearest(size(4, 32 * 1024), CATALOGUE).name in ("gpu", "large", "large-ssd")
    assert nearest(size(3, 7.5), CATALOGUE).name == "wide"
    assert size_text(size(8, 31 * 1024)) == "8 cores and 31Ti"
