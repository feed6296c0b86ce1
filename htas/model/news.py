"""News: what HTAS tells people about their objects, as Kubernetes Events do."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class EventReason(StrEnum):
    """The reasons of Events, in the words of kube-scheduler, Cluster Autoscaler and the descheduler."""

    SCHEDULED = "Scheduled"
    """The pod is bound to a node."""
    FAILED_SCHEDULING = "FailedScheduling"
    """Warning: the pod stays pending, or its bind was refused."""
    TRIGGERED_SCALE_UP = "TriggeredScaleUp"
    """A machine is launched for the pod."""
    NOT_TRIGGER_SCALE_UP = "NotTriggerScaleUp"
    """No machine is launched for the pod."""
    FAILED_TO_SCALE_UP = "FailedToScaleUp"
    """Warning: the launch of a machine for the pod failed."""
    SCALE_DOWN = "ScaleDown"
    """The node is drained and its machine deleted, or the pod leaves such a node."""
    SCALE_DOWN_FAILED = "ScaleDownFailed"
    """Warning: the drain of the node was undone."""
    MIGRATING = "Migrating"
    """The pod is being moved with its progress."""
    MIGRATED = "Migrated"
    """The pod was moved and runs at its new place."""
    MIGRATION_FAILED = "MigrationFailed"
    """Warning: the move was undone; the pod stays."""
    NOMINATED = "Nominated"
    """HTAS evicts or moves pods on a node for it."""
    PREEMPTED = "Preempted"
    """The pod leaves its node for work of higher priority."""
    DESCHEDULED = "Descheduled"
    """The pod is moved to make room, or for its service's share of the edge."""
    REARRANGEMENT_CANCELLED = "RearrangementCancelled"
    """Warning: HTAS no longer moves other pods for it."""
    OTHER_FLAVOUR = "OtherFlavour"
    """Warning: the machine of the node is of another flavour than HTAS launched, or was resized."""
    NOT_INITIALIZED = "NotInitialized"
    """Warning: start-up taints remained, or devices were missing, after the timeout."""
    LABELS_RESTORED = "LabelsRestored"
    """Warning: the labels of HTAS on the node had been changed; HTAS restored them."""
    DELETION_HELD = "DeletionHeld"
    """Warning: the machine was to be deleted, but pods run on its node."""


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened to an object, or did not. `name` is `namespace/name`, or `name` for a Node."""

    kind: str
    name: str
    reason: EventReason
    message: str
    uid: str = ""
    is_warning: bool = False
