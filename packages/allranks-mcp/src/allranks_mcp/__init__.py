"""Tools for coding agents, over the Model Context Protocol: check, plan, run, runs, why, explain, logs and diff."""
