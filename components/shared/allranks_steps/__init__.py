"""What the programs of several components share.

The package is uploaded next to the code that imports it, like the runtime (allranks/sdk/runtime_copy.py). A module must
import only what each environment has that it is used in, and nothing of allranks but the runtime.
"""
