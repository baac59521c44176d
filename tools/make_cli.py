"""Writes docs/reference/cli.md from the help of the commands.

python tools/make_cli.py
"""

import inspect
import re
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from allranks.cli.agent_files import all_commands

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"

HEAD = """# The command

Made by `make docs` from the help of the commands. Each of them has `-h` and `--help`, which list the ten most used
options, and `--help-all`, which lists all of them.

`allranks --install-completion` makes the shell complete commands, options, files, runs, steps, inputs after `--set`,
sizes, codes of messages, and components of the library.

Exit codes: 0 success; 1 a step or Azure failed, the disk is full, or nobody reads the output; 2 wrong input, nothing
was started; 130 stopped with Ctrl-C.
"""


def page() -> str:
    """Return the whole page."""
    commands = list(all_commands())
    rows = [(f"[`{name}`](#{_anchor(name)})", command.help.splitlines()[0]) for name, command, _ in commands]
    sections = [_section(*each) for each in commands]
    return "\n".join([HEAD, *_table(("command", ""), rows), "", "\n".join(sections)])


def _section(name: str, command: Any, context: Any) -> str:
    level = "#" * len(name.split())
    lines = [f"{level} {name}", "", *_description(command.help)]
    if not isinstance(command, TyperGroup):
        parameters = [each for each in command.get_params(context) if each.name != "help"]
        rows = [_row(*each.get_help_record(context)) for each in parameters]
        arguments = [_place(each) for each in parameters if each.param_type_name == "argument"]
        lines += [
            "```",
            " ".join([name, "[OPTIONS]", *arguments]),
            "```",
            "",
            *_table(("argument or option", ""), rows),
            "",
        ]
    return "\n".join(lines)


def _description(text: str) -> list[str]:
    """Return the help as Markdown, with its examples as code."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return [re.sub(r"^(For example:) (.+)$", r"\1 `\2`", paragraph) + "\n" for paragraph in paragraphs]


def _place(argument: Any) -> str:
    """Return an argument as usage lines show it."""
    several = "..." if argument.nargs == -1 else ""
    return f"{argument.metavar}{several}" if argument.required else f"[{argument.metavar}{several}]"


def _row(name: str, text: str) -> tuple[str, str]:
    """Return the row of an argument or option, from the two columns that the help has."""
    text, _, notes = text.partition("  [")
    sentences = [_sentence(note) for note in notes.rstrip("]").split("; ") if note not in ("", "required", "x>=0")]
    if not name.startswith("-"):  # the type of an argument, whose name says it
        name = re.sub(r" <\w+>$", "", name)
    return f"`{re.sub('<([^>]+)>', _type, name)}`", " ".join([text, *sentences])


def _type(match: re.Match[str]) -> str:
    """Return the placeholder of a value without a name: N for numbers, the choices, else the type."""
    return "N" if match[1].startswith(("int", "float")) else match[1] if "|" in match[1] else match[1].upper()


def _sentence(note: str) -> str:
    """Return a note of the help, such as "default: auto" or "x>=1", as a sentence."""
    kind, _, value = note.partition(": ")
    if kind == "default":
        return f"Default: `{value}`."
    return re.sub(r"^x>=(.+)$", r"At least \1.", note)


def _table(head: tuple[str, ...], rows: list[tuple[str, str]]) -> list[str]:
    cells = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]


def _anchor(heading: str) -> str:
    return heading.replace(" ", "-")


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
