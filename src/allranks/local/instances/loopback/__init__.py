"""Instances that are addresses on 127.0.0.0/8."""
