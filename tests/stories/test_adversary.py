"""The quick attacks: tenants, the network, lying clouds, spoiled disks, stepped clocks, crowds."""

from __future__ import annotations

import pytest

from tools.adversary.attack import Attack
from tools.adversary.every import attacks

QUICK = [attack for attack in attacks() if not attack.is_long]


@pytest.mark.parametrize("attack", QUICK, ids=[attack.name for attack in QUICK])
def test_it_is_withstood(attack: Attack) -> None:
    assert attack.run().faults == ()


def test_each_attack_has_a_name_of_its_own() -> None:
    names = [attack.name for attack in attacks()]
    assert len(set(names)) == len(names)
