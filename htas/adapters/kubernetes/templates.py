"""What a pod was made from, as people would call it: pods of one template do the same work again and again."""

from __future__ import annotations

import re

from htas.adapters.controllers import base_kind
from htas.adapters.kubernetes import wire
from htas.model.pods import Owner

_OF_CRON_JOB = re.compile(r"-\d{8,10}$")
"""A CronJob names its Jobs by the minute they are for, counted from 1970: backup-29384160."""
_RANDOM = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""What the API server puts behind a generateName (apimachinery, util/rand: no vowels, so that no words arise)."""
LASTING = frozenset({"StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Node"})
"""Owners that stay, of whatever group: others (a Workflow, a PyTorchJob) come again under other names, as Jobs do."""
REVISIONS = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
"""Labels by which a pod of a ReplicaSet has its revision, and the kind of the ReplicaSet's owner (Rollout: Argo)."""
_DIGITS = re.compile(r"\d+")


def template_of(meta: wire.Metadata, owner: Owner | None) -> str:
    """`CronJob/backup`, `Job/train-#`, `Deployment/web`, `Pod/run-#`: the kind, and what the names have in common."""
    if owner is None:
        return f"Pod/{_common(meta.name)}"
    if owner.kind == "ReplicaSet":
        for label, kind in REVISIONS.items():
            revision = (meta.labels or {}).get(label)
            if revision and owner.name.endswith(f"-{revision}"):
                return f"{kind}/{owner.name.removesuffix(f'-{revision}')}"
    if owner.kind == "Job":
        if _OF_CRON_JOB.search(owner.name):
            return f"CronJob/{_OF_CRON_JOB.sub('', owner.name)}"
        return f"Job/{_common(owner.name)}"
    return f"{owner.kind}/{owner.name if base_kind(owner.kind) in LASTING else _common(owner.name)}"


def _common(name: str) -> str:
    """train-17 and train-18 are both train-#; so are train-x7k2p and train-b94fd."""
    return _DIGITS.sub("#", _RANDOM.sub("-#", name))
