"""Prints what a library would find, once the runtime has prepared for it, twice."""

import os

from allranks.runtime import prepare_libraries

prepare_libraries()
prepare_libraries()
for name in sorted(os.environ):
    if name.startswith(("NCCL_", "UCX_")):
        print(f"{name}={os.environ[name]}")
