"""The inputs of a pipeline on the command line: ``--set NAME=VALUE`` and ``--params FILE``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set an input of the pipeline. May be repeated.",
        show_default=False,
    ),
]
ParamsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--params",
        metavar="FILE",
        help="Set inputs of the pipeline from a YAML or JSON file with a mapping of names to values. --set overrides "
        "them.",
        show_default=False,
    ),
]


def settings_of(
    pairs: list[str] | None, params: Path | None = None, *, option: str = "--set", example: str = "epochs=5"
) -> dict[str, str]:
    """Return the values of --params and --set, or of another option, as text, by name.

    Raise InputError for a pair without "=", a repeated name, or a file that is not a mapping of names to values.
    """
    from allranks.errors import InputError, Problem

    settings: dict[str, str] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(
                Problem(f"{option} {pair}", "it is not NAME=VALUE", "NAME=VALUE", f"for example: {option} {example}")
            )
        if name in settings:
            raise InputError(Problem(f"{option} {pair}", f"{name} is set twice", "", "remove one of them"))
        settings[name] = value
    return _read(params) | settings if params is not None else settings


def layout_settings(text: str) -> dict[str, str]:
    """Return the values of a component's layout, from a text such as 2x4, as `settings_of`; none if it is empty.

    Raise InputError for any other text.
    """
    from allranks.contract import layout

    if not text:
        return {}
    counts = layout.parse(text, "-j")
    return {name: str(getattr(counts, name)) for name in ("instance_count", "process_count_per_instance")}


def _read(path: Path) -> dict[str, str]:
    import yaml

    from allranks.errors import InputError, Problem
    from allranks.sdk import bounded_yaml

    where = f"--params {path}"
    expected = "a YAML or JSON file with a mapping of names to values, such as epochs: 5"
    try:
        values = bounded_yaml.load_file(path)
    except OSError as error:
        raise InputError(Problem(where, f"it cannot be read: {error.strerror}", expected)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(Problem(where, f"it is not YAML: {error}", expected)) from None
    if not isinstance(values, dict):
        raise InputError(Problem(where, f"its content is a {type(values).__name__}", expected))
    try:
        return dict(_flat(values, ""))
    except ValueError as error:
        expected = "numbers, texts, true or false, or mappings with a path"
        raise InputError(Problem(where, str(error), expected)) from None


def _flat(values: Mapping[Any, Any], group: str) -> Iterator[tuple[str, str]]:
    """Yield the values with their names. An input of a group is GROUP.NAME, and data is a path or a mapping with it."""
    for key, value in values.items():
        name = f"{group}{key}"
        if isinstance(value, Mapping) and isinstance(value.get("path"), str):
            yield name, value["path"]
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, bool):
            yield name, str(value).lower()
        elif isinstance(value, (str, int, float)):
            yield name, str(value)
        else:
            raise ValueError(f"the value of {name} is {'missing' if value is None else f'a {type(value).__name__}'}")
