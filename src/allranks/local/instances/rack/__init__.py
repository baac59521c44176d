"""Instances that are Linux namespaces."""
