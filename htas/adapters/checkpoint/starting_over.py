"""A restored container that ended later is started again by its kubelet, and its checkpoint is gone by then.

It gets its own image back and begins anew, as any container does. Not before it has ended: a kubelet ends a running
container whose image changes.
"""

from __future__ import annotations

from htas.adapters.checkpoint.documents import Json, base_images_of, record_in, statuses
from htas.adapters.twins import is_ending
from htas.model.migrations import is_checkpoint

CANNOT_START = frozenset({"ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff"})
"""What a kubelet says of a container whose image is not there."""


def starting_over(pod: Json) -> Json | None:
    """The patch by which its waiting containers start from their own images; None: none waits for a checkpoint."""
    record = record_in(pod)
    if record is None or not record.is_over or is_ending(pod):
        return None  # a move under way is judged by who carries it
    own = base_images_of(pod)
    containers, has_changed = [], False
    for container, base, status in zip(pod["spec"]["containers"], own, statuses(pod), strict=True):
        waiting = ((status.get("state") or {}).get("waiting") or {}).get("reason")
        is_stuck = waiting in CANNOT_START and is_checkpoint(container.get("image", "")) and not is_checkpoint(base)
        has_changed = has_changed or is_stuck
        containers.append({**container, "image": base} if is_stuck else container)
    return {"metadata": {}, "spec": {"containers": containers}} if has_changed else None
