"""Provisioning: which machines to buy for what found no room, within limits and as cheap as can be."""
