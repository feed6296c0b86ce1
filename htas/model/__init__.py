"""The vocabulary: frozen, exact and free of I/O. Every other package speaks in these words.

All types are frozen `msgspec.Struct`s, so a snapshot or a plan can be written to JSON and read back as it was,
which is what `htas replay` lives on. Units stand in the field names: `_m` millicores, `_bytes`, `_s` seconds.
Instants are seconds since the epoch as floats; amounts of resources and money are integers.
"""
