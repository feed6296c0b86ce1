"""The labels by which nodes are known as ours: given to nodes that came without, set back where they are changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from htas.execution.backoff import NO_PAUSE, Pause
from htas.execution.identity import true_labels
from htas.execution.other_flavours import true_type
from htas.execution.ports import Ports
from htas.model.claims import ClaimState, NodeClaim
from htas.model.constraints import Taint
from htas.model.nodes import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, OWN_LABELS, Node
from htas.model.outcomes import Action, Outcome, OutcomeStatus
from htas.model.policy import Policy
from htas.model.reasons import OutcomeReason
from htas.planning.cluster.machines import machine_node
from htas.ports import HTASError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 30.0, 3600.0
"""Between two repairs of one node's labels, doubling: whoever changes them may be a controller that never tires."""
_IS_THERE = frozenset({ClaimState.REGISTERED, ClaimState.READY, ClaimState.DRAINING})


@dataclass(slots=True)
class NodeLabels:
    """Sets up and repairs nodes. Planning goes by the true labels meanwhile (`identity.py`)."""

    ports: Ports
    _pauses: dict[str, Pause] = field(default_factory=dict)
    """By node until when its labels are not set back again."""

    def set_right(self, claim: NodeClaim, node: Node, policy: Policy) -> list[Outcome]:
        """Give a node, as the API server shows it, the labels that it lacks.

        A kubelet may not give itself all of them, and some give themselves none. Taints only go to a node that has
        nothing of ours: one that had them may have lost them on purpose.
        """
        if claim.state not in _IS_THERE:
            return []
        own = true_labels(policy.cluster, claim.id, claim.group)
        wrong = {key: text for key, text in own.items() if node.labels.get(key) != text}
        is_bare = not any(key in node.labels for key in OWN_LABELS)
        others, taints = _rest(claim, node, policy) if is_bare or claim.state is ClaimState.REGISTERED else ({}, ())
        true = true_type(claim, node)
        if not wrong and not others and not true:
            return []
        was_right = claim.ready_at is not None and claim.ready_at < self.ports.clock.now()
        is_repair = bool(wrong or true) and (was_right or (bool(wrong) and not is_bare))
        if is_repair and not self._may_repair(node.name):
            return []
        given = others | true | (own if wrong else {})
        wrong |= true
        try:
            self.ports.cluster.set_up_node(node.name, given, taints if is_bare else ())
        except HTASError as error:
            return [Outcome(Action.SET_UP, node.name, OutcomeStatus.FAILED, f"tried again later: {error}")]
        if not is_repair:
            what = f"labels {', '.join(sorted(others | wrong))}"
            return [Outcome(Action.SET_UP, node.name, OutcomeStatus.DONE, what)]
        had = (f"{key}={node.labels[key]}" if key in node.labels else f"no {key}" for key in sorted(wrong))
        what = f"labels restored: it had {', '.join(had)}"
        return [Outcome(Action.SET_UP, node.name, OutcomeStatus.DONE, what, OutcomeReason.RELABELLED)]

    def _may_repair(self, node: str) -> bool:
        """Whether a node's last repair is long enough ago; if so, another counts as begun."""
        now, pause = self.ports.clock.now(), self._pauses.get(node, NO_PAUSE)
        if now < pause.until:
            return False
        if now > pause.until + LONGEST_PAUSE_S:
            pause = NO_PAUSE
        self._pauses[node] = pause.after(now, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        return True


def _rest(claim: NodeClaim, node: Node, policy: Policy) -> tuple[dict[str, str], Sequence[Taint]]:
    """What else its group and flavour give a node: the labels that it lacks, and taints."""
    group, catalogue = policy.group(claim.group), policy.catalogue
    flavour = catalogue.named(claim.flavour) or catalogue.named(claim.ordered)
    if group is None or flavour is None:
        return {}, ()
    meant = machine_node(policy, group, flavour, claim.zone, claim.id)
    # The kubelet's word counts where it has another name.
    labels = dict(meant.labels) | {HOSTNAME_LABEL: node.name, INSTANCE_TYPE_LABEL: claim.flavour}
    return {key: text for key, text in labels.items() if key not in node.labels}, meant.taints
