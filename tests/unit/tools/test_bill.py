"""The README's picture of bills: its shares by hand, and the committed one is made of the figures at hand."""

from __future__ import annotations

import csv

import pytest

from tools.site.bill import PATTERNS, PICTURE, SAVINGS, bills, picture


def test_shares_are_of_cluster_autoscalers_bill() -> None:
    rows = [
        {"pattern": pattern, "against": against, "saving_percent": saving}
        for pattern in PATTERNS
        for against, saving in (("cluster-autoscaler", "40"), ("karpenter", "25"))
    ]
    assert bills(rows)["cycle"] == pytest.approx((100.0, 80.0, 60.0))


def test_the_picture_shows_the_recorded_savings() -> None:
    """After a new report: `python -m tools.site.bill`."""
    with SAVINGS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["policy"] == "htas-default"]
    assert PICTURE.read_text() == picture(bills(rows))
