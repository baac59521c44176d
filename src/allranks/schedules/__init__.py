"""Schedules: which a project declares, what is wrong with them, and when they fire."""
