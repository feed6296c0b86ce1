"""HTAS as the paper prints it: Algorithms 1 to 5, one a module, line by line, and nothing of ours.

Source: Z. Zhong and R. Buyya, "A Cost-Efficient Container Orchestration Strategy in Kubernetes-Based Cloud Computing
Infrastructures with Heterogeneous Resources" (2020). Where print leaves a choice the module says which was taken.
`readings` has the places where the algorithms must have been run otherwise, for docs/paper/as-printed.md.
"""
