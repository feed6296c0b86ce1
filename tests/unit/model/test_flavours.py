"""Flavours beside each other, and beside the cloud's own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from htas.model.flavours import Catalogue, Flavour, MachineSize, differences, dominating
from tests.builders import make_flavour, no_schedule

GIB = 2**30
PLAIN = make_flavour("plain", "2", "4Gi", "0.10")


def other(cpu: str = "2", memory: str = "4Gi", price: str = "0.10", **fields: Any) -> Flavour:
    return msgspec.structs.replace(make_flavour("other", cpu, memory, price), **fields)


@pytest.mark.parametrize(
    ("rival", "beats"),
    [
        pytest.param(other(price="0.09"), True, id="the same for less"),
        pytest.param(other(memory="8Gi"), True, id="more for the same"),
        pytest.param(other(cpu="4", memory="8Gi", price="0.05"), True, id="more for less"),
        pytest.param(other(), False, id="its equal"),
        pytest.param(other(cpu="1", memory="8Gi", price="0.05"), False, id="cheaper, but with fewer cores"),
        pytest.param(other(cpu="4", memory="2Gi", price="0.05"), False, id="cheaper, but with less memory"),
        pytest.param(other(memory="8Gi", price="0.11"), False, id="larger, but dearer"),
        pytest.param(other(price="0.09", zones=("north",)), False, id="sold in one zone only"),
        pytest.param(other(price="0.09", taints=(no_schedule("gpu"),)), False, id="for pods that tolerate it"),
        pytest.param(other(price="0.09", stock=3), False, id="of which there are three"),
        pytest.param(other(price="0.09", labels={"disk": "ssd"}), True, id="with a label more"),
    ],
)
def test_what_makes_another_flavour_pointless(rival: Flavour, beats: bool) -> None:
    assert (dominating(PLAIN, [PLAIN, rival]) is rival) is beats


def test_a_flavour_with_a_label_or_device_of_its_own_is_never_pointless() -> None:
    special = msgspec.structs.replace(PLAIN, labels={"disk": "ssd"})
    assert dominating(special, [other(price="0.01")]) is None


def test_of_several_better_ones_the_cheapest_is_named() -> None:
    rivals = [other(price="0.09"), msgspec.structs.replace(other(price="0.05"), name="best")]
    found = dominating(PLAIN, rivals)
    assert found is not None
    assert found.name == "best"


def test_where_price_file_and_cloud_disagree() -> None:
    catalogue = Catalogue((PLAIN, make_flavour("gone", "1", "1Gi", "0.01"), make_flavour("odd", "4", "15Gi", "0.2")))
    sizes = [MachineSize("plain", 2000, 4 * GIB), MachineSize("odd", 4000, 16 * GIB), MachineSize("new", 1000, GIB)]
    assert differences(catalogue, sizes) == [
        "flavour gone: the cloud does not have it, so it is never launched",
        "flavour odd: the cloud says 4 cores, 16 GiB; the price file's size is wrong",
        "flavour new: has no price, so it is never launched",
    ]
