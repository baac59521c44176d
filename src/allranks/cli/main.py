"""The command `allranks`."""

import errno
import os
import sys
import traceback
from typing import Annotated

import typer

from allranks.cli import streams
from allranks.cli.lazy_group import lazy_group
from allranks.errors import InputError, Problem
from allranks.local import stop_signals
from allranks.version import __version__

_SECTIONS = {
    "Run": {
        "run": "Run a pipeline, or a single component, on this machine.",
        "launch": "Run a script on this machine as Azure ML would.",
        "resume": "Resume a run that did not finish.",
        "rerun": "Run the pipeline of a run again, as a new run.",
        "cancel": "End a run, or steps of it, here or on Azure ML.",
        "schedules": "Run pipelines on a schedule, on this machine or on Azure ML.",
    },
    "Look": {
        "runs": "List the runs of this workspace, the newest first.",
        "show": "Show a run: steps, metrics, outputs, and failures.",
        "diff": "Compare two runs, or two pipeline files: what their steps depend on, and the results of runs.",
        "logs": "Print the logs of the ranks of a run, or of the engine, or pack them for an issue.",
        "why": "Say why a run has failed: the rank that failed first, its exception, what followed, and what to do.",
    },
    "Author": {
        "init": "Create a small project that runs at once.",
        "check": "Check a pipeline, job, component or schedule without running it.",
        "components": "List and describe components, copy those of the library, and write new ones.",
        "environments": "List, check, build and verify the environments of a project.",
    },
    "Azure": {
        "submit": "Submit a pipeline to Azure ML.",
        "pull": "Write a pipeline job of Azure ML as files: Python, YAML, components and environments.",
        "register": "Register components for Azure ML's designer.",
    },
    "Machine": {
        "doctor": "List the stacks on this machine, or show the Azure sizes and their hardware.",
        "clean": "Remove old runs and files that no run needs.",
    },
}
_HINTS = {
    **dict.fromkeys(("list", "ls"), "Runs: allranks runs. Components: allranks components."),
    "status": "The state of the latest run: allranks show.",
    "ps": "The runs that are running: allranks runs --status Running.",
    **dict.fromkeys(("stop", "kill"), "To end a run: allranks cancel RUN."),
    "open": "To open the page of the latest run: allranks show --open.",
    **dict.fromkeys(("ui", "dashboard"), "To see all runs in the browser: allranks studio."),
    "explain": "To explain the code of a message: allranks why CODE.",
    "help": "The commands: allranks --help. Options of one: allranks COMMAND --help.",
}

app = lazy_group(
    "allranks.cli.commands",
    {name: line for lines in _SECTIONS.values() for name, line in lines.items()},
    help="Run Azure ML pipelines for distributed training on this machine, with real processes on emulated instances, "
    "and submit the same pipelines to Azure ML.",
    sections=_SECTIONS,
    hints=_HINTS,
    add_completion=True,
    has_packages=True,
)


def _print_version(asked: bool) -> None:
    if asked:
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
    """Run the command in sys.argv. Exit codes: 0 success; 1 a step or Azure failed, the disk is full, or standard
    output was closed; 2 wrong input; 130 stopped."""
    streams.prepare()
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
            sys.exit(_print_error(error))
        # Standard output can no longer be written. At exit, Python would print an error about that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno == errno.EPIPE:
            sys.exit(1)  # the reader closed the pipe: `allranks logs | head`
        sys.exit(f"error: {error.strerror}" + (f": {error.filename}" if error.filename else ""))
    except Exception as error:
        sys.exit(_print_error(error))


def _print_error(error: Exception) -> int:
    """Print an error, a bug with its traceback, and return the exit code."""
    # Only errors need these, which take 0.1 s to import.
    from allranks.azure.errors import AzureError
    from allranks.cli.console import print_problems
    from allranks.secrets import redact

    if isinstance(error, InputError):
        print_problems(error.problems)
        return 2
    if isinstance(error, AzureError):
        print_problems([error.problem])
    elif isinstance(error, OSError) and error.filename is not None:
        forbidden = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        expected = "a file or folder that you may read, and write if it is in the workspace" if forbidden else ""
        fix = "change its owner or its permissions, or use another folder for runs: --folder DIR" if forbidden else ""
        print_problems([Problem(os.fsdecode(error.filename), error.strerror or str(error), expected, fix)])
    else:
        sys.stderr.write(redact("".join(traceback.format_exception(error))))
    return 1


if __name__ == "__main__":
    main()
