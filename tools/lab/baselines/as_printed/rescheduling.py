"""Algorithm 5, rescheduling: all batch jobs of an under-used node find room on the group's others, or none is moved.

Sections 4 (5), 4.4 and 5.3 say when: at the end of each scheduling cycle in which no batch job is left in the queue,
the worst-utilised node first. How long a node must "continuously" be under-used is not printed: two cycles in a row are
the least that can mean. How a ratio of two resources is made is not printed either; Cluster Autoscaler, of which this
is "an extension", takes the greater.
"""

from __future__ import annotations

import numpy as np

from htas.model.moves import Move, MoveReason
from htas.model.policy import NodeGroup
from htas.model.snapshot import Memory
from htas.planning.cluster.classes import Bools
from tools.lab.baselines.as_printed.time_bin_bfd import time_bin_bfd
from tools.lab.baselines.draft import Draft
from tools.lab.baselines.emptying import Emptying, Occupied


def clean(draft: Draft, group: NodeGroup, rows: Bools, *, is_queue_empty: bool, queue_empty_since: float) -> Memory:
    """Reschedule what is under-used, if the queue is empty; returns since when nodes are under-used."""
    emptying, rules, now = Emptying(draft), group.cleaning, draft.now
    low = [
        node
        for node in emptying.nodes()
        if node.group.name == group.name and node.utilization < rules.utilization_threshold
    ]
    before = draft.snapshot.memory.underutilized_since
    since = {each.node.name: before.get(each.node.name, now) for each in low}
    if is_queue_empty and now - queue_empty_since >= rules.queue_empty_for_s:
        for each in sorted(low, key=lambda each: (each.utilization, each.node.name)):
            is_continuously = now - since[each.node.name] >= rules.underutilized_for_s
            if is_continuously and each.node.name not in emptying.receiving:
                reschedule(draft, emptying, each, rows)
    return Memory(underutilized_since=since, queue_empty_since=queue_empty_since)


def reschedule(draft: Draft, emptying: Emptying, node: Occupied, group: Bools) -> bool:
    """Algorithm 5; whether the node is shut down. `group` are the rows of its node group."""
    pods = emptying.movable(node)
    if pods is None:  # one of them may not be moved: 3.1.1 (2) assumes that all may
        return False
    others = group & (np.arange(len(group)) != node.row)  # line 1
    moves = []
    with draft.sim.fork() as branch:
        for pod in pods:  # line 2
            target = time_bin_bfd(draft.sim, emptying.moved(pod, node.group.cleaning.migration), others)  # line 3
            if target is None:  # lines 4 to 6, and 10 to 12
                return False
            name = draft.sim.table.nodes[target].name
            method = node.group.cleaning.migration
            moves.append(Move(pod.key, pod.uid, node.node.name, name, method, MoveReason.NODE_DRAINED))
        branch.commit()
    emptying.give_back(node, moves)  # lines 8 and 9
    return True
