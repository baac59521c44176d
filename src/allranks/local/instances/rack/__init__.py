"""Instances that are namespaces of the kernel."""
