"""HTAS: a cost-aware autoscaler, batch scheduler and rescheduler for Kubernetes."""

__version__ = "0.2.0.dev0"
