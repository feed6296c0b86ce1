"""The edge tier: weights of services near their users, and most moves for them."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from htas.config.values import Count, Nanos, Real, Seconds, Section
from htas.model.edge import LEAST_GAMMA, EdgePolicy

MOST_MOVES = 50
"""Of a kind, in one period: each is an eviction, and one at a time, 20 s each, fifty take a quarter of an hour."""


class EdgeSetting(Section):
    """KubeDSM's constants. They count where nodes are of tier edge (docs/edge.md); else nothing here does."""

    alpha: Real = Field(
        default=1.0, gt=0, description="Penalty for the missing share of a service's pods below its target; 1."
    )
    beta: Real = Field(
        default=0.5,
        ge=0,
        validate_default=True,
        description="Reward for the share above its target; less than alpha. 0.5.",
    )
    gamma: Real = Field(
        default=10.0,
        validate_default=True,
        description="Reward for meeting its target; at least ten times alpha. 10.",
    )
    cloud_to_edge_moves: Count = Field(
        default=5, le=MOST_MOVES, description="Most pods moved to the edge in one period; 5 (M_C2E). 0: none."
    )
    reorder_moves: Count = Field(
        default=3, le=MOST_MOVES, description="Most pods moved within the edge in one period; 3 (M_ER). 0: none."
    )
    edge_to_cloud_moves: Count = Field(
        default=5, le=MOST_MOVES, description="Most pods moved from the edge for other pods in one period; 5. 0: none."
    )
    period: Seconds = Field(default=60.0, ge=1, description="Between two plans of moves to the edge, 1s or more; 60s.")
    settle: Seconds = Field(
        default=300.0,
        ge=0,
        description="How long a pod must be Ready before it moves, and a node before pods move to it; 5m.",
    )
    price_per_hour: Nanos | None = Field(
        default=None,
        description='Price of an edge node that HTAS did not launch; "0": it is paid for. null: as in the price file.',
    )

    @field_validator("beta")
    @classmethod
    def _is_less_than_alpha(cls, beta: float, info: ValidationInfo) -> float:
        alpha = info.data.get("alpha")
        if alpha is not None and beta >= alpha:
            raise ValueError(f"{beta:g} is not below alpha ({alpha:g}); lower it or raise alpha")
        return beta

    @field_validator("gamma")
    @classmethod
    def _is_much_more_than_alpha(cls, gamma: float, info: ValidationInfo) -> float:
        alpha = info.data.get("alpha")
        if alpha is not None and gamma < LEAST_GAMMA * alpha:
            least = LEAST_GAMMA * alpha
            raise ValueError(f"{gamma:g} is less than {LEAST_GAMMA:g} times alpha; raise it to {least:g} or more")
        return gamma

    def model(self) -> EdgePolicy:
        return self.filled(EdgePolicy, nanos_per_hour=self.price_per_hour)
