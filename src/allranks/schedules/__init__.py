"""Schedules: find those that a project declares, check them, and compute when they fire."""
