"""Lapses: machines that were bought to take over from a node, and of which nothing came.

A budget that closes while the machine starts, or a pod that asks not to be disturbed meanwhile: the machine is given
back empty, and everything that had it bought speaks for buying it again. Each lapse makes the pause before that twice
as long, up to a day, so that a node costs a machine's start at most some ten times in its first two days, then daily.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from htas.model.claims import ClaimState
from htas.model.pauses import doubled_s
from htas.model.plan import KeptNode
from htas.model.policy import NodeGroup, Policy
from htas.model.reasons import Kept
from htas.model.snapshot import ClusterSnapshot, Lapse
from htas.planning.cluster.outgoing import age_text
from htas.planning.disrupt.cleaning.candidates import Circumstances, DrainCandidate
from htas.planning.disrupt.cleaning.consolidation import MAY_BE_REPLACED

LONGEST_PAUSE_S = 86_400.0


def lapses(snapshot: ClusterSnapshot, policy: Policy, now: float) -> dict[str, Lapse]:
    """By node that is still there, how often what was bought for it has lapsed: `within` after it was Ready.

    Of machines bought together the first counts; a machine that stays as a node like others counts once.
    """
    there = {node.name for node in snapshot.cluster.nodes}
    found = {node: lapse for node, lapse in snapshot.memory.lapses.items() if node in there}
    for claim in snapshot.claims:
        group = policy.group(claim.group)
        if group is None or not claim.replaces or claim.state is not ClaimState.READY:
            continue
        at = claim.since + group.cleaning.consolidation.within_s
        for node in there.intersection(claim.replaces) if at <= now else ():
            known = found.get(node)
            if known is None or at > known.at + pause_s(group, known):
                found[node] = Lapse(at, known.times + 1 if known is not None else 1)
    return found


def pause_s(group: NodeGroup, lapse: Lapse) -> float:
    """For how long nothing is bought to take over from a node: the group's cool-down, doubled with each lapse."""
    return doubled_s(lapse.times + 1, group.cleaning.consolidation.cool_down_s, LONGEST_PAUSE_S)


def is_paused(candidate: DrainCandidate, question: Circumstances) -> bool:
    """Whether nothing is bought to take over from a node now, since what was bought last was not used."""
    lapse = question.memory.lapses.get(candidate.node.name)
    return lapse is not None and question.now < lapse.at + pause_s(candidate.group, lapse)


def with_lapses(kept: Iterable[KeptNode], snapshot: ClusterSnapshot, question: Circumstances) -> Iterator[KeptNode]:
    """What keeps nodes; of those that something would be bought for also that it was in vain, and when it is again."""
    groups = {node.name: node.group for node in snapshot.cluster.nodes if node.name in question.memory.lapses}
    for keeping in kept:
        group = question.policy.group(groups.get(keeping.node))
        if group is None or keeping.reason not in _BOUGHT_FOR:
            yield keeping
            continue
        lapse = question.memory.lapses[keeping.node]
        left = lapse.at + pause_s(group, lapse) - question.now
        what = f"a machine launched to replace it was not used ({lapse.times}×)"
        again = f", the next comes in {age_text(left)} at the earliest" if left > 0 else ""
        yield msgspec.structs.replace(keeping, message=f"{keeping.message}; {what}{again}")


_BOUGHT_FOR = MAY_BE_REPLACED | {Kept.MIN_SIZE_REACHED}
