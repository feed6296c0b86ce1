"""The long attacks: a day without a delete, 20,000 jobs at once, thousands of connections, calls of every kind."""

from __future__ import annotations

import pytest

from tools.adversary import cloud, processes
from tools.adversary.attack import Attack
from tools.adversary.every import attacks

pytestmark = pytest.mark.timeout(600)
"""Twenty thousand jobs, played to their end, take 107 s of a core alone and have taken more than 240 s beside other stories."""
ANSWERS = [attack.name for attack in cloud.attacks() if attack.is_long]
ELSEWHERE = {attack.name for attack in processes.attacks()}
LEFT_OUT = ({*ANSWERS} - {*ANSWERS[::19]}) | ELSEWHERE
"""Of 380 crooked answers each nineteenth is tried; `python -m tools.adversary --long` tries all, which takes minutes. Those on processes are in a module of their own."""
PICKED = [attack for attack in attacks() if attack.is_long and attack.name not in LEFT_OUT]


@pytest.mark.parametrize("attack", PICKED, ids=[attack.name for attack in PICKED])
def test_it_is_withstood(attack: Attack) -> None:
    assert attack.run().faults == ()
