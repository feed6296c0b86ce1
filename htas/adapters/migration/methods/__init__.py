"""How a twin comes to be: simulated, a fresh copy, by the operator's commands, from the kubelet's checkpoint."""
