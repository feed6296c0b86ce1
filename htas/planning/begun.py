"""What a plan preempts, taken as begun: the other waiting work is then placed anew, where no room is promised.

A plan places all that fits, and preempts for what does not. Where lesser work had just been given room that somebody is
preempted for, all is placed and bought once more, with the victims on their way out and the pods they leave for
nominated: it finds the same cluster as the plan after this one, so that wishes about other pods hold there too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from htas.model.plan import UnplacedPod
from htas.model.pods import Pod
from htas.model.reasons import Unplaced
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.simulation import Nominee
from htas.planning.disrupt.fallback import FallingBack
from htas.planning.eligibility.budgets import BudgetLedger


def as_begun(snapshot: ClusterSnapshot, begun: FallingBack) -> ClusterSnapshot:
    """The snapshot once victims have been told to leave, pods were nominated, and budgets spent."""
    leaving = {pod.uid for pod in begun.leaving}

    def told(pod: Pod) -> Pod:
        if pod.uid in leaving:
            return msgspec.structs.replace(pod, deleted_at=snapshot.taken_at)
        if pod.key in begun.nominated:
            return msgspec.structs.replace(pod, nominated_node=begun.nominated[pod.key])
        return msgspec.structs.replace(pod, nominated_node=None) if pod.key in begun.displaced else pod

    cluster = snapshot.cluster
    pods, budgets = tuple(map(told, cluster.pods)), BudgetLedger(cluster.budgets, begun.leaving).budgets
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(cluster, pods=pods, budgets=budgets))


def carried_over(begun: FallingBack, unplaced: Sequence[UnplacedPod], nominees: Iterable[Nominee]) -> FallingBack:
    """What was decided before all was placed anew, less what somebody was preempted for who has room at once now."""
    told = {item.pod: item for item in begun.unplaced}
    waiting = {nominee.pod.key for nominee in nominees} & begun.nominated.keys()
    kept = [told.get(item.pod, item) for item in unplaced]
    return replace(
        begun,
        unplaced=[*kept, *(told[key] for key in sorted(waiting))],
        preempt=[item for item in begun.preempt if item.beneficiary in waiting],
        nominated={key: node for key, node in begun.nominated.items() if key in waiting},
        leaving=[],  # the snapshot has them on their way out
        is_lesser_work_in_the_way=False,
    )


def gone_on(carried: FallingBack, more: FallingBack) -> FallingBack:
    """Both together: what was carried over, and what was decided since for those who were left."""
    told = {item.pod: item for item in carried.unplaced if item.pod in carried.nominated.keys() | carried.displaced}
    unplaced = [
        item if item.reason is Unplaced.NOMINATED else told.pop(item.pod, item)
        for item in more.unplaced
        if item.pod not in carried.nominated
    ]
    return replace(
        more,
        unplaced=[*unplaced, *(told[key] for key in sorted(carried.nominated))],
        preempt=[*carried.preempt, *more.preempt],
        nominated=carried.nominated | more.nominated,
        displaced=carried.displaced | more.displaced,
    )
