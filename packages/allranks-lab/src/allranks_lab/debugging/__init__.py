"""A debugger in ranks of a step: `allranks debug`."""
