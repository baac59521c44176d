"""Comments that ignore a rule: on a line, above one, and for a whole file; in YAML and in Python."""

from pathlib import Path

import pytest

from allranks.checks.component import check
from allranks.errors import Problem
from allranks.sdk.suppressions import ignores, read, remaining
from component_projects import YAML, make

ONE = "name: a\nversion: 1.2  # allranks: ignore version-number, spot\n# allranks: ignore tags\n\n# more\ntags: {}\n"


def test_a_line_and_the_line_below() -> None:
    comments = read(ONE)
    assert ignores(comments, "version-number", 2)
    assert ignores(comments, "spot", 2)
    assert not ignores(comments, "spot", 1)
    assert ignores(comments, "tags", 6)
    assert not ignores(comments, "tags", 3)
    assert not ignores(comments, "tags", 0)


def test_a_comment_above_all_content_is_for_the_file() -> None:
    comments = read("---\n# Words.\n# allranks: ignore spot\n\nname: a\n")
    assert ignores(comments, "spot", 5)
    assert ignores(comments, "spot", 0)
    assert not ignores(comments, "spots", 5)


@pytest.mark.parametrize(
    ("text", "is_python"),
    [
        ("command: |\n  # allranks: ignore spot\n  run\nname: a\n", False),
        ("description: >-\n  x\n  y # allranks: ignore spot\nname: a\n", False),
        ('a = """\n# allranks: ignore spot\n"""\nb = 1\n', True),
        ("a = (  # allranks: ignore spot\n", True),
        ("name: a # allranks: ignore\n", False),
    ],
    ids=["a block", "a folded text", "a string", "no Python", "no rule"],
)
def test_what_is_no_comment_ignores_nothing(text: str, is_python: bool) -> None:
    comments = read(text, is_python=is_python)
    assert not any(ignores(comments, "spot", line) for line in range(5))


def test_python(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text("x = 1\n# allranks: ignore spot\ny = step()\nz = step()\n")
    problems = [Problem(f"step a, key command ({file}:{line})", "x", rule="spot", ignorable=True) for line in (3, 4)]
    assert list(remaining(problems)) == problems[1:]


@pytest.mark.parametrize("where", ["", "nowhere.yaml:3", "the pipeline (x)", "step a ("])
def test_a_place_without_a_file_is_not_ignored(where: str) -> None:
    problem = Problem(where, "x", rule="spot", ignorable=True)
    assert list(remaining([problem])) == [problem]


def test_warnings_and_advice_of_a_component_are_ignored_and_errors_are_not(tmp_path: Path) -> None:
    path = make(tmp_path) / "component.yaml"
    spoilt = YAML.replace('version: "1.2.0"', "version: 1.2").replace("default: warm", "default: hot")
    path.write_text(spoilt)
    found = check([path])
    assert [problem.rule for problem in (*found.errors, *found.warnings)] == ["default-enum", "version-number"]
    path.write_text(f"# allranks: ignore version-number, default-enum\n{spoilt}")
    found = check([path])
    assert [problem.rule for problem in found.errors] == ["default-enum"]
    assert found.warnings == ()
