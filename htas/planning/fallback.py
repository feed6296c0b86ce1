"""Stage 5: what is done for work that has no room where nothing can be bought."""

from __future__ import annotations

from hashlib import blake2b

from htas.model.snapshot import ClusterSnapshot


def circumstances(snapshot: ClusterSnapshot) -> str:
    """What a search for a better placement depends on, as a short text: while it is the same, so is what is found.

    It changes with every pod that comes, goes or is bound, with every node, and with what budgets allow.
    """
    cluster = snapshot.cluster
    digest = blake2b(digest_size=16)
    for pod in sorted((pod.uid, pod.node or "", pod.is_terminating, len(pod.gates)) for pod in cluster.pods):
        digest.update(repr(pod).encode())
    for node in sorted((node.name, node.is_ready, node.is_unschedulable, len(node.taints)) for node in cluster.nodes):
        digest.update(repr(node).encode())
    for budget in sorted((budget.namespace, budget.name, budget.disruptions_allowed) for budget in cluster.budgets):
        digest.update(repr(budget).encode())
    return digest.hexdigest()
