"""The command `allranks`. What a command needs is imported when it runs, so that --help answers at once."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated

import typer

from allranks.cli.commands import (
    checking,
    doctor,
    environments,
    map,
    reading,
    registering,
    running,
    schedules,
    sizes,
    submitting,
)

app = typer.Typer(
    name="allranks",
    help="Run Azure ML pipelines for distributed training on this machine: real processes on emulated instances, "
    "each with what Azure ML would give it; then take them to Azure ML as they are.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Rich's own help would need Markdown, Pygments and 0.15 s before it says a word.
    rich_markup_mode=None,
)

for name, command in (
    ("run", running.run),
    ("resume", running.resume),
    ("submit", submitting.submit),
    ("cancel", submitting.cancel),
    ("runs", reading.runs),
    ("show", reading.show),
    ("logs", reading.logs),
    ("check", checking.check),
    ("components", checking.components),
    ("map", map.map_names),
    ("register", registering.register),
    ("export", registering.export),
    ("doctor", doctor.doctor),
    ("sizes", sizes.sizes),
):
    app.command(name)(command)
app.add_typer(environments.app, name="environments")
app.add_typer(schedules.app, name="schedules")


def _print_version(asked: bool) -> None:
    if asked:
        from allranks import __version__

        print(f"allranks {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command that stands in sys.argv. Exit codes: 0 done; 1 a step or Azure failed, the disk is full, or
    nobody reads the output; 2 wrong input; 130 stopped."""
    from allranks.azure.errors import AzureError
    from allranks.errors import InputError

    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except InputError as error:
        from allranks.cli.problems import print_problems

        print_problems(error)
        sys.exit(2)
    except AzureError as error:
        from allranks.cli.problems import print_failure

        print_failure(error.problem)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # What is still to be written has nowhere to go, and Python would complain of it at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno == errno.EPIPE:
            sys.exit(1)  # whoever read the output has seen enough: `allranks logs | head`
        sys.exit(f"error: {error.strerror}" + (f": {error.filename}" if error.filename else ""))


if __name__ == "__main__":
    main()
