"""What HTAS costs on work that it was not tuned for, beside well-set baselines and a bound."""
