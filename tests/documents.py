"""The commands that documents show."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer

from allranks.cli.main import app

DOCS = Path(__file__).resolve().parents[1] / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    """Return the pages of docs/ that are in the repository: not those that `make docs` writes."""
    tools = (DOCS.parent / "tools").glob("make_*.py")
    made = {DOCS / "reference" / f"{tool.stem.removeprefix('make_')}.md" for tool in tools}
    return sorted({*DOCS.rglob("*.md")} - made)


class Shown(NamedTuple):
    """A command. folder: the one that the lines before it changed to; "" for the document's own"""

    folder: str
    command: str


def shown_commands(text: str) -> Iterator[Shown]:
    """Yield what stands after a prompt in a console's block, and every line of a shell's block."""
    for language, block in FENCE.findall(text):
        lines = block.replace("\\\n", " ").splitlines()
        if language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        elif language not in ("bash", "sh"):
            continue
        folder = ""
        for line in lines:
            if line.startswith("cd "):
                folder = shlex.split(line)[1]
            elif line.strip() and not line.startswith("#"):
                yield Shown(folder, line)


def commands_of(program: str, text: str) -> list[Shown]:
    """Return the commands that start a program, each once."""
    return list(dict.fromkeys(shown for shown in shown_commands(text) if shown.command.split()[0] == program))


def broken_links(text: str, folder: Path) -> list[str]:
    """Return the links to files and headings that do not exist. folder: that of the document, which need not exist"""
    links = [link for link in _LINK.findall(FENCE.sub("", text)) if "://" not in link]
    return [link for link in links if not _leads_somewhere(link, text, folder)]


def _leads_somewhere(link: str, text: str, folder: Path) -> bool:
    path, _, heading = link.partition("#")
    target = Path(os.path.normpath(folder / path))
    if not path:
        return heading in headings(text)
    if not target.exists():
        return False
    return not heading or target.suffix != ".md" or heading in headings(target.read_text(encoding="utf-8"))


def headings(text: str) -> set[str]:
    """Return the anchors of headings. The second of one text ends with -1 on GitHub, and with _1 on the site."""
    found: Counter[str] = Counter()
    anchors = set()
    for line in re.findall(r"^#+ +(.+)$", FENCE.sub("", text), re.MULTILINE):
        anchor = re.sub(r"[^\w -]", "", _TITLE.sub(r"\1", line)).lower().replace(" ", "-")
        anchors |= {f"{anchor}-{found[anchor]}", f"{anchor}_{found[anchor]}"} if found[anchor] else {anchor}
        found[anchor] += 1
    return anchors


def accept(words: tuple[str, ...]) -> None:
    """Parse a command line, with the checks of its values. Raise an exception if the command does not accept it."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("allranks", list(words))
    while isinstance(command, typer.core.TyperGroup):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
