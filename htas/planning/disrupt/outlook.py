"""What is to be expected before each priority has its turn: who finds no room, and for whom nothing is bought."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from htas.model.plan import UnplacedPod
from htas.model.pods import Pod
from htas.planning.place.demand import Demand

Shortage = Callable[[Sequence[Demand]], Sequence[UnplacedPod]]
"""Which pods of some demands nothing would be bought for, and why: a what-if."""
Waiting = list[tuple[Pod, UnplacedPod]]
"""Pods to preempt for, and why nothing is bought for each, the most important first."""


class Outlook:
    """What came of placing and buying for everybody at once. It holds for a priority while nobody lost room meanwhile.

    So 100 priorities whose work finds no room cost one what-if of the purchase, not one each of all the work so far.
    """

    def __init__(
        self, waiting: Waiting, demands: Sequence[Demand], unplaced: Iterable[UnplacedPod], shortage: Shortage
    ) -> None:
        self.waiting = waiting
        self._demands = list(demands)
        self._unplaced = {item.pod: item for item in unplaced}
        self._shortage = shortage

    def unplaced(self, demands: Sequence[Demand], priority: int) -> list[UnplacedPod]:
        """Pods of a priority that nothing would be bought for; `demands` is what has no room of it and of those before.

        It is asked anew, of the work still to come too, where other pods than expected have no room.
        """
        expected = {id(each.cls): each.count for each in self._demands if each.count and each.cls.priority >= priority}
        self._demands = [*demands, *(each for each in self._demands if each.cls.priority < priority)]
        if expected != {id(each.cls): each.count for each in demands}:
            self._unplaced = {item.pod: item for item in self._shortage(self._demands)}
        own = [each for each in demands if each.cls.priority == priority]
        pods = [pod for each in own for pod in each.youngest(each.count)]
        return [self._unplaced[pod.key] for pod in pods if pod.key in self._unplaced]
