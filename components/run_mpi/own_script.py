"""A script that somebody brings: its command line, its data, its results."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from allranks.errors import InputError, Problem

SHOWN = 10
"""How many scripts are named where the right one is missing."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser of the inputs and outputs that all components with a script of one's own have."""
    found = argparse.ArgumentParser(description=description)
    found.add_argument("--code", type=Path, required=True)
    found.add_argument("--script", required=True)
    found.add_argument("--arguments", default="")
    found.add_argument("--data", type=Path)
    found.add_argument("--results", type=Path, required=True)
    return found


def command_line(args: argparse.Namespace) -> list[str]:
    """The script's path and its arguments. What it finds in its environment is set: data and results by their names.

    Raises InputError where there is no such script below the code, or the arguments cannot be split.
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
    places = {"AZURE_ML_OUTPUT_results": args.results, "AZURE_ML_INPUT_data": args.data}
    os.environ.update({name: str(path) for name, path in places.items() if path is not None})
    return [str(script), *arguments]
