"""The command `allranks`. What a command needs is imported when it runs, so that --help answers at once."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated

import typer

from allranks.cli.lazy_group import lazy_group
from allranks.local import stop_signals

app = lazy_group(
    "allranks.cli.commands",
    {
        "run": "Run a pipeline on this machine, as Azure ML would.",
        "resume": "Go on with a run that did not finish.",
        "submit": "Submit a pipeline to Azure ML, as it runs on this machine.",
        "cancel": "End a run, or steps of it, here or on Azure ML.",
        "clean": "Remove old runs and what no run needs.",
        "runs": "List the runs of this workspace, the newest first.",
        "show": "Show a run: its steps, metrics, outputs, and what failed.",
        "logs": "Print what the ranks of a run wrote.",
        "check": "Say everything that is wrong, before it runs.",
        "map": "List what a pipeline names and this machine does not have.",
        "components": "List the components of a project with their ports.",
        "register": "Register components for Azure ML's designer.",
        "export": "Write components as YAML and code for the Azure CLI.",
        "doctor": "Tell which stacks work on this machine.",
        "sizes": "List the Azure sizes with GPUs and what each has.",
        "environments": "List, check, build and verify the environments of a project.",
        "schedules": "Run pipelines when they are due: here, or on Azure ML.",
    },
    help="Run Azure ML pipelines for distributed training on this machine: real processes on emulated instances, "
    "each with what Azure ML would give it; then take them to Azure ML as they are.",
)


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
    """Run the command in sys.argv. Exit codes: 0 done; 1 a step or Azure failed, the disk is full, or standard output
    was closed; 2 wrong input; 130 stopped."""
    try:
        try:
            with stop_signals.raised():
                app()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # The rest of the output has nowhere to go, and Python would complain about it at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno == errno.EPIPE:
            sys.exit(1)  # its reader has closed it: `allranks logs | head`
        sys.exit(f"error: {error.strerror}" + (f": {error.filename}" if error.filename else ""))
    except Exception as error:
        code = _print_expected(error)
        if code is None:
            raise
        sys.exit(code)


def _print_expected(error: Exception) -> int | None:
    """Print an error that a user can act on. Return its exit code, and None for any other error."""
    from allranks.azure.errors import AzureError
    from allranks.cli.errors import print_failure, print_problems
    from allranks.errors import InputError

    if isinstance(error, InputError):
        print_problems(error)
        return 2
    if isinstance(error, AzureError):
        print_failure(error.problem)
        return 1
    return None


if __name__ == "__main__":
    main()
