"""Versions of Kubernetes, as kubelets tell theirs: `v1.34.1`."""

from __future__ import annotations

import re
from functools import lru_cache

VERSION = re.compile(r"v(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})(?:\.(0|[1-9][0-9]{0,5}))?")
"""A minor version, `v1.34`, or one of its releases."""


def is_older(version: str, than: str) -> bool:
    """Whether a version comes before another; of what is no version that is not known, and so it does not."""
    one, other = _numbers(version), _numbers(than)
    return one is not None and other is not None and one < other


@lru_cache(1024)
def _numbers(version: str) -> tuple[int, int, int] | None:
    """Major, minor and release. What follows tells whose build it is: `v1.34.1+k3s1`, and `v1.34.1-eks-113cf36` too."""
    found = VERSION.match(version)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found is not None else None
