"""Trials of experiments: a contender plays a workload in a sandbox of its own, and is measured from outside.

`tools.lab` says who plays what and what is made of the results, and knows no daemon; here the real daemon plays.
"""
