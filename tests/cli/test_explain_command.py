"""`allranks explain`, and the line of messages that names it."""

from __future__ import annotations

from pathlib import Path

from allranks.cli.views.problems import problems_text
from allranks.errors import Problem
from allranks_command import called


def test_a_code_is_explained(tmp_path: Path) -> None:
    done = called("explain", "missing-package", folder=tmp_path)
    assert done.code == 0
    assert "does not have a package" in done.out
    assert "](" not in done.out
    assert called("explain", "missing-package", "--json", folder=tmp_path).json["code"] == "missing-package"


def test_all_codes_are_listed(tmp_path: Path) -> None:
    listed = called("explain", folder=tmp_path).out.splitlines()
    described = [line.split(maxsplit=1) for line in listed]
    assert ["disk-full", "The disk of the workspace is full"] in described
    assert called("explain", "--json", folder=tmp_path).json[0]["code"] == described[0][0]


def test_a_rule_is_explained(tmp_path: Path) -> None:
    done = called("explain", "nested-launcher", folder=tmp_path)
    assert done.code == 0
    assert "level   warning" in done.out
    assert "accelerate#3494" in done.out
    assert "# allranks: ignore nested-launcher" in done.out
    assert "ignore" not in called("explain", "binding", folder=tmp_path).out


def test_an_unknown_code(tmp_path: Path) -> None:
    done = called("explain", "disk-ful", folder=tmp_path)
    assert done.code == 2
    assert "did you mean disk-full?" in done.err


def test_a_message_with_a_code_names_the_command() -> None:
    problem = Problem("here", "nothing", "something", "add it", code="disk-full")
    assert problem == Problem("here", "nothing", "something", "add it")
    assert str(problem).endswith("\n  more: allranks explain disk-full")
    assert problems_text([problem]).plain.endswith("\n  more      allranks explain disk-full")
    assert "more" not in str(Problem("here", "nothing"))
