"""Which of some pods go to the edge: the subset that makes the total quality best (KubeDSM, Algorithm 3).

Algorithm 3 as printed (line 17) takes the current decision where the best so far is *better*, and so keeps the worst;
the text's intent, the highest quality, is what is done here. Subsets are counts of kinds, looked at from the one that
would raise the quality most, so that the search ends once no other can be better than what was found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from htas.planning.cluster.classes import Ints
from htas.planning.solvers.edge.best_fit import LEAST_GAIN, best_fit
from htas.planning.solvers.edge.layout import Layout
from htas.planning.solvers.edge.matching import MatchingTable
from htas.planning.solvers.edge.search import Search, moves
from htas.planning.solvers.edge.start import Start


def decide_new(search: Search, start: Layout, kinds: Sequence[Sequence[int]]) -> Layout:
    """The best subset of new pods on the edge, nothing moved; of equal ones that of least fragmentation.

    The document compares sums of resources here and may find later that some pods do not fit. The table of matchings
    says of every subset whether it does, so the best one of all is found.
    """
    table = MatchingTable(start, kinds, search.fragmentation)
    counts: Ints = np.indices(table.least.shape).reshape(len(kinds), table.least.size).T
    fragmentation = table.least.ravel()
    quality = np.where(np.isfinite(fragmentation), search.qualities_with(start.near, kinds, counts), -np.inf)
    equal = np.flatnonzero(quality >= quality.max() - LEAST_GAIN)
    best = int(equal[np.argmin(fragmentation[equal])])
    layout = start.copy()
    for pod, node in table.seats(counts[best].tolist()).items():
        layout.put(pod, node)
    return layout


def decide_moves(search: Search, layout: Layout, kinds: Sequence[Sequence[int]], most: int) -> Layout:
    """The best subset of at most so many pods from the cloud on the edge, with what has to move for it; the layout
    itself where none is better.

    Of two that are as good the one with fewer moves. Where there is too much to look at, the best that was found.
    """
    start = Start(search, layout)
    best, quality = layout, start.quality
    fewest = moves(layout)
    counts = subsets([len(kind) for kind in kinds], most)
    hoped = search.qualities_with(layout.near, kinds, counts)
    sizes = counts.sum(axis=1)
    for row in np.lexsort((sizes, -hoped)).tolist():
        is_as_good = hoped[row] > quality - LEAST_GAIN and sizes[row] < fewest
        if not (hoped[row] > quality + LEAST_GAIN or is_as_good) or not sizes[row]:
            if hoped[row] < quality - LEAST_GAIN:
                break
            continue
        if search.work.left <= 0:
            break
        to_edge = [pod for kind, many in zip(kinds, counts[row].tolist(), strict=True) for pod in kind[:many]]
        found = best_fit(start, to_edge, quality - 2 * LEAST_GAIN)
        if found is None:
            continue
        search.work.spend(len(search.state.pods) // 10)
        reached, moved = search.quality(found), moves(found)
        if reached > quality + LEAST_GAIN or (reached > quality - LEAST_GAIN and moved < fewest):
            best, quality, fewest = found, reached, moved
    return best


def subsets(counts: Sequence[int], most: int) -> Ints:
    """Every count of every kind with at most so many in all, one a row; the first is none of any."""
    rows: Ints = np.zeros((1, len(counts)), dtype=np.int64)
    for kind, many in enumerate(counts):
        more = [rows]
        for taken in range(1, min(many, most) + 1):
            raised = rows[rows.sum(axis=1) + taken <= most].copy()
            raised[:, kind] = taken
            more.append(raised)
        rows = np.concatenate(more)
    return rows


def with_one_more(ways: Sequence[int], many: int) -> list[int]:
    """How many subsets of each number of pods there are once there is one more kind, of so many pods.

    Before the first kind there is the one of none: [1, 0, 0]. With a kind of two [1, 1, 1], with another [1, 2, 3].
    """
    return [sum(ways[max(0, size - many) : size + 1]) for size in range(len(ways))]
