"""Work that comes steadily: what is bought for little of it is filled by more of it.

The cheapest machine that holds one waiting job is often the dearest for its size: of the HTAS paper's Table 7, a
t3.xsmall costs 15 % more a GiB than any other, and jobs of 0.3 GiB leave a tenth of it empty. Where one job comes alone
that is right all the same. Where more come all the time, what a larger machine has left is soon in use, and it is
judged as if all that will run at one time were on it already: with as much work as that fills, and no more. Filled with
any amount, of forty flavours the largest was bought for work that uses a fifth of it, at twice the price.

What is known to come is not taken for more than it is: forty pods of one Deployment are one service that has come, and
so is its next rollout. Of a dump and of a what-if nothing more comes (`expects_more`).

Which of two flavours that are as good when full stays fuller is told by all batch work there is, put on such machines
in the order it came (next fit): of jobs of 0.8, 1.6 and 2.4 GiB an m3.small of 4 GiB is left with more over than an
m1.medium of 8; with half the memory a core the medium runs out of cores first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from htas.model.pods import Pod, WorkKind
from htas.model.policy import Policy
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.services import keep_coming, new_services
from htas.planning.place.demand import Demand
from htas.planning.provision.arrivals import Arrivals
from htas.planning.provision.cost_efficiency import SAMPLE, Trials, Unit, score_of_use
from htas.planning.provision.offers import Offer

ENOUGH_TO_TELL = 8
"""Fewer pods say little of how full machines stay."""
NEARLY_AS_GOOD = 0.95
"""A smaller flavour may be worth so much less for its price: a difference that the next pods' sizes can outweigh.

Measured on the paper's patterns: with 0.9 the default configuration paid 2 to 4 % more.
"""


@dataclass(frozen=True, slots=True)
class Steady:
    """Work that comes steadily; false where none does.

    `at_once`: so much of each kind of work that has come steadily as will run at one time, batch work of late and new
    services. `recent`: the batch work there is, running and waiting, a class for each pod in the order they came;
    of more than 256 the youngest.
    """

    at_once: tuple[Demand, ...] = ()
    recent: tuple[PodClass, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.at_once)


NOT_STEADY = Steady()
"""Nothing comes steadily: what waits is all there is."""


def steady_work(book: ClassBook, policy: Policy, arrivals: Arrivals) -> Steady:
    """The batch work of late and the new services that come steadily.

    Nothing without `lookAhead`: then machines are bought for the work that waits, as in the paper (Algorithm 3).
    """
    within_s = policy.look_ahead_s
    if within_s <= 0:
        return NOT_STEADY
    found = new_services(arrivals.pods, arrivals.now)
    # The same plan in whatever order they are read: the first of a class is its example.
    found = sorted(found, key=lambda pod: (pod.created_at, pod.key)) if keep_coming(found) else []
    if arrivals.steady_count(arrivals.recent):
        found = [*arrivals.recent, *found]
    if not found:
        return NOT_STEADY
    of_pods = [book.class_of(pod) for pod in found]
    classes, counts = {id(cls): cls for cls in of_pods}, Counter(map(id, of_pods))
    ordered = sorted(classes.values(), key=lambda cls: (-cls.size[0], -cls.size[1], cls.example.key))
    at_once = tuple(Demand(cls, _at_once(cls, counts[id(cls)], within_s)) for cls in ordered)
    batch = [pod for pod in arrivals.batch if _takes_room(pod, policy)]
    recent = sorted(batch, key=lambda pod: (pod.created_at, pod.key))[-SAMPLE:]
    return Steady(at_once, tuple(map(book.class_of, recent)) if len(recent) >= ENOUGH_TO_TELL else ())


def _takes_room(pod: Pod, policy: Policy) -> bool:
    if pod.node is not None:
        return True
    return pod.is_placed_by(policy.scheduler_name) and not pod.gates and not pod.is_terminating


def _at_once(cls: PodClass, came: int, within_s: float) -> int:
    """How many pods of a class run at any time where so many come in a window, each for its run length (Little's law).

    Twelve jobs of 400 s in 120 s: 40 of them. Services stay: as many come once more.
    """
    return came if cls.kind is WorkKind.SERVICE else max(1, math.ceil(came * cls.run_length_s / within_s))


def worth_in_turn(offer: Offer, steady: Steady, unit: Unit) -> float:
    """The mean score of machines that all batch work is put on in the order it came; 0 where there is too little.

    A machine takes what comes until something does not fit, and the next one goes on with that (next fit). Jobs of 3, 2
    and 2 GiB in turn use 3 and 4 of 4 GiB: 3.5 in the mean.
    """
    work = [cls.requests for cls in steady.recent if offer.could_hold(cls)]
    machines, used = 1, np.zeros(len(offer.free), dtype=np.int64)
    total = used.copy()
    for requests in work:
        if (used + requests > offer.free).any():
            machines, used = machines + 1, np.zeros_like(used)
        used = used + requests
        total += requests
    if machines > 1:  # the last one is not full yet
        machines, total = machines - 1, total - used
    return score_of_use(offer, (total / machines).tolist(), unit)


def worth_when_full(offer: Offer, steady: Sequence[Demand], unit: Unit) -> float:
    """The score of a machine with the steady work that will run at one time; 0 where it takes none of that."""
    held = [demand for demand in steady if offer.could_hold(demand.cls)]
    return score_of_use(offer, Trials(held).use(offer), unit)
