"""`allranks schedules`: pipelines that run by themselves, here and on Azure ML."""

from __future__ import annotations

import typer

from allranks.cli.commands import applying, firing

app = typer.Typer(
    name="schedules",
    help="Run pipelines when they are due: here, or on Azure ML.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

for name, command in (
    ("run", firing.run),
    ("next", firing.following),
    ("apply", applying.apply),
    ("list", applying.list_schedules),
    ("enable", applying.enable),
    ("disable", applying.disable),
    ("delete", applying.delete),
):
    app.command(name)(command)
