"""What is done for work that has no room where nothing can be bought."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from htas.config.values import Count, Integer, Real, Seconds, Section
from htas.model.policy import Engine, Fallback, FallbackMode, NewPods, Promises

MOST_WORKERS = 64


class FallbackSetting(Section):
    """Limits reached, quota used up: preemption for one pod, the optimiser for all of them."""

    mode: FallbackMode = Field(
        default=FallbackMode.OPTIMIZE,
        description="optimize: what runs is placed anew where that helps, and else as with preempt; "
        "preempt: pods of lower priority are evicted, as by kube-scheduler; off: work waits.",
    )
    promises: Promises = Field(
        default=Promises.KEEP,
        description="keep: budgets and pods that asked not to be disrupted hold against any priority; "
        "as-kube-scheduler: preemption keeps budgets where it has a choice, and nothing else.",
    )
    after: Seconds = Field(
        default=5.0, description="How long a pod waits before the optimiser is asked for it; 5s: its fellows have come."
    )
    budget: Seconds = Field(
        default=10.0, gt=0, le=600, description="The most time for one search; 10s. Work goes on beside it."
    )
    share: Real = Field(
        default=0.8,
        gt=0,
        le=1,
        description="The part of the budget divided among priorities; 0.8. The rest goes to those that need it.",
    )
    engine: Engine = Field(
        default=Engine.DECOMPOSITION,
        description="How is searched. decomposition: exchanges of pods and node patterns; cp-sat: a constraint solver; "
        "portfolio: the first, and what it does not prove by the second.",
    )
    workers: Count = Field(
        default=2, ge=1, le=MOST_WORKERS, description="Threads of the constraint solver; 2, as many as cores."
    )
    pause: Seconds = Field(default=60.0, description="Between two searches; 60s. 0s: one follows the other.")
    new_pods: NewPods = Field(
        default=NewPods.PLAN_AROUND,
        description="Those that come during a search: plan-around: are placed at once; wait: until it is over.",
    )

    patience: Seconds = Field(
        default=300.0,
        description="How long a pod waits for a cloud that is away or has just failed, before others leave for it; 5m.",
    )

    preempt_below: Integer = Field(
        default=0,
        description="Running pods of lower priority than this (pause pods of overprovisioning) are preempted before "
        "anything is launched; others only where nothing can be launched. 0: pods of negative priority; 2147483647: "
        "every pod of lower priority, exactly as kube-scheduler does; -2147483648: none.",
    )

    @field_validator("promises")
    @classmethod
    def _has_an_effect(cls, promises: Promises, info: ValidationInfo) -> Promises:
        if promises is Promises.AS_KUBE_SCHEDULER and info.data.get("mode") is FallbackMode.OFF:
            raise ValueError("has no effect with `mode: off`; remove it, or write `mode: preempt`")
        return promises

    def model(self) -> Fallback:
        return self.filled(Fallback)
