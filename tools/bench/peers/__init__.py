"""HTAS beside the real Karpenter, on a real control plane with KWOK."""
