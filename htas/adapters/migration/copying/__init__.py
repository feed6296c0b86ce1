"""The way of a kubelet's archives to the node where they are restored: by ssh, or by a registry."""
