"""What HTAS does for unschedulable pods where it cannot launch."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from htas.config.values import Count, Integer, Real, Seconds, Section
from htas.model.policy import Engine, Fallback, FallbackMode, NewPods, Promises

MOST_WORKERS = 64


class FallbackSetting(Section):
    """Limits reached, quota used up: preemption for one pod, the optimiser for all of them."""

    mode: FallbackMode = Field(
        default=FallbackMode.OPTIMIZE,
        description="optimize: HTAS moves running pods where that helps, and else preempts; preempt: HTAS evicts pods "
        "of lower priority, as kube-scheduler does; off: pods stay pending.",
    )
    promises: Promises = Field(
        default=Promises.KEEP,
        description="keep: budgets and pods that opted out of disruption are kept against any priority; as-kube-"
        "scheduler: preemption keeps budgets where it has a choice, and nothing else.",
    )
    after: Seconds = Field(
        default=5.0,
        description="How long a pod is pending before the optimiser runs for it; 5s, so that pods of one burst count "
        "together.",
    )
    budget: Seconds = Field(
        default=10.0, gt=0, le=600, description="The most time for one search; 10s. Cycles go on meanwhile."
    )
    share: Real = Field(
        default=0.8,
        gt=0,
        le=1,
        description="The part of the budget divided among priorities; 0.8. The rest goes where it is needed.",
    )
    engine: Engine = Field(
        default=Engine.DECOMPOSITION,
        description="Search algorithm. decomposition: exchanges of pods and node patterns; cp-sat: a constraint solver;"
        " portfolio: decomposition, then cp-sat for what it does not prove.",
    )
    workers: Count = Field(
        default=2, ge=1, le=MOST_WORKERS, description="Threads of the constraint solver; 2, as many as cores."
    )
    pause: Seconds = Field(default=60.0, description="Between two searches; 60s. 0s: no pause.")
    new_pods: NewPods = Field(
        default=NewPods.PLAN_AROUND,
        description="Pods that arrive during a search: plan-around: HTAS schedules them at once; wait: after the "
        "search.",
    )

    patience: Seconds = Field(
        default=300.0,
        description="How long a pod is pending while the cloud is away or has just failed, before HTAS preempts others "
        "for it; 5m.",
    )

    preempt_below: Integer = Field(
        default=0,
        description="HTAS preempts running pods of lower priority than this (pause pods of overprovisioning) before it "
        "launches; others only where it cannot launch. 0: pods of negative priority; 2147483647: every pod "
        "of lower priority, exactly as kube-scheduler does; -2147483648: none.",
    )

    @field_validator("promises")
    @classmethod
    def _has_an_effect(cls, promises: Promises, info: ValidationInfo) -> Promises:
        if promises is Promises.AS_KUBE_SCHEDULER and info.data.get("mode") is FallbackMode.OFF:
            raise ValueError("has no effect with `mode: off`; remove it, or write `mode: preempt`")
        return promises

    def model(self) -> Fallback:
        return self.filled(Fallback)
