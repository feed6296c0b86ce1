"""How long batch work waits for what is cheaper, where machines come sooner than in two minutes.

`maxWaitForCapacity` (3 min) and `gatherFor` (40 s) are half as much again as a machine of the HTAS paper takes to come
(120 s), and a third of that. Where one comes in 20 s nobody would understand a job that waits for three minutes instead
of buying one: it waits for 30 s for a node about to free, and for 7 s for company. Where machines take longer the
limits stay: on those that come in five minutes longer waits saved nothing that could be told from chance.
They stay until one has come, too: a group's `startup` is a guess, and what is bought first lasts longest. Taken for a
minute where it was two, it cost 3 % where small machines are cheapest (*convex*, eight seeds).
"""

from __future__ import annotations

import msgspec

from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot

FOR_CAPACITY = 1.5
"""Waits for nodes about to free, in starts of a machine."""
FOR_COMPANY = 1 / 3


def patient_policy(policy: Policy, snapshot: ClusterSnapshot) -> Policy:
    """The policy with the waits that are left to HTAS (`auto`) shortened to what a machine was seen to take."""
    if not snapshot.machine_times.starts or not (policy.shortens_wait or policy.shortens_gathering):
        return policy
    start_s, longest_s = start_of_machines_s(policy, snapshot), policy.max_wait_for_capacity_s
    if policy.shortens_wait and longest_s is not None:
        longest_s = min(longest_s, FOR_CAPACITY * start_s)
    gather_s = min(policy.gather_s, FOR_COMPANY * start_s) if policy.shortens_gathering else policy.gather_s
    return msgspec.structs.replace(policy, max_wait_for_capacity_s=longest_s, gather_s=gather_s)


def start_of_machines_s(policy: Policy, snapshot: ClusterSnapshot) -> float:
    """What a machine takes to come, as was measured; else the longest that a group states."""
    return snapshot.machine_times.start_s(max((group.startup_s for group in policy.groups), default=0.0))
