"""A user's program: its file, its arguments, and the environment variables with the paths of its data and outputs."""

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from allranks_steps.messages import bad_input

SHOWN = 10
"""Maximum number of scripts in the error message if the script is missing."""

DATA = ("data", "data_2", "data_3", "file", "initial_model")
OUTPUTS = ("results", "model", "checkpoints", "metrics")
"""Inputs and outputs that are paths. A component may lack some. The program reads each from AZURE_ML_INPUT_name
or AZURE_ML_OUTPUT_name."""

_VARIABLE = re.compile(r"\$(?:(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\}|(?P<dollar>\$))")


def command_line(args: argparse.Namespace) -> list[str]:
    """Return the program's path and its arguments, with unexpanded variables. Set the environment variables for its
    data and outputs.

    Without `source`, the program is in the working directory, which is the node's code. Otherwise it may be a program
    on PATH.

    Raise InputError if there is no such program, or the arguments cannot be split.
    """
    program = _program(args.source, args.script)
    try:
        arguments = shlex.split(args.arguments or "")
    except ValueError as error:
        found = f"{args.arguments!r}: {error}"
        raise bad_input("input arguments", found, "what a shell can split", "close the quotation") from None
    for kind, names in (("INPUT", DATA), ("OUTPUT", OUTPUTS)):
        for name in names:
            if (path := getattr(args, name, None)) is not None:
                os.environ[f"AZURE_ML_{kind}_{name}"] = str(path)
    return [program, *arguments]


def expanded(arguments: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Return arguments with ``$NAME`` and ``${NAME}`` replaced, and ``$$`` by a dollar sign.

    variables: environment of the process that runs the program, so that ``$RANK`` is its own rank

    Raise InputError for a variable that does not exist.
    """

    def value(match: re.Match[str]) -> str:
        name = match["name"] or match["braced"]
        if name is None:
            return "$"
        if name not in variables:
            ports = [each for each in variables if each.startswith(("AZURE_ML_INPUT_", "AZURE_ML_OUTPUT_"))]
            found = f"{match[0]}, and the process has no variable {name}"
            expected = f"$RANK, $LOCAL_RANK, $WORLD_SIZE, or one of ${', $'.join(sorted(ports))}"
            fix = "connect the input of that name, or write $$ for a dollar sign"
            raise bad_input("input arguments", found, expected, fix)
        return variables[name]

    return [_VARIABLE.sub(value, argument) for argument in arguments]


def _program(source: Path | None, script: str) -> str:
    folder = (source or Path()).resolve()
    path = (folder / script).resolve()
    if path.is_file() and path.is_relative_to(folder):
        return str(path)
    on_path = shutil.which(script) if not script.endswith(".py") and "/" not in script else None
    if on_path:
        return on_path
    others = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.py")) if source else []
    shown = ", ".join(others[:SHOWN]) + (", ..." if len(others) > SHOWN else "")
    found = f"{script}, which is not in {'the source' if source else 'the code of the node'}"
    expected = f"one of {shown}" if others else "a file in the folder of the input source"
    without_source = "connect the input source with your folder, or set the component's code to it"
    fix = "give its path from that folder on" if source else without_source
    raise bad_input("input script", found, expected, fix)
