"""Launchers: how the ranks of each distribution type are started.

This package imports nothing itself: the programs in `rsh` are started for each rank.
"""
