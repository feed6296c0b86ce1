"""How HTAS connects to the API server, and leader election."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from htas.config.values import Count, Namespace, Real, Seconds, Section, Switch, Text

JITTER = 1.2
"""A retry may come this much later than its period (client-go's leaderelection.JitterFactor)."""


class KubernetesSetting(Section):
    """The API server: with every provider but the sandbox, which is a cluster itself."""

    kubeconfig: Text | None = Field(
        default=None, description="A file. null: the pod's own account, else KUBECONFIG or ~/.kube/config."
    )
    context: Text | None = Field(default=None, description="A context of that file. null: its current one.")
    namespace: Namespace | None = Field(
        default=None, description="Where lease, status and simulated machines are. null: the pod's own, else default."
    )
    requests_per_second: Real = Field(
        default=200.0, gt=0, description="Calls beyond `burst` are limited to this; 200, Karpenter's default."
    )
    burst: Count = Field(default=300, ge=1, description="Calls at once before that; 300, Karpenter's default.")
    connections: Count = Field(
        default=16, ge=1, le=512, description="Calls at one time; 16 bind about as fast as the API server allows."
    )
    page_size: Count = Field(default=1000, ge=1, description="Objects in one page of a list; client-go's is 500.")
    events_per_second: Real = Field(
        default=10.0,
        gt=0,
        description="Events beyond `eventsBurst` and this are dropped: each costs as much as a bind.",
    )
    events_burst: Count = Field(default=50, ge=1, description="Events at once before that; 50.")


class LeaderElectionSetting(Section):
    """Of several daemons one acts. Defaults are kube-scheduler's and Cluster Autoscaler's."""

    enabled: Switch = Field(default=True, description="false: there is one daemon, and no lease.")
    lease_duration: Seconds = Field(
        default=15.0, ge=1, description="A lease not renewed for so long may be taken by another daemon; 15s."
    )
    renew_deadline: Seconds = Field(
        default=10.0, gt=0, validate_default=True, description="A leader that cannot renew for so long ends; 10s."
    )
    retry_period: Seconds = Field(
        default=2.0, gt=0, validate_default=True, description="Between attempts to renew or to take the lease; 2s."
    )

    @field_validator("lease_duration")
    @classmethod
    def _is_what_a_lease_can_hold(cls, lease: float) -> float:
        if not lease.is_integer():
            raise ValueError("is no whole number of seconds, in which a Lease counts; round it")
        return lease

    @field_validator("renew_deadline")
    @classmethod
    def _ends_before_the_lease(cls, deadline: float, info: ValidationInfo) -> float:
        lease = info.data.get("lease_duration")
        if lease is not None and deadline >= lease:
            raise ValueError(
                "is not below leaseDuration: two daemons could lead at once; lower it or raise leaseDuration"
            )
        return deadline

    @field_validator("retry_period")
    @classmethod
    def _leaves_time_for_a_second_try(cls, period: float, info: ValidationInfo) -> float:
        deadline = info.data.get("renew_deadline")
        if deadline is not None and JITTER * period >= deadline:
            raise ValueError("leaves no time for a second attempt within renewDeadline; lower it or raise that")
        return period
