"""`mode: recommend`: what HTAS would do, and what it would have saved by now, without doing any of it."""
