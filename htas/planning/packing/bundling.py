"""Task bundling: waiting pods by kind and run length, in the order in which they are placed.

Higher priority first. Then services by size, memory before CPU; batch jobs by run length, longest first, so that work
that ends together shares a node (HTAS paper 4.3 (1)).
"""

from __future__ import annotations

from collections.abc import Iterable

from htas.model.pods import Pod, WorkKind
from htas.planning.class_book import ClassBook
from htas.planning.classes import PodClass


def bundle(pods: Iterable[Pod], book: ClassBook) -> list[PodClass]:
    """Classes of waiting pods in placing order; within a class the oldest pod is first."""
    classes: dict[int, PodClass] = {}
    for pod in sorted(pods, key=lambda pod: (pod.created_at, pod.namespace, pod.name)):
        cls = book.class_of(pod)
        if id(cls) not in classes:
            classes[id(cls)] = cls
            cls.pods.clear()
        cls.pods.append(pod)
    return sorted(classes.values(), key=placing_order)


def placing_order(cls: PodClass) -> tuple[object, ...]:
    memory, cpu = cls.size
    length = -cls.run_length_s if cls.kind is WorkKind.BATCH else 0.0
    first = cls.pods[0]
    return (
        -cls.priority,
        cls.kind is WorkKind.BATCH,
        length,
        -memory,
        -cpu,
        first.created_at,
        first.namespace,
        first.name,
    )
