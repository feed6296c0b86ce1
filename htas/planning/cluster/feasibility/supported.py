"""What HTAS does not understand is refused, never ignored: DRA claims, unknown policies and operators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from htas.planning.cluster.classes import PodClass
from htas.planning.cluster.feasibility.filter_context import FilterContext, FilterRefusal


def refuse(context: FilterContext, cls: PodClass, rows: slice) -> Iterator[FilterRefusal]:
    """Every node, with one reason per feature."""
    for feature in dict.fromkeys(cls.constraints.unsupported):
        yield FilterRefusal(f"{feature} is not supported by htas", np.ones(rows.stop - rows.start, dtype=np.bool_))
