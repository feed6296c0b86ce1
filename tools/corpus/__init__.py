"""What the planner made of thousands of snapshots, on record: does a change of its inside change any decision?

A decision is what `plan` was given (snapshot, policy, instant, stages) and the plan it made, as plain documents: a
structure whose fields are renamed meanwhile is still compared (`tools/corpus/documents.py`).
"""
