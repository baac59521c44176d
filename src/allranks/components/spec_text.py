"""Write a component's spec as YAML that reads like a handwritten one."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import yaml

_WIDTH = 120
_LONG = 90
"""Texts of more characters are folded, so that every longer line is the content of a folded text."""
_FIRST_OF_SECTION = ("name", "inputs", "outputs", "code", "environment", "distribution", "limits", "command")
_OPTION = re.compile(r"(?<!python) (?=--?[A-Za-z]|\$\[\[)")


def spec_text(spec: Mapping[str, Any]) -> str:
    """Return the text of a spec: its keys in their order, an option of the command per line."""
    sections: list[str] = []
    for key, value in spec.items():
        before = "\n" if key in _FIRST_OF_SECTION and sections else ""
        if key == "command" and isinstance(value, str):
            value = value.strip()
            style, lines = ("|-", value) if "\n" in value else (">-", _OPTION.sub("\n", value))
            sections.append(f"{before}command: {style}\n{textwrap.indent(lines, '  ')}\n")
        else:
            # PyYAML breaks a line after the word that exceeds the width.
            text = yaml.dump({key: value}, Dumper=_Dumper, sort_keys=False, width=1e6, allow_unicode=True)
            sections.append(f"{before}{''.join(map(_wrapped, text.splitlines()))}")
    return "".join(sections)


def _wrapped(line: str) -> str:
    if len(line) <= _WIDTH:
        return f"{line}\n"
    indent = line[: len(line) - len(line.lstrip())]
    wrap = textwrap.TextWrapper(_WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{each}\n" for each in wrap.wrap(line))


class _Dumper(yaml.SafeDumper):
    """Lists of values in one line, long texts folded, numbers without exponents."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        # PyYAML does not indent the items of a list below their key.
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, _: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = ">" if len(value) > _LONG and "\n" not in value else None
    # A version such as 1.0 would be read as a number without quotes, and 1.0.0 looks like one.
    if re.fullmatch(r"\d[\d.]*", value):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    short = all(isinstance(item, (str, int, float)) for item in value) and sum(len(str(item)) for item in value) < 80
    has_paths = any("/" in str(item) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short and not has_paths)


def _number(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    text = format(Decimal(repr(value)), "f") if value == value and abs(value) != float("inf") else str(value)
    return dumper.represent_scalar("tag:yaml.org,2002:float", text if "." in text else f"{text}.0")


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)
_Dumper.add_representer(float, _number)
