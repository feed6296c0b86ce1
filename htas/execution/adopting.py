"""Adopting orphans: a machine is written down as ours, in a group, in the cloud's metadata and on its node.

The journal follows by itself: the daemon reads the metadata in its next cycle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from htas.execution.identity import true_labels
from htas.execution.ports import Ports
from htas.model.claims import Instance
from htas.model.nodes import Node
from htas.model.orphans import Orphan, OrphanReason
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Policy
from htas.ports import GivenError, HTASError


def chosen(
    found: Iterable[Orphan], instances: Iterable[Instance], cluster: str | None, names: Collection[str]
) -> list[Orphan]:
    """The orphans that somebody names, or all; those of another cluster of HTAS only if that is named.

    A machine of that cluster that nothing here knows is chosen only by its own name. Raises GivenError where a name
    is of no orphan.
    """
    pool = {each.machine: each for each in found if each.reason is not OrphanReason.OTHER_CLUSTER}
    pool |= {each.machine: each for each in found if each.cluster == cluster}
    if not names:
        return [each for each in pool.values() if each.reason is not OrphanReason.UNKNOWN_FLAVOUR]
    for each in instances:
        if cluster is not None and each.cluster == cluster and {each.id, each.name} & set(names):
            pool.setdefault(each.id, _strange(each))
    named = {name: _named(pool.values(), name) for name in names}
    unknown = sorted(name for name, them in named.items() if not them)
    if unknown:
        where = f"of cluster {cluster} or " if cluster is not None else ""
        raise GivenError(f"{unknown[0]}: no orphan {where}of this cluster; htas check --live lists them")
    return list({each.machine: each for them in named.values() for each in them}.values())


def _named(pool: Iterable[Orphan], name: str) -> list[Orphan]:
    return [each for each in pool if name in (each.machine, each.node, each.claim)]


def _strange(instance: Instance) -> Orphan:
    return Orphan(
        instance.id,
        OrphanReason.OTHER_CLUSTER,
        instance.claim or "",
        "",
        instance.group or "",
        instance.flavour,
        instance.cluster or "",
    )


def adopt(
    ports: Ports, policy: Policy, orphans: Sequence[Orphan], nodes: Iterable[Node], group: str | None
) -> list[Outcome]:
    """Make each orphan ours, in a group; None: it keeps the group that it is said to be of.

    Its node is given our labels, and those of the group that it lacks; no taints, for pods may run there.
    """
    of_machine = {node.machine: node for node in nodes if node.provider_id}
    by_name = {node.name: node for node in nodes}
    return [
        _adopted(ports, policy, each, of_machine.get(each.machine) or by_name.get(each.node), group) for each in orphans
    ]


def _adopted(ports: Ports, policy: Policy, orphan: Orphan, node: Node | None, group: str | None) -> Outcome:
    claim, into = orphan.claim or orphan.machine, group if group is not None else orphan.group
    try:
        ports.provider.adopt(orphan.machine, policy.cluster, claim, into)
        if node is not None:
            known = policy.group(into)
            lacking = {key: text for key, text in dict(known.labels if known else {}).items() if key not in node.labels}
            ports.cluster.set_up_node(node.name, lacking | true_labels(policy.cluster, claim, into))
    except HTASError as error:
        return Outcome(Action.ADOPT, orphan.machine, OutcomeStatus.FAILED, str(error))
    return Outcome(
        Action.ADOPT, orphan.machine, OutcomeStatus.DONE, f"is of group {into or '(none)'} of {policy.cluster} now"
    )
