"""Code that several components share.

The package is uploaded next to the code that imports it, like the runtime (allranks/sdk/runtime_copy.py). A module must
import only packages of every environment in which it is used, and of allranks only the runtime.
"""
