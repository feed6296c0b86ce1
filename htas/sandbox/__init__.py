"""The sandbox: an in-memory cluster and cloud behind HTAS's ports, on a virtual clock.

It is what HTAS runs on with nothing installed, what tests play their stories in, and the world of experiments
(`tools/lab`). It has behaviour of its own (controllers, billing, quotas, faults) and passes the same contract tests as
real adapters.
"""
