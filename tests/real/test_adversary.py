"""The long attacks: a day without a delete, 20,000 jobs at once, thousands of connections, calls of every kind."""

from __future__ import annotations

import pytest

from tools.adversary.attack import Attack
from tools.adversary.every import attacks

LONG = [attack for attack in attacks() if attack.is_long]
ANSWERS = [attack for attack in LONG if " is answered: " in attack.name]
PICKED = [attack for attack in LONG if attack not in ANSWERS or ANSWERS.index(attack) % 7 == 0]
"""Of 380 crooked answers each seventh, all of which `python -m tools.adversary --long` tries: the rest takes minutes."""


@pytest.mark.parametrize("attack", PICKED, ids=[attack.name for attack in PICKED])
def test_it_is_withstood(attack: Attack) -> None:
    assert attack.run().faults == ()
