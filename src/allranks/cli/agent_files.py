"""The files of `allranks init --agents`, made from the commands, the rules and the library as they are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from allranks.catalog import shipped_folder
from allranks.catalog.find import FOLDER, find_components
from allranks.cli.main import app
from allranks.errors import Rule
from allranks.version import __version__

SKILL = ".agents/skills/allranks/SKILL.md"
"""Where agents look for the skills of a project."""


def agent_files() -> dict[str, bytes]:
    """Return the content of the files by name."""
    skill = Path(__file__).with_name("agent_skill.md").read_text(encoding="utf-8")
    return {"llms.txt": _index().encode(), SKILL: skill.encode()}


def all_commands(group: Any = None) -> Iterator[tuple[str, Any, Any]]:
    """Yield each command with its words and its context, in the order of the help. group: the context of a group; None
    for all"""
    root: Any = get_command(app)
    group = group or root.context_class(root, info_name="allranks")
    for name in group.command.list_commands(group):
        command = group.command.get_command(group, name)
        own = command.context_class(command, info_name=name, parent=group)
        yield own.command_path, command, own
        if isinstance(command, TyperGroup):
            yield from all_commands(own)


def _index() -> str:
    """Return llms.txt: a title, a summary, text without headings, then links (https://llmstxt.org)."""
    commands = {name: command.help.splitlines()[0] for name, command, _ in all_commands()}
    known = Rule.all_about("component", "plan", "environment")
    rules = {rule.code: f"{rule.what} ({rule.level.value})" for rule in known}
    components = {each.folder: each.summary for each in find_components(shipped_folder() / FOLDER)}
    lines = ["# allranks", "", "> Runs Azure ML pipelines for distributed training here, and submits them to Azure ML."]
    for title, entries in (
        (f"Commands of version {__version__}. COMMAND --help has the options:", commands),
        ("Rules of `allranks check`. `allranks why RULE` says what to do:", rules),
        ("Components of the library. `allranks components NAME` has the inputs and outputs:", components),
    ):
        lines += ["", title, "", *(f"- `{name}`: {text}" for name, text in entries.items())]
    lines += ["", "## Documentation", "", "- [Pages](https://allranks.github.io/allranks/llms.txt): as Markdown", ""]
    return "\n".join(lines)
