"""Laws of cost sharing: the parts are the bill, asking for more never pays less, and no pod pays for another's time."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from htas.model.billing import Alignment, Billing, Cap
from htas.model.pods import WorkKind
from htas.model.record import Bill, Run
from htas.model.resources import MILLION, Resources, dominant_share, share_millionths
from htas.profiler import accounts
from htas.profiler.accounts import ALWAYS, Window
from htas.profiler.shares import by_work

Law = settings(max_examples=150, deadline=None, derandomize=True)
BILLINGS = st.builds(Billing, st.sampled_from([1, 60, 3600]), st.sampled_from([0, 60]), st.sampled_from(Alignment))
START, END = 1_790_000_000.0, 1_790_040_000.0
NOW = END + 10_000.0
INSTANTS = st.floats(START - 5000, END + 5000)
SHARES = st.integers(0, MILLION)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    came, ended = sorted((draw(INSTANTS), draw(INSTANTS)))
    name = draw(st.sampled_from("abc"))
    return Run(name, "p", "u", "n", WorkKind.BATCH, "Job/a", "", 1, 1, draw(SHARES), came, came, ended, "c")


BILLS = st.builds(
    Bill,
    st.just("c"),
    st.just("g"),
    st.just("f"),
    st.integers(1, 10**9),
    st.just(START),
    st.none() | st.floats(START, END),
    cap=st.none() | st.builds(Cap, st.integers(0, 10**10)),
)


def shared(bill: Bill, work: list[Run], billing: Billing, window: Window = ALWAYS) -> dict[str, int]:
    return by_work(lambda run: run.namespace, [bill], work, billing, NOW, window)


@Law
@given(BILLS, st.lists(runs(), max_size=8), BILLINGS, st.lists(INSTANTS, max_size=2))
def test_the_parts_are_the_bill_in_every_window(
    bill: Bill, work: list[Run], billing: Billing, cuts: list[float]
) -> None:
    for window in (ALWAYS, *(Window(*pair) for pair in pairwise(sorted(cuts)))):
        found = shared(bill, work, billing, window)
        assert sum(found.values()) == accounts.nano_seconds(bill, billing, NOW, window)
        assert min(found.values()) >= 0


@Law
@given(BILLS, st.lists(runs(), min_size=1, max_size=6), BILLINGS, SHARES)
def test_asking_for_more_never_pays_less_and_never_costs_the_others_more(
    bill: Bill, work: list[Run], billing: Billing, more: int
) -> None:
    one = msgspec.structs.replace(work[0], namespace="one")
    larger = msgspec.structs.replace(one, share_millionths=max(one.share_millionths, more))
    before, after = shared(bill, [one, *work[1:]], billing), shared(bill, [larger, *work[1:]], billing)
    assert after.get("one", 0) >= before.get("one", 0)
    assert all(after[name] <= before[name] for name in before if name != "one")


@Law
@given(BILLS, st.lists(runs(), max_size=6), BILLINGS)
def test_pods_without_requests_pay_nothing_and_change_nothing(bill: Bill, work: list[Run], billing: Billing) -> None:
    bare = [msgspec.structs.replace(run, namespace="bare", share_millionths=0) for run in work]
    found = shared(bill, [*work, *bare], billing)
    assert found.pop("bare", 0) == 0
    # The instants at which they come and go split the sums, which are rounded down piece by piece.
    apart = shared(bill, work, billing)
    assert found.keys() == apart.keys()
    price = bill.nanos_per_hour
    assert all(abs(found[name] - apart[name]) <= 4 * len(work) * (1 + price // MILLION) for name in found)


AMOUNTS = st.builds(
    lambda cpu, memory, disk, gpus: Resources.of(
        {"cpu": cpu, "memory": memory, "ephemeral-storage": disk, "pods": 1, "nvidia.com/gpu": gpus}
    ),
    st.integers(0, 10**5),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
    st.integers(0, 8),
)


@Law
@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_a_share_grows_with_what_is_asked_for_and_is_the_greatest_of_all(
    asked: Resources, more: Resources, offered: Resources
) -> None:
    share, there = dominant_share(asked, offered), offered.amounts()
    assert share <= dominant_share(asked + more, offered)
    assert all(n <= share * there[k] for k, n in asked.amounts().items() if k != "pods" and there.get(k))
    assert share_millionths(asked, offered) == share * MILLION // 1
    assert share <= 1 or not asked.fits_in(offered)
