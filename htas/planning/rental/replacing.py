"""What a smaller machine for what is left on a node saves, once it pays for itself.

Two conditions, both in price × billed seconds. What is saved until the work ends must exceed what both cost side by
side at least twice, for work may end sooner than it is expected to. And what was wasted so far, while the node
was under-used, must have come to as much: whoever rents on until then, and only then changes, pays no more than twice
what foresight would have (ski rental). Room that is in use again soon wastes little, and no machine is
changed for it. There is no constant in it: a machine a third as dear is taken after 65 s, one a tenth cheaper after
twenty minutes.
"""

from __future__ import annotations

from dataclasses import replace

from htas.planning.rental.bills import RunningBill


def pays(bill: RunningBill, price: int, now: float, *, left_s: float, change_s: float, wasted_s: float) -> bool:
    """Whether a machine of `price` an hour should take over what is left for `left_s`.

    `change_s` is from its order until the moves are done, while both are paid; `wasted_s` is how long the other one
    has been under-used.
    """
    new = replace(bill, price=price, since=now, cap=None)
    kept = bill.seconds_in(now, left_s) - bill.seconds_in(now, change_s)
    saved = bill.price * kept - price * new.seconds_in(now, max(left_s, change_s))
    twice = price * new.seconds_in(now, change_s)
    return saved > twice and (bill.price - price) * int(wasted_s) >= twice
