"""The difference between a recorded plan and one made again."""

from __future__ import annotations

from collections import Counter

import msgspec

from htas.model.plan import Plan


def differences(recorded: Plan, again: Plan) -> list[str]:
    """Differences in words, part by part in the plan's order (its memory last); empty when the plans are equal."""
    found = []
    for name in Plan.__struct_fields__:
        old, new = getattr(recorded, name), getattr(again, name)
        if old == new:
            continue
        if isinstance(old, tuple):
            found += _differing_items(name, old, new)
        else:
            found.append(f"{name}: recorded {_text(old)}, now {_text(new)}")
    return found


def _differing_items(name: str, old: tuple[object, ...], new: tuple[object, ...]) -> list[str]:
    """What one list has and the other has not, each as often as it is missing: 100,000 binds are told apart at once."""
    was, now = Counter(map(_text, old)), Counter(map(_text, new))
    lost = [f"{name}: recorded only: {item}" for item in (was - now).elements()]
    come = [f"{name}: now only: {item}" for item in (now - was).elements()]
    return lost + come or [f"{name}: another order"]


def _text(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()
