"""The command `allranks`. What a command needs is imported when it runs, so that --help answers at once."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from allranks.cli import checking, reading, running

app = typer.Typer(
    name="allranks",
    help="Run Azure ML pipelines for distributed training on this machine: real processes on emulated instances, "
    "each with what Azure ML would give it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

for name, command in (
    ("run", running.run),
    ("resume", running.resume),
    ("runs", reading.runs),
    ("show", reading.show),
    ("logs", reading.logs),
    ("check", checking.check),
    ("components", checking.components),
):
    app.command(name)(command)


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from allranks import __version__

        print(f"allranks {__version__}")
        raise typer.Exit


def main() -> None:
    """Runs the command that stands in sys.argv. Exit codes: 0 done; 1 a step failed, or the disk is full; 2 wrong
    input; 130 stopped."""
    from allranks.errors import InputError

    try:
        app()
    except InputError as error:
        from allranks.cli.problems import print_problems

        print_problems(error)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has seen enough: `allranks logs latest | head`.
        sys.stderr.close()
        sys.exit(141)


if __name__ == "__main__":
    main()
