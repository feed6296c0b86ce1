"""What a cluster would cost under HTAS: as it is, packed, and on the cheapest machines; what stands in the way of less,
and which flavours are worth offering. Works for any cluster's snapshot, whoever bought its nodes.
"""
