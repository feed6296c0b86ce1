"""Schedulers that KubeDSM is compared with (KubeDSM 6): each pod at once to the first node by an order, never moved."""
