"""Start the program of a parallel step: ``python program.py SETTINGS ENTRY_SCRIPT ARGUMENTS...``."""

import importlib.util
import os
import sys

if __name__ == "__main__":
    folder = os.path.dirname(os.path.abspath(__file__))
    # Neither the path nor the package's name may hide a module of the step's code.
    if sys.path and os.path.realpath(sys.path[0] or ".") == os.path.realpath(folder):
        del sys.path[0]
    name = "_allranks_parallel"
    specification = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert specification is not None
    sys.modules[name] = importlib.util.module_from_spec(specification)
    sys.exit(importlib.import_module(f"{name}.driver").main(*sys.argv[1:3], sys.argv[3:]))
