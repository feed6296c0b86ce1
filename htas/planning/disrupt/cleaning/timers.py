"""When a rule of emptying may change its mind though nothing happens: a rule that waits has its line here."""

from __future__ import annotations

from htas.model.policy import Policy
from htas.model.snapshot import ClusterSnapshot, Memory
from htas.planning.cluster.outgoing import changes_of_outgoing


def rules_change_at(policy: Policy, memory: Memory, snapshot: ClusterSnapshot) -> list[float]:
    """Instants, some of them past: a node, or the queue, empty for long enough, a node little used, a machine too old,
    a node unhealthy for too long.

    The delay after a launch is not among them: such a node is kept with a reason, and looked at each time.
    """
    instants = list(changes_of_outgoing(snapshot.cluster.nodes, snapshot.claims, policy))
    for group in policy.groups:
        rules = group.cleaning
        instants += [at + rules.underutilized_for_s for at in memory.underutilized_since.values()]
        instants += [at + rules.empty_for_s for at in memory.empty_since.values()]
        if memory.queue_empty_since is not None:
            instants.append(memory.queue_empty_since + rules.queue_empty_for_s)
    return instants
