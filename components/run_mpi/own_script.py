"""A user's script: its command line, data and results."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from allranks.errors import InputError, Problem

SHOWN = 10
"""Maximum number of scripts in the error message if the script is missing."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the inputs and outputs that all components with a user's script share."""
    inputs = argparse.ArgumentParser(description=description)
    inputs.add_argument("--code", type=Path, required=True)
    inputs.add_argument("--script", required=True)
    inputs.add_argument("--arguments", default="")
    inputs.add_argument("--data", type=Path)
    inputs.add_argument("--results", type=Path, required=True)
    return inputs


def command_line(args: argparse.Namespace) -> list[str]:
    """Return the script's path and arguments, and set the environment variables of its data and results.

    Raise InputError if there is no such script below the code, or the arguments cannot be split.
    """
    code, script = args.code.resolve(), (args.code / args.script).resolve()
    if not script.is_file() or not script.is_relative_to(code):
        others = sorted(str(file.relative_to(code)) for file in code.rglob("*.py"))
        shown = ", ".join(others[:SHOWN]) + (", ..." if len(others) > SHOWN else "")
        raise InputError(
            Problem(
                where="input script",
                found=f"{args.script}, which is not in the code",
                expected=f"one of {shown}" if others else "a Python file in the folder of the input code",
                fix="give its path from the folder of the input code on",
            )
        )
    try:
        arguments = shlex.split(args.arguments)
    except ValueError as error:
        found = f"{args.arguments!r}: {error}"
        raise InputError(Problem("input arguments", found, "what a shell can split", "close the quotation")) from None
    folders = {"AZURE_ML_OUTPUT_results": args.results, "AZURE_ML_INPUT_data": args.data}
    os.environ.update({name: str(path) for name, path in folders.items() if path is not None})
    return [str(script), *arguments]
