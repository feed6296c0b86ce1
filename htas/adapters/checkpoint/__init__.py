"""Real moves of running pods: checkpointed by the kubelet with CRIU, restored from a checkpoint image elsewhere."""
