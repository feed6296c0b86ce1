"""Attacks on HTAS as programs: each says what it did and what came of it."""
