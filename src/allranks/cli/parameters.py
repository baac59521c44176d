"""Describe the options and arguments of commands."""

from typing import Any

import typer


def option(names: str, help: str, metavar: str | None = None, **settings: Any) -> Any:
    """Return an option. Its help states the default unless that is obvious. names: separated by spaces"""
    return typer.Option(*names.split(), help=" ".join(help.split()), metavar=metavar, show_default=False, **settings)


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """Return an argument. Its help states the default unless that is obvious."""
    return typer.Argument(metavar=metavar, help=" ".join(help.split()), show_default=False, **settings)
