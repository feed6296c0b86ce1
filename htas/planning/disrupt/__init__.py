"""Disruptions: whose pods leave their nodes, so that others get room, machines go, or users are near."""
