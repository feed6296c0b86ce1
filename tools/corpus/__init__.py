"""What the planner decides about thousands of snapshots, on record: does a change of its inside change any decision?

A question is what `plan` was given (snapshot, policy, instant, stages). What is compared is decisions (`decided.py`):
names, counts, codes, money and times, and no sentence.
"""
