"""Attacks on `htas run` as a process, over a sandbox that is served to it: some 10 s each where the cores are busy."""

from __future__ import annotations

import pytest

from tools.adversary import processes
from tools.adversary.attack import Attack

ATTACKS = processes.attacks()


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_it_is_withstood(attack: Attack) -> None:
    assert attack.run().faults == ()
