"""Planning: snapshot in, plan out. Pure: no clock, network, store or random source is reachable from here."""
