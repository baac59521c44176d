"""The variables that a shell adds to the environment of the command that it executes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def added(program: Mapping[str, Any], executable: str) -> dict[str, str]:
    """Return the environment of a program in the working directory, as the shell of its arguments passes it on.

    executable: the path at which the shell finds the command
    """
    environment: dict[str, str] = dict(program["environment"])
    shell, *options = program["arguments"]
    if options[:1] == ["-c"]:
        inherited = environment.get("PWD", "")
        if not (os.path.isabs(inherited) and os.path.isdir(inherited) and os.path.samefile(inherited, ".")):
            environment["PWD"] = os.getcwd()
        if os.path.basename(shell) == "bash":
            environment.setdefault("SHLVL", "0")
            environment["_"] = executable
    return {**environment, **program["python"]["variables"]}
