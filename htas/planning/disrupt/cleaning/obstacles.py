"""Everything that is in the way of emptying a node, and of moving a pod: a plan tells the first reason alone."""

from __future__ import annotations

from collections.abc import Iterable

from htas.model.nodes import Node
from htas.model.plan import KeptNode, Plan
from htas.model.pods import Pod
from htas.model.policy import CleaningRules, NodeGroup, Policy
from htas.model.reasons import Kept
from htas.model.snapshot import ClusterSnapshot
from htas.planning.cluster.ending import must_leave
from htas.planning.disrupt.cleaning.candidates import Circumstances, candidate_of, every_reason
from htas.planning.eligibility import drain_rules
from htas.planning.eligibility.budgets import ledger_of
from htas.planning.eligibility.drain_rules import Context
from htas.planning.eligibility.migration_methods import VolumeBook, begins_on_a_guess, source_refusal


def group_for(node: Node, policy: Policy) -> NodeGroup:
    """Its group; of a node of none, the one whose machines are most like it: the first of those as much so.

    A GPU node is judged by the group that buys its flavour with its taint, and not by the first one, of web servers.
    """

    def likeness(group: NodeGroup) -> tuple[bool, bool, int, int]:
        taints, labels = set(group.taints), set(group.labels.items())
        sells = any(flavour.name == node.flavour for flavour in policy.flavours_of(group))
        return taints <= set(node.taints), sells, len(taints), len(labels & set(node.labels.items()))

    return policy.group(node.group) or max(policy.groups, key=likeness)


def rules_for(node: Node, policy: Policy) -> CleaningRules:
    """Those of the group that it is of, or would be of."""
    return group_for(node, policy).cleaning


def of_pods(pods: Iterable[Pod], node: Node, snapshot: ClusterSnapshot, policy: Policy) -> list[tuple[Pod, str, str]]:
    """Each pod on a node that may not be moved, with a rule and its words; one line for each of its rules."""
    rules = rules_for(node, policy)
    volumes = VolumeBook.of(snapshot.cluster.volumes)
    context = Context(rules, ledger_of(snapshot), snapshot.taken_at, policy.migration, volumes)
    found = []
    for pod in sorted(pods, key=lambda pod: pod.key):
        verdicts = drain_rules.judge_all(pod, context)
        told = [(pod, str(each.blocked or Kept.BLOCKED_BY_ON_COMPLETION_POD), each.message) for each in verdicts]
        if not told and pod.is_terminating:
            told = [(pod, str(Kept.BLOCKED_BY_POD), f"{pod.key} is ending: looked at again when it is gone")]
        found += told
    refused = source_refusal(node, rules.migration)
    if refused is not None:  # nothing is restored that its runtime does not checkpoint
        words = f"{refused[1]}; its group moves pods by {rules.migration}"
        leaving = [pod for pod in pods if must_leave(pod, snapshot.taken_at)]
        found += [(pod, str(Kept.CANNOT_CHECKPOINT), words) for pod in leaving]
    for pod in pods:
        guess = begins_on_a_guess(pod, rules.migration, policy, snapshot.taken_at)
        found += [(pod, str(Kept.RUN_LENGTH_UNKNOWN), guess)] if guess is not None else []
    return found


def of_node(node: Node, snapshot: ClusterSnapshot, plan: Plan, policy: Policy) -> list[KeptNode]:
    """All that keeps a node of ours by its state and use; empty for others, of which the plan tells all there is."""
    claim = next((claim for claim in snapshot.claims if claim.id == node.claim), None)
    group = policy.group(node.group)
    if node.cluster != policy.cluster or group is None or claim is None:
        return []
    needed = frozenset([item.node for item in plan.bind] + [item.node for item in plan.nominate])
    question = Circumstances(snapshot, policy, snapshot.taken_at, plan.memory, is_due=True, needed=needed)
    pods = [pod for pod in snapshot.cluster.pods if pod.node == node.name]
    return every_reason(candidate_of(node, pods, group, claim, question), question)
