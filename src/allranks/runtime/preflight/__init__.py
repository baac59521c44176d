"""Preflight checks: find faults on all ranks before the first step, and print them in one table."""
