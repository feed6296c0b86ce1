"""The cheapest mix: the multiset of machines of least expected rental that holds the waiting work.

Column generation finds patterns of what one machine could hold (patterns, pricing), CP-SAT chooses how many of each
(finish; exact for little work), and the prices of work found on the way prove how cheap it could be at best (bounds).
Nothing here reads a clock: effort is counted in steps, so that the same input gives the same bytes.
"""
