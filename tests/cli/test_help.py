"""What the command says of itself."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from allranks import __version__, packages
from allranks.cli.main import app
from allranks_command import allranks, called, commands


def test_help_lists_every_command(tmp_path: Path) -> None:
    done = allranks("--help", folder=tmp_path)
    assert done.code == 0
    for command in ("run", "resume", "runs", "show", "logs", "check", "components", "doctor"):
        assert f"\n  {command} " in done.out


@pytest.mark.parametrize("command", ["run", "resume", "runs", "show", "logs", "check", "components list", "doctor"])
def test_each_command_has_help_with_its_options(tmp_path: Path, command: str) -> None:
    done = called(*command.split(), "--help", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "--json" in done.out
    assert not list(tmp_path.iterdir())


def test_version(tmp_path: Path) -> None:
    assert allranks("--version", folder=tmp_path).out == f"allranks {__version__}\n"


def test_without_a_command_it_gives_help_and_fails(tmp_path: Path) -> None:
    done = allranks(folder=tmp_path)
    assert done.code == 2
    assert "Usage: allranks" in done.out + done.err


def test_the_module_is_the_command(tmp_path: Path) -> None:
    module = [sys.executable, "-m", "allranks.cli.main", "--version"]
    assert subprocess.run(module, cwd=tmp_path, capture_output=True, text=True).stdout == f"allranks {__version__}\n"


def test_help_imports_neither_commands_nor_rich(tmp_path: Path) -> None:
    program = (
        "import sys; from allranks.cli import main\ntry: main.main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, "--help"], cwd=tmp_path, capture_output=True, text=True)
    imported = done.stderr.split()
    assert "typer" in imported
    assert sorted(name for name in imported if name.startswith(("rich", "allranks."))) == [
        "allranks.cli",
        "allranks.cli.command",
        "allranks.cli.lazy_group",
        "allranks.cli.main",
        "allranks.cli.streams",
        "allranks.deferred_imports",
        "allranks.errors",
        "allranks.local",
        "allranks.local.stop_signals",
        "allranks.packages",
        "allranks.version",
    ]


def groups(group: Any, name: str = "allranks") -> Iterator[tuple[str, Any]]:
    """The group and those in it, by their names."""
    yield name, group
    for each in group.list_commands(None):
        if isinstance(command := group.get_command(None, each), TyperGroup):
            yield from groups(command, f"{name} {each}")


@pytest.mark.parametrize(("name", "group"), list(groups(get_command(app))))
def test_a_groups_help_says_of_a_command_what_that_says_first(name: str, group: Any, tmp_path: Path) -> None:
    listed = called(*name.split()[1:], "--help", folder=tmp_path).out.partition("Show this message and exit.")[2]
    # A text that is too long for the column continues on the next line, below its beginning.
    lines = re.sub(r"\n {3,}", " ", listed).splitlines()
    found = dict(line.split(maxsplit=1) for line in lines if line.startswith("  "))
    assert found == {each: group.get_command(None, each).help.splitlines()[0] for each in group.list_commands(None)}


def test_the_help_of_a_command_lists_at_most_ten_options_and_help_all_the_others(tmp_path: Path) -> None:
    for command in commands(get_command(app)):
        context = command.context_class(command, help_option_names=["--help", "-h"])
        options = [each for each in command.get_params(context) if each.param_type_name == "option" and not each.hidden]
        shown = re.findall(r"^  (-.*?)(?:  |$)", command.get_help(context).partition("Options:\n")[2], re.MULTILINE)
        more = [line for line in shown if line == "--help-all"]
        assert len(shown) - len(more) == min(len(options), 11)
        assert bool(more) is (len(options) > 11)
    listed = called("run", "--help-all", folder=tmp_path).out
    assert "--start-timeout" in listed
    assert "--help-all" not in listed


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("list", "allranks runs"),
        ("lst", "allranks runs"),
        ("status", "allranks show"),
        ("ps", "allranks runs --status Running"),
        ("stop", "allranks cancel RUN"),
        ("opne", "allranks show --open"),
        ("ui", "allranks studio"),
    ],
)
def test_a_word_of_other_tools_is_answered_with_the_command_in_one_line(
    word: str, command: str, tmp_path: Path
) -> None:
    done = called(word, folder=tmp_path)
    (line,) = done.err.splitlines()
    assert (done.code, f": {command}." in line) == (2, True)


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["run", "x.py", "--set", "a", "1"], "--set a=1"),
        (["submit", "x.py", "--set", "a", "1"], "--set a=1"),
        (["launch", "--env", "a", "1", "train.py"], "--env a=1"),
        (["run", "--set", "a", "x.py"], "--set a=VALUE"),
    ],
)
def test_a_space_in_place_of_the_sign_between_name_and_value(words: list[str], fix: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").touch()
    done = called(*words, folder=tmp_path)
    assert (done.code, done.err.splitlines()[-1].split(maxsplit=1)) == (2, ["fix", fix])


def test_a_mistyped_command_is_told_what_was_probably_meant(tmp_path: Path) -> None:
    done = called("schedules", "aply", folder=tmp_path)
    assert done.code == 2
    assert "No such command 'aply'. Did you mean 'apply'?" in done.err


def test_the_core_has_at_most_20_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "entry_points", lambda **_: [])
    assert len(get_command(app).list_commands(None)) <= 20
