"""A command made of a function: groups of options, a short help, and completion that imports little."""

import functools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, get_type_hints

import typer
from typer._coercion import build_runtime_param
from typer.core import TyperCommand
from typer.main import get_command

from allranks.errors import InputError, Problem

AS_AZURE = "--as-azure"

_NAMES = (
    "--as-azure --code --cold --config --display-name --distribution --fault --folder --instances --offline --quiet "
    "--rank --retries --sample --slots --stall --stand-in --start-timeout --tag --track --until --verbose"
)
_RARE = frozenset(_NAMES.split())
"""Options that --help lists only if the command has fewer than MOST others."""

MOST = 10
"""Maximum number of options that --help lists, apart from itself."""
_ALL = "--help-all"


def build(name: str, found: Any, module: object = None) -> Any:
    """Return the command for an application, or for a function and the settings in its module."""
    if isinstance(found, typer.Typer):
        return get_command(found)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"help_option_names": ["--help", "-h", _ALL], **getattr(module, "SETTINGS", {})}
    single.command(name, cls=_Command, context_settings=settings)(_expanded(found))
    return get_command(single)


class _Command(TyperCommand):
    """A command with a short help, which completes its options without their help."""

    _lists_all = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        convert_quickly(self, ctx)
        ctx.allow_interspersed_args &= AS_AZURE not in args  # options after a script belong to the script
        words = list(args)
        self._lists_all = _ALL in words
        with_value = [name for each in self.params if not getattr(each, "is_flag", True) for name in each.opts]
        if ctx.resilient_parsing and args and args[-1] in with_value:
            args = args[:-1]  # the parser would skip the arguments because the value is missing
        try:
            return super().parse_args(ctx, args)
        finally:
            self._check_pairs(ctx, words)

    def _check_pairs(self, ctx: Any, words: Sequence[str]) -> None:
        """Raise InputError if a space stands in place of the = of an option such as --set NAME=VALUE."""
        for parameter in () if ctx.resilient_parsing else self.params:
            form, pairs = parameter.metavar or "", ctx.params.get(parameter.name)
            for name in (pairs or ()) if re.fullmatch(r"\w+=\w+", form) else ():
                value = "".join(words[words.index(name) + 1 :][:1]) if "=" not in name and name in words else ""
                if value and not value.startswith("-"):
                    option = parameter.opts[-1]
                    fix = f"{option} {name}={'VALUE' if os.path.exists(value) else value}"
                    raise InputError(Problem(f"{option} {name}", f"{name} has no value", form, fix))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        parameters: list[Any] = self.get_params(ctx)
        options = [each for each in parameters if each.param_type_name == "option"]
        arguments = [each.get_help_record(ctx) for each in parameters if each not in options]
        most = len(options) if self._lists_all else MOST
        chosen = sorted(options[:-1], key=lambda each: each.opts[0] in _RARE)[:most]  # the last one is --help
        records = [each.get_help_record(ctx) for each in options if each in chosen]
        records.append(("-h, --help", "Show this message and exit."))
        if hidden := len(options) - 1 - len(chosen):
            records.append((_ALL, f"Show {hidden} more options, and exit."))
        if arguments:
            with formatter.section("Arguments"):
                # The type of an argument is in its name.
                formatter.write_dl([(re.sub(r" <[^>]+>$", "", name), text) for name, text in arguments])
        with formatter.section("Options"):
            formatter.write_dl(records)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        return without_help(super().shell_complete(ctx, incomplete))


class _Conversion:
    """Convert the words of a parameter without pydantic, whose import takes 0.1 s.

    Typer, which imports it, converts only numbers and choices that differ from their default.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if ctx.resilient_parsing or (value is not None and value == param.default):
            return value
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        convert = _CONVERSIONS.get(param.type_descriptor.annotation)
        return convert(value) if convert else build_runtime_param(param.type_descriptor).coerce(value, param, ctx)


_CONVERSIONS: dict[Any, Callable[[Any], Any]] = {str: str, Path: Path, list[str]: list}


def convert_quickly(command: Any, ctx: Any) -> None:
    """Convert the words of a command without importing pydantic where possible."""
    for parameter in command.get_params(ctx):
        parameter._runtime_param = _Conversion()


def without_help(items: list[Any]) -> list[Any]:
    """Return the items without their help, for which typer would import Rich, which takes 0.1 s."""
    for item in items:
        item.help = None
    return items


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
