"""Commands that start the engine's helper programs in milliseconds, with its interpreter in isolated mode."""

import os
import sys

SOURCE = os.path.realpath(f"{__file__}/../../..")
"""The folder that contains the package `allranks`; site-packages if it is installed. It must be the last one searched,
because a package in it may have the name of a module of the standard library."""

_BOOT = "import sys; sys.path.append(sys.argv.pop(1)); from allranks.local.{} import {} as run; run(*sys.argv[1:])"


def command(function: str, *arguments: str) -> tuple[str, ...]:
    """Return a command that calls a function below `allranks.local` with the arguments.

    function: ``MODULE:FUNCTION``, such as launchers.rsh:server; ``MODULE`` for its `main`
    """
    module, _, name = function.partition(":")
    # Isolated and without site-packages, Python starts in a fifth of the time, whatever is installed.
    return (sys.executable, "-I", "-S", "-c", _BOOT.format(module, name or "main"), SOURCE, *arguments)
