"""Run a training script: prepare its libraries, record its failure, and exit cleanly.

    python -m allranks.runtime SCRIPT [ARGUMENT ...]

For scripts that use Lightning, transformers, Accelerate, DeepSpeed or mpi4py without this package. No process group is
created. The exit codes are those of `runtime.main`."""

import runpy
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from allranks.errors import InputError, Problem
from allranks.runtime import lifecycle
from allranks.runtime.libraries import prepare_libraries

_USAGE = "python -m allranks.runtime SCRIPT [ARGUMENT ...]"


def run(arguments: list[str]) -> NoReturn:
    """Run the script arguments[0] as Python would, and exit."""
    lifecycle.run(lambda _ending: partial(_run, arguments))


def _run(arguments: list[str]) -> None:
    if not arguments:
        raise InputError(Problem("command", "no script", _USAGE, "add the script's path"))
    script = Path(arguments[0])
    if not script.is_file():
        raise InputError(Problem("command", f"no file {script}", _USAGE, "add the script's path"))
    prepare_libraries()
    sys.argv = arguments
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    run(sys.argv[1:])
