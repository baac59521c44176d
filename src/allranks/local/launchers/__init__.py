"""Launchers: how the ranks of each distribution type are started. This package imports nothing itself: some of its
programs are started for each rank."""
