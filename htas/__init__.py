"""HTAS: a cost-aware autoscaler, batch scheduler and rescheduler for Kubernetes."""

__version__ = "0.1.0"
