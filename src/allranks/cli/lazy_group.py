"""Groups of commands that import a command's module when it is used.

`allranks --help` takes 0.18 s. If it imported the modules of all commands, it would take 0.39 s. The completion of a
line takes 0.19 s, and 0.30 s with all that the command imports.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, cast, get_type_hints

import typer
from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from allranks import packages
from allranks.deferred_imports import DeferredImports

_ROOMS = (
    "api azure catalog checks cli.console cli.execute cli.values cli.views contract differences engine_log "
    "hardware history images local plan project scheduler schedules sdk secrets text verdict workspace"
)
_COMPLETION_DEFERS = ("rich", *(f"allranks.{name}" for name in _ROOMS.split()))
"""Modules that commands import at the top, and that the completion of their options does not use."""

AS_AZURE = "--as-azure"


def lazy_group(
    package: str,
    summaries: Mapping[str, str],
    help: str,
    *,
    add_completion: bool = False,
    default: str = "",
    has_packages: bool = False,
) -> typer.Typer:
    """Return a group of the commands in a package, or in a module, which has one function per command.

    A module of a package has functions named like commands, or a subgroup named `app`. A function whose name is a
    Python builtin ends with an underscore. SETTINGS in a module are settings of the command's context.

    summaries:      the line of each command in the group's help, in the order of that help
    default:        the command to run if the first word is not a command; "": none
    add_completion: whether the group has the options that install shell completion
    has_packages:   whether packages beside this one add commands to the group
    """

    def all_summaries() -> Mapping[str, str]:
        return {**summaries, **packages.summaries()} if has_packages else summaries

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
            return list(all_summaries())

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            _leave_as_written(self, ctx)
            if default and args[:1] not in ([name] for name in (*self.commands, "--help", "-h")):
                args = [default, *args]
            return super().parse_args(ctx, args)

        def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
            names = [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]
            return [*names, *_without_help(super(TyperGroup, self).shell_complete(ctx, incomplete))]

        def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
            with formatter.section("Commands"):
                formatter.write_dl(list(all_summaries().items()))

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
    return f"found {value!r}, expected {expected}" if expected else str(error.message)


class _Command(TyperCommand):
    """A command that completes its options without their help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _leave_as_written(self, ctx)
        ctx.allow_interspersed_args &= AS_AZURE not in args  # options after a script belong to the script
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        return _without_help(super().shell_complete(ctx, incomplete))


class _AsWritten:
    """Leave the values of parameters unchanged."""

    def coerce(self, value: Any, **_: Any) -> Any:
        return value


def _leave_as_written(command: Any, ctx: Any) -> None:
    """During completion, do not convert words: typer would import pydantic, which takes 0.1 s."""
    if ctx.resilient_parsing:
        for parameter in command.get_params(ctx):
            parameter._runtime_param = _AsWritten()


def _without_help(items: list[Any]) -> list[Any]:
    """Return the items without their help, for which typer would import Rich, which takes 0.1 s."""
    for item in items:
        item.help = None
    return items


def _command(package: str, name: str) -> Any:
    module = import_module(package)
    if hasattr(module, "__path__"):
        module = import_module(f"{package}.{name}")
        if hasattr(module, "app"):
            return get_command(module.app)
    return _build(name, getattr(module, f"{name}_", None) or getattr(module, name), module)


def _command_of_package(ctx: Any, name: str) -> Any:
    """Return a command of another package; None if no package has it. Exit with its problems if it cannot be loaded."""
    try:
        found = packages.command(name)
    except packages.PackageError as error:
        ctx.fail(str(error))
    return found and _build(name, found)


def _build(name: str, found: Any, module: object = None) -> Any:
    """Return the command for an application, or for a function and the settings in its module."""
    if isinstance(found, typer.Typer):
        return get_command(found)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, cls=_Command, context_settings=getattr(module, "SETTINGS", None))(_expanded(found))
    return get_command(single)


def _expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in which each group of options is replaced by its options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    if not groups:
        return command

    @functools.wraps(command)
    def with_groups(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    parameters = []
    for name, parameter in signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(groups[name], include_extras=True)
        parameters += [
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
            for field in fields(groups[name])
        ]
    with_groups.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_groups
