"""Groups of commands that import a command's module when it is used.

`allranks --help` takes 0.18 s. If it imported the modules of all commands, it would take 0.39 s. The completion of a
line takes 0.19 s, and 0.30 s with all that the command imports.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

import typer
from typer._click.exceptions import UsageError
from typer._click.shell_completion import CompletionItem
from typer.core import TyperGroup
from typer.main import get_command

from allranks import packages
from allranks.cli.command import build, convert_quickly, without_help
from allranks.deferred_imports import DeferredImports

_ROOMS = (
    "api azure catalog checks cli.console cli.execute cli.values cli.views contract differences engine_log "
    "hardware history images local plan project scheduler schedules sdk secrets text verdict workspace"
)
_COMPLETION_DEFERS = ("rich", *(f"allranks.{name}" for name in _ROOMS.split()))
"""Modules that commands import at the top, and that the completion of their options does not use."""


def lazy_group(
    package: str,
    summaries: Mapping[str, str],
    help: str,
    *,
    sections: Mapping[str, Mapping[str, str]] | None = None,
    hints: Mapping[str, str] = MappingProxyType({}),
    add_completion: bool = False,
    default: str = "",
    has_packages: bool = False,
) -> typer.Typer:
    """Return a group of the commands in a package, or in a module, which has one function per command.

    A module of a package has functions named like commands, or a subgroup named `app`. A function whose name is a
    Python builtin ends with an underscore. SETTINGS in a module are settings of the command's context.

    summaries:      the line of each command in the group's help, in the order of that help
    sections:       the headings of that help, each with the lines of its commands; None: one for all
    hints:          a line about the right command, by words that are no commands
    default:        the command to run if the first word is not a command; "": none
    add_completion: whether the group has the options that install shell completion
    has_packages:   whether packages beside this one add commands to the group
    """

    def all_sections() -> Mapping[str, Mapping[str, str]]:
        found = {heading: dict(lines) for heading, lines in (sections or {"Commands": summaries}).items()}
        for name, line in packages.summaries().items() if has_packages else ():
            found.setdefault(packages.section(name), {})[name] = line
        return found

    class Group(TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands = dict.fromkeys(summaries, cast(Any, None))  # for their names only

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name in summaries:
                with DeferredImports(_COMPLETION_DEFERS if ctx and ctx.resilient_parsing else ()):
                    return _command(package, cmd_name)
            return _command_of_package(ctx, cmd_name) if has_packages else None

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
            return [name for lines in all_sections().values() for name in lines]

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            try:
                return super().resolve_command(ctx, args)
            except UsageError:
                near = get_close_matches(args[0], [*hints, *self.list_commands(ctx)], n=1)
                if near and near[0] in hints:
                    raise UsageError(f"No such command {args[0]!r}. {hints[near[0]]}") from None
                raise

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            convert_quickly(self, ctx)
            if default and args[:1] not in ([name] for name in (*self.commands, "--help", "-h")):
                args = [default, *args]
            return super().parse_args(ctx, args)

        def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
            names = [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]
            return [*names, *without_help(super(TyperGroup, self).shell_complete(ctx, incomplete))]

        def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
            found = all_sections()
            width = max(len(name) for lines in found.values() for name in lines)
            for heading, lines in found.items():
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])

        def invoke(self, ctx: Any) -> Any:
            try:
                return super().invoke(ctx)
            except typer.BadParameter as error:
                error.message = _with_value(error)
                raise

    group = typer.Typer(
        cls=Group,
        help=help,
        no_args_is_help=not default,
        add_completion=add_completion,
        # Commands inherit these settings.
        context_settings={"help_option_names": ["--help", "-h"]},
        pretty_exceptions_enable=False,
        # Rich's help imports Markdown and Pygments, which takes 0.15 s.
        rich_markup_mode=None,
    )
    # Without a callback, Typer rejects an application without registered commands.
    group.callback()(lambda: None)
    return group


def _with_value(error: typer.BadParameter) -> str:
    """Return the message for a wrong value of an option, including the value, which Typer omits."""
    details: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not details:
        return str(error.message)
    value, kind, limits = details[0].get("input"), details[0].get("type"), details[0].get("ctx") or {}
    expected = {
        "int_parsing": "a whole number",
        "greater_than_equal": f"at least {limits.get('ge')}",
        "less_than_equal": f"at most {limits.get('le')}",
    }.get(str(kind))
    return f"found {value!r}, expected {expected}" if expected else str(error.message).removeprefix("Value error, ")


def _command(package: str, name: str) -> Any:
    module = import_module(package)
    if hasattr(module, "__path__"):
        module = import_module(f"{package}.{name}")
        if hasattr(module, "app"):
            return get_command(module.app)
    return build(name, getattr(module, f"{name}_", None) or getattr(module, name), module)


def _command_of_package(ctx: Any, name: str) -> Any:
    """Return a command of another package; None if no package has it. Exit with its problems if it cannot be loaded."""
    try:
        found = packages.command(name)
    except packages.PackageError as error:
        ctx.fail(str(error))
    return found and build(name, found)
