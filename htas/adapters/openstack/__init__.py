"""OpenStack: machines from bare Nova."""
