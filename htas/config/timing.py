"""Cycles, timeouts and run lengths."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from htas.config.values import Count, Real, Seconds, Section, Switch
from htas.model.policy import MOST_RUNS, Cycles, RunLengths, Timeouts


class CyclesSetting(Section):
    """How often each part of planning runs. HTAS also acts on events; these cycles are the net under them."""

    scheduling: Seconds = Field(default=20.0, gt=0, description="20s is the paper's (Table 6).")
    autoscaling: Seconds = Field(
        default=20.0,
        gt=0,
        description="20s; the paper's is 5m, but here purchases are checked before they are made. Also how wide a "
        "time bin is.",
    )
    cleaning: Seconds = Field(
        default=20.0, gt=0, description="20s: well under underutilizedFor; until then an empty node may be paid for."
    )
    batch_idle: Seconds | None = Field(
        default=None,
        description="What has room is placed at once; before buying, how long to wait for more; null: 1s, or batchMax "
        "where that is shorter.",
    )
    batch_max: Seconds | None = Field(
        default=None,
        description="But never longer than this; null: 10s, or batchIdle where that is longer. 0s: no cycles on "
        "events.",
    )

    @field_validator("batch_max")
    @classmethod
    def _is_no_shorter_than_idle(cls, longest: float | None, info: ValidationInfo) -> float | None:
        if longest is not None and 0 < longest < (info.data.get("batch_idle") or 0.0):
            raise ValueError("is shorter than batchIdle; raise it, or write 0s for no cycles on events")
        return longest

    def model(self) -> Cycles:
        usual = Cycles()
        idle, longest = self.batch_idle, self.batch_max
        if longest is None:
            longest = max(usual.batch_max_s, idle or 0.0)
        if idle is None:
            idle = min(usual.batch_idle_s, longest) if longest > 0 else usual.batch_idle_s
        return self.filled(Cycles, batch_idle_s=idle, batch_max_s=longest)


class TimeoutsSetting(Section):
    """Every wait ends. Defaults are Cluster Autoscaler's and Karpenter's."""

    launch: Seconds = Field(default=300.0, gt=0, description="Until a machine is active; 5m (Karpenter's).")
    registration: Seconds = Field(
        default=900.0, gt=0, description="Until its node registers; 15m (max-node-provision-time)."
    )
    ready: Seconds = Field(default=900.0, gt=0, description="Until its node is Ready; 15m (max-node-startup-time).")
    initialization: Seconds = Field(
        default=900.0,
        gt=0,
        description="From then until its declared start-up taints are gone and its devices there, else it fails; 15m.",
    )
    drain: Seconds = Field(
        default=600.0,
        gt=0,
        description="Until a node is empty, else the drain is undone; 10m (max-graceful-termination-sec).",
    )
    eviction: Seconds = Field(
        default=120.0,
        gt=0,
        description="Until a drain whose every eviction a budget refuses is given up; 2m (max-pod-eviction-time).",
    )
    missing: Seconds = Field(
        default=60.0, gt=0, description="Until a machine missing from the cloud's list, which lags, counts as gone; 1m."
    )
    release: Seconds = Field(
        default=300.0, gt=0, description="Until a machine that does not go is asked for its end again; 5m."
    )
    unused: Seconds = Field(
        default=600.0,
        gt=0,
        description="How long room is kept for pods that another scheduler does not bind, then it pauses; 10m, longer "
        "than a start.",
    )
    backoff_initial: Seconds = Field(
        default=20.0,
        gt=0,
        description="How long a flavour that failed, or was launched for pods that did not use it, is not launched "
        "again, at first; 20s: meanwhile dearer ones are bought.",
    )
    backoff_max: Seconds = Field(
        default=1800.0, gt=0, validate_default=True, description="What that doubles up to; 30m (Cluster Autoscaler's)."
    )

    @field_validator("backoff_max")
    @classmethod
    def _is_no_shorter_than_the_first(cls, longest: float, info: ValidationInfo) -> float:
        if longest < info.data.get("backoff_initial", 0.0):
            raise ValueError("is shorter than backoffInitial; raise it or lower backoffInitial")
        return longest

    def model(self) -> Timeouts:
        return self.filled(Timeouts)


class RunLengthsSetting(Section):
    """How long batch work is taken to run. What is measured: docs/benchmarks.md, run lengths."""

    default: Seconds = Field(
        default=600.0,
        gt=0,
        description="Where nothing states or teaches it; 10m: the paper's longest jobs run 12.",
    )
    learn: Switch = Field(default=True, description="true: what finished pods took is expected of those like them.")
    quantile: Real = Field(
        default=0.5, gt=0, le=1, description="The share of runs that end within the estimate; 0.5: half of them."
    )
    min_runs: Count = Field(
        default=3, ge=1, le=MOST_RUNS, description="Fewer runs of a template, image or kind of owner say nothing; 3."
    )
    half_life: Real = Field(
        default=20.0, gt=0, description="In runs: one counts half as much as one so many runs newer; 20."
    )

    def model(self) -> RunLengths:
        return self.filled(RunLengths)
