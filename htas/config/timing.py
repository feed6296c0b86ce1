"""Cycles, timeouts and run lengths."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from htas.config.values import Count, Real, Seconds, Section, Switch
from htas.model.policy import MOST_RUNS, Cycles, RunLengths, Timeouts


class CyclesSetting(Section):
    """How often each part of planning runs. HTAS also acts on events; these cycles back them up."""

    scheduling: Seconds = Field(default=20.0, gt=0, description="20s is the paper's (Table 6).")
    autoscaling: Seconds = Field(
        default=20.0,
        gt=0,
        description="20s; the paper's is 5m, but here launches are checked before they are made. Also the width of a "
        "time bin.",
    )
    cleaning: Seconds = Field(
        default=20.0, gt=0, description="20s: well under underutilizedFor; until then an empty node may be paid for."
    )
    batch_idle: Seconds | None = Field(
        default=None,
        description="Pods that fit are scheduled at once; before a launch, how long without a new pod HTAS waits; null:"
        " 1s, or batchMax where that is shorter.",
    )
    batch_max: Seconds | None = Field(
        default=None,
        description="The longest such wait; null: 10s, or batchIdle where that is longer. 0s: no cycles on events.",
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
        description="From Ready until its start-up taints are gone and its devices are there, else it fails; 15m.",
    )
    drain: Seconds = Field(
        default=600.0,
        gt=0,
        description="Until a node is empty, else HTAS undoes the drain; 10m (max-graceful-termination-sec).",
    )
    eviction: Seconds = Field(
        default=120.0,
        gt=0,
        description="Until HTAS undoes a drain whose every eviction a budget refuses; 2m (max-pod-eviction-time).",
    )
    missing: Seconds = Field(
        default=60.0, gt=0, description="Until a machine missing from the cloud's list, which lags, counts as gone; 1m."
    )
    release: Seconds = Field(
        default=300.0, gt=0, description="Until HTAS repeats the deletion of a machine that is still there; 5m."
    )
    unused: Seconds = Field(
        default=600.0,
        gt=0,
        description="How long a reservation lasts for pods that another scheduler does not bind, then it pauses; 10m, "
        "longer than a launch.",
    )
    backoff_initial: Seconds = Field(
        default=20.0,
        gt=0,
        description="How long a flavour that failed, or was launched and not used, backs off at first; 20s: meanwhile "
        "HTAS launches dearer ones.",
    )
    backoff_max: Seconds = Field(
        default=1800.0,
        gt=0,
        validate_default=True,
        description="Longest backoff: it doubles up to this; 30m (Cluster Autoscaler's).",
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
    """Estimates of how long batch pods run. Measurements: docs/benchmarks.md, run lengths."""

    default: Seconds = Field(
        default=600.0,
        gt=0,
        description="Estimate where nothing states or teaches it; 10m: the paper's longest jobs run 12.",
    )
    learn: Switch = Field(default=True, description="true: HTAS learns estimates from finished pods of the same kind.")
    quantile: Real = Field(
        default=0.5, gt=0, le=1, description="The share of runs that end within the estimate; 0.5: half of them."
    )
    min_runs: Count = Field(
        default=3, ge=1, le=MOST_RUNS, description="Fewer runs of a template, image or kind of owner are ignored; 3."
    )
    half_life: Real = Field(
        default=20.0, gt=0, description="In runs: the weight of a run halves after so many newer ones; 20."
    )

    def model(self) -> RunLengths:
        return self.filled(RunLengths)
