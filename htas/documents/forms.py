"""By what money is split and nodes are sorted: the choices that options and queries offer."""

from __future__ import annotations

from enum import StrEnum


class Sorted(StrEnum):
    """By what nodes are sorted."""

    NAME = "name"
    CPU = "cpu"
    MEMORY = "memory"
    AGE = "age"
    PRICE = "price"


class CostBy(StrEnum):
    """By what the sum of bills is split."""

    GROUP = "group"
    FLAVOUR = "flavour"
    DAY = "day"
    NAMESPACE = "namespace"
    OWNER = "owner"
