"""Task bundling: waiting pods by kind and run length, in the order in which they are placed.

Higher priority first. Then services by size, memory before CPU; batch jobs by run length, longest first, so that work
that ends together shares a node (HTAS paper 4.3 (1)).

Batch jobs that have waited too long come before the others, the oldest first. Else the machine bought for a short job
is taken by the longer ones that come while it boots, and so is the next one: with machines that take two minutes and
five jobs a minute, a job of four minutes waited eleven.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from htas.model.pods import Pod, WorkKind
from htas.planning.cluster.class_book import ClassBook
from htas.planning.cluster.classes import PodClass


def bundle(pods: Iterable[Pod], book: ClassBook, overdue: float = -math.inf) -> list[PodClass]:
    """Classes of waiting pods in placing order; within a class the oldest pod is first.

    Those that wait since `overdue` or longer have waited too long.
    """
    classes: dict[int, PodClass] = {}
    for pod in sorted(pods, key=lambda pod: (pod.created_at, pod.namespace, pod.name)):
        cls = book.class_of(pod)
        if id(cls) not in classes:
            classes[id(cls)] = cls
            cls.pods.clear()
        cls.pods.append(pod)
    return sorted(classes.values(), key=lambda cls: placing_order(cls, overdue))


def placing_order(cls: PodClass, overdue: float = -math.inf) -> tuple[object, ...]:
    memory, cpu = cls.size
    is_batch, first = cls.kind is WorkKind.BATCH, cls.pods[0]
    since = first.created_at if is_batch and first.created_at <= overdue else math.inf
    length = -cls.run_length_s if is_batch else 0.0
    return (
        -cls.priority,
        is_batch,
        since,
        length,
        -memory,
        -cpu,
        first.created_at,
        first.namespace,
        first.name,
    )
