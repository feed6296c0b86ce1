"""The savings of a daemon that only recommends, as metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from htas.model.money import NANOS
from htas.model.savings import Savings

REAL, WITH_HTAS = "real", "with-htas"


def recommended_metrics(savings: Savings, currency: str) -> Iterator[Metric]:
    """Both courses since the beginning: gauges, since a course that machines leave may be corrected downwards."""
    courses = ((REAL, savings.real), (WITH_HTAS, savings.with_htas))
    cost = GaugeMetricFamily(
        "htas_recommended_cost", "What machines have cost, and would have cost.", labels=["course", "currency"]
    )
    machines = GaugeMetricFamily("htas_recommended_machines", "Machines that run, and would.", labels=["course"])
    waits = GaugeMetricFamily(
        "htas_recommended_wait_seconds", "How long pods waited on average, and would have.", labels=["course"]
    )
    for name, course in courses:
        cost.add_metric([name, currency], course.nano_seconds / (NANOS * 3600))
        machines.add_metric([name], course.machines)
        waits.add_metric([name], course.waits.mean_s)
    disturbed = GaugeMetricFamily(
        "htas_recommended_disturbed_pods", "Pods that would have been started anew or moved.", labels=["how"]
    )
    disturbed.add_metric(["evicted"], savings.evicted)
    disturbed.add_metric(["moved"], savings.moved)
    since = GaugeMetricFamily("htas_recommended_since_timestamp_seconds", "Since when both are followed.")
    since.add_metric([], savings.since)
    yield from (cost, machines, waits, disturbed, since)
