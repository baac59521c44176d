"""Instances that are addresses in 127.0.0.0/8."""
