"""The difference between a recorded plan and one made again."""

from __future__ import annotations

import msgspec

from htas.model.plan import Plan


def differences(recorded: Plan, again: Plan) -> list[str]:
    """Differences in words, part by part; empty when the plans are equal."""
    found = []
    for name in Plan.__struct_fields__:
        old, new = getattr(recorded, name), getattr(again, name)
        if old == new:
            continue
        if isinstance(old, tuple):
            lost = [item for item in old if item not in new]
            come = [item for item in new if item not in old]
            found += [f"{name}: recorded only: {_text(item)}" for item in lost]
            found += [f"{name}: now only: {_text(item)}" for item in come]
            if not lost and not come:
                found.append(f"{name}: another order")
        else:
            found.append(f"{name}: recorded {_text(old)}, now {_text(new)}")
    return found


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
