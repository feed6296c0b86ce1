"""Whose machine each node runs on. Pure.

The node's providerID decides, with the journal and the cloud's metadata: a kubelet cannot change its providerID, and
anybody with rights on nodes can change labels. Labels count only for a node whose providerID names no machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from htas.model.claims import Instance, InstanceState, NodeClaim
from htas.model.nodes import CLAIM_LABEL, CLUSTER_LABEL, GROUP_LABEL, OWN_LABELS, Node
from htas.model.snapshot import ClusterView, Problem


@dataclass(frozen=True, slots=True)
class Identity:
    """What `identify` found. `nodes` bear the labels that are true of them, whatever the API server shows."""

    nodes: tuple[Node, ...] = ()
    of_claim: Mapping[str, Node] = field(default_factory=dict)
    """The node of each claim, with its true labels."""
    as_labelled: Mapping[str, Node] = field(default_factory=dict)
    """By name, each node whose labels are not true, as the API server shows it."""
    doubles: Mapping[str, str] = field(default_factory=dict)
    """By name, each Node object that names the machine of another: that one's name."""
    problems: tuple[Problem, ...] = ()
    """What is wrong and cannot be set right: people have to look at it."""

    def applied(self, view: ClusterView) -> ClusterView:
        """The view with these nodes and problems. It has to be of the nodes that were identified."""
        return msgspec.structs.replace(view, nodes=self.nodes, problems=(*view.problems, *self.problems))


NOBODY = Identity()


def identify(
    nodes: Sequence[Node], claims: Iterable[NodeClaim], instances: Iterable[Instance], cluster: str
) -> Identity:
    """Find the node of each claim, and correct the labels of the nodes where they say otherwise."""
    return _Identifying(nodes, list(claims), list(instances), cluster).found()


def is_strange(instance: Instance, cluster: str) -> bool:
    """Whether a machine bears the name of another cluster of HTAS."""
    return instance.cluster is not None and instance.cluster != cluster


class _Identifying:
    """One answer of `identify` while it is worked out."""

    def __init__(
        self, nodes: Sequence[Node], claims: Sequence[NodeClaim], instances: Sequence[Instance], cluster: str
    ) -> None:
        self._all = nodes
        self._cluster = cluster
        self._listed = {instance.id for instance in instances}
        self._machines_of: dict[str, list[str]] = {}
        """By claim, our machines that are listed and are not being deleted."""
        self._in_error = [each for each in instances if each.state is InstanceState.ERROR]
        strange = {instance.id for instance in instances if is_strange(instance, cluster)}
        self._claims = {claim.id: claim for claim in claims if claim.instance not in strange}
        self._groups: dict[str, str] = {}
        self._claim_of: dict[str, str] = {}
        """By machine, the claim that it is of: as the journal has it, else as the cloud's metadata do."""
        for instance in instances:
            if instance.cluster == cluster and instance.claim is not None:
                self._claim_of[instance.id] = instance.claim
                self._groups.setdefault(instance.claim, instance.group or "")
                if instance.state is not InstanceState.DELETING:
                    self._machines_of.setdefault(instance.claim, []).append(instance.id)
        for claim in self._claims.values():
            if claim.instance is not None:
                self._claim_of[claim.instance] = claim.id
            self._groups[claim.id] = claim.group
        self._by_name = {claim.node: claim.id for claim in self._claims.values() if claim.node is not None}
        self._found: dict[str, Node] = {}
        self._doubles: dict[str, str] = {}
        self._liars: dict[str, str] = {}
        """By name, each node whose providerID names the machine of another."""

    def found(self) -> Identity:
        self._by_machine()
        self._by_journal()
        self._by_label()
        claim_by_name = {node.name: claim for claim, node in self._found.items()}
        nodes = tuple(self._true(node, claim_by_name.get(node.name)) for node in self._all)
        changed = {was.name: was for was, now in zip(self._all, nodes, strict=True) if was is not now}
        if changed:
            of_name = {node.name: node for node in nodes}
            self._found = {claim: of_name[node.name] for claim, node in self._found.items()}
        return Identity(nodes, self._found, changed, self._doubles, tuple(self._problems(changed)))

    def _problems(self, changed: Mapping[str, Node]) -> Iterator[Problem]:
        ours = {node.name for node in self._found.values()}
        for name, right in sorted(self._doubles.items()):
            what = f"its providerID names the machine of node {right}: HTAS puts no pods there"
            yield Problem(f"Node {name}", what, is_doubt=True)
        for name, machine in sorted(self._liars.items()):
            yield Problem(f"Node {name}", f"its providerID names machine {machine}, which is another's", is_doubt=True)
        for name, node in sorted(changed.items()):
            if name not in ours and name not in self._doubles:
                what = f"label {CLAIM_LABEL}={node.claim} is not of this node's machine: passed over"
                yield Problem(f"Node {name}", what, is_doubt=True)
        for instance in self._in_error:
            there = self._found.get(self._claim_of.get(instance.id, ""))
            if there is not None and there.is_ready:
                what = f"the cloud reports it in error; its node {there.name} is Ready, so it stays"
                yield Problem(f"Machine {instance.id}", what, is_doubt=True)
        yield from self._paid_twice()

    def _paid_twice(self) -> Iterator[Problem]:
        """Second machines of claims, as after a lost answer, whose deletes pods on the first one may hold."""
        for claim, machines in sorted(self._machines_of.items()):
            there = self._found.get(claim)
            if len(machines) < 2 or there is None or (there.provider_id and there.machine in machines):
                continue
            known = self._claims.get(claim)
            first = known.instance if known is not None and known.instance in machines else None
            named = [each for each in sorted(machines) if each != first] if first is not None else sorted(machines)
            what = (
                f"claim {claim} has {len(machines)} machines, and all are paid for: node {there.name} has no providerID"
                " that says on which it runs, so none is deleted while it runs pods;"
                " give nodes a providerID, or delete the machine that runs no node"
            )
            yield from (Problem(f"Machine {each}", what, is_doubt=True) for each in named)

    def _by_machine(self) -> None:
        """Nodes whose providerID names a machine of ours, or none, while the journal knows the node.

        Of several that name one, one is right at most. One that the journal knows as the node of another claim is not
        believed: a providerID does not change.
        """
        by_claim: dict[str, list[Node]] = {}
        for node in self._all:
            claim, known = self._claim_of.get(node.machine) if node.provider_id else None, self._by_name.get(node.name)
            if claim is None and not (node.provider_id and node.machine in self._listed):
                claim = known
            if claim is not None and known not in (None, claim):
                self._liars[node.name] = node.machine
            elif claim is not None:
                by_claim.setdefault(claim, []).append(node)
        for claim, them in by_claim.items():
            right = min(them, key=lambda node: self._doubt(node, claim)) if len(them) > 1 else them[0]
            self._found[claim] = right
            self._doubles |= {node.name: right.name for node in them if node is not right}

    def _doubt(self, node: Node, claim: str) -> tuple[object, ...]:
        """Nodes that name one machine are ranked: a Ready one first, then the one that the journal knows, then by age.

        A kubelet that has another name now registers anew, and its old Node object stays behind, not Ready.
        """
        known = self._claims.get(claim)
        is_known = known is not None and known.node == node.name
        return not node.is_ready, not is_known, not is_named_for(node, claim), node.created_at, node.name

    def _by_journal(self) -> None:
        """Nodes that name the machine of another, and that the journal knows."""
        for node in self._all:
            if node.name in self._liars:
                self._found.setdefault(self._by_name[node.name], node)

    def _by_label(self) -> None:
        """The last resort. Where the providerID is of a form that we do not know, the node's name must agree."""
        for node in sorted(self._open(), key=lambda node: (not is_named_for(node, node.claim or ""), node.name)):
            claim = node.claim if node.cluster == self._cluster else None
            if claim is None or (node.provider_id and not is_named_for(node, claim)):
                continue
            known = self._claims.get(claim)
            if known is None or known.node in (None, node.name):
                self._found.setdefault(claim, node)

    def _open(self) -> list[Node]:
        """Nodes that nothing is known of yet: not those that run on a machine which the cloud lists."""
        taken = {node.name for node in self._found.values()} | set(self._doubles)
        return [
            node
            for node in self._all
            if node.name not in taken
            and (node.name in self._liars or not (node.provider_id and node.machine in self._listed))
        ]

    def _true(self, node: Node, claim: str | None) -> Node:
        """The node as it is in truth; the same object where its labels say so.

        A node that came without any of our labels is given them, and its taints, before it counts as ours.
        """
        labels = node.labels
        if node.name in self._doubles:
            rest = {key: text for key, text in labels.items() if key not in OWN_LABELS}
            return msgspec.structs.replace(node, labels=rest, is_unschedulable=True)
        if claim is None:
            if node.cluster != self._cluster or node.claim is None:
                return node
            rest = {key: text for key, text in labels.items() if key not in (CLUSTER_LABEL, CLAIM_LABEL)}
            return msgspec.structs.replace(node, labels=rest)
        known = self._claims.get(claim)
        if not any(key in labels for key in OWN_LABELS) and (known is None or known.ready_at is None):
            return node
        true = true_labels(self._cluster, claim, self._groups.get(claim, node.group or ""))
        if all(labels.get(key) == text for key, text in true.items()):
            return node
        return msgspec.structs.replace(node, labels={**labels, **true})


def true_labels(cluster: str, claim: str, group: str) -> dict[str, str]:
    """The labels by which a node is known as ours."""
    return {CLUSTER_LABEL: cluster, CLAIM_LABEL: claim, GROUP_LABEL: group}


def is_named_for(node: Node, claim: str) -> bool:
    """Whether a node bears the name that a claim's machine is given, with a domain or without."""
    return node.name == claim or node.name.startswith(f"{claim}.")


def nodes_of_machine(
    nodes: Iterable[Node], instance: str, claim: str, node: str | None, known: Mapping[str, str]
) -> list[Node]:
    """Every node that may run on a machine: those whose providerID names it, the one that the journal knows, and those
    that bear its claim's name, unless they run on another machine of that claim.

    Where there is none, also those that bear its label, unless they run on another machine at all. `known` has the
    claim of each machine.
    """
    them = list(nodes)
    likely = [
        each
        for each in them
        if (each.provider_id and each.machine == instance)
        or each.name == node
        or (is_named_for(each, claim) and not (each.provider_id and known.get(each.machine) == claim))
    ]
    if likely:
        return likely
    return [each for each in them if each.claim == claim and not (each.provider_id and each.machine in known)]
