"""What the command says of itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from allranks import __version__
from allranks_command import allranks


def test_help_lists_every_command(tmp_path: Path) -> None:
    done = allranks("--help", folder=tmp_path)
    assert done.code == 0
    for command in ("run", "resume", "runs", "show", "logs", "check", "components", "sizes"):
        assert f"\n  {command} " in done.out


@pytest.mark.parametrize("command", ["run", "resume", "runs", "show", "logs", "check", "components", "sizes"])
def test_each_command_has_help_with_its_options(tmp_path: Path, command: str) -> None:
    done = allranks(command, "--help", folder=tmp_path)
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
    import subprocess

    module = [sys.executable, "-m", "allranks.cli.main", "--version"]
    assert subprocess.run(module, cwd=tmp_path, capture_output=True, text=True).stdout == f"allranks {__version__}\n"
