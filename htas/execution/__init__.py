"""Execution: carries plans out, step by step, so that a crash at any instruction loses nothing.

Intent is journalled before an effect, effects are idempotent, and every cycle begins by comparing the journal with what
the cloud and the cluster really show.
"""
