"""The page about azureml-examples: its program gives each file its reason, and counts what checks."""

import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from notebooks import write_notebook

PACKAGE = Path(__file__).resolve().parents[1]
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
AUTOML = "type: pipeline\njobs: {find: {type: automl}}\n"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PACKAGE / "tools"))
    module = importlib.import_module("make_conformance")
    monkeypatch.setattr(module, "refused_by_sdk", lambda path: "submitting")
    return module


@pytest.fixture
def checkout(program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that lacks a file of its commit, and has a pointer of Git LFS in place of another."""
    for name, text in {"data/words.txt": "a\n", "data/all.zip": POINTER, "there.txt": "b\n", "new.txt": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    own = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "data", "there.txt"), (*own, "commit", "-q", "-m", "Add files")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "data/words.txt").unlink()
    monkeypatch.setattr(program, "CHECKOUT", tmp_path)
    return tmp_path


def test_the_files_that_a_checkout_lacks_are_found(program: Any, checkout: Path) -> None:
    assert program.missing_files(checkout) == ("data/all.zip", "data/words.txt")


def test_the_page_meets_its_goal_and_gives_every_reason() -> None:
    text = (PACKAGE / "docs/conformance.md").read_text(encoding="utf-8")
    shares = {name: int(share) for name, share in re.findall(r"^\| (\w+) \|.* (\d+)% \|$", text, re.MULTILINE)}
    assert shares.keys() == {"files", "notebooks", "together"}
    assert shares["together"] >= 90
    rows = [line.split(" | ") for line in text.splitlines() if re.match(r"\| \S+\.(ya?ml|ipynb) ", line)]
    assert len(rows) > 20
    reasons = [row[2] if len(row) > 2 else row[1].rstrip("| ") for row in rows]
    assert [reason for reason in reasons if not reason or "`" in reason] == []


def test_a_file_that_does_not_check_has_a_reason(program: Any, checkout: Path) -> None:
    tmp_path = checkout
    for name, text in {"fits.yml": "type: pipeline\n", "wrong.yml": "type: pipeline\n", "find.yml": AUTOML}.items():
        (tmp_path / name).write_text(text)
    write_notebook(tmp_path, "x = 1\nraise RuntimeError('edit me')", name="edit.ipynb")
    outcomes = program.Outcomes(None)
    checks = {
        "fits.yml": program.Outcome(),
        "wrong.yml": program.Outcome("data", "pipeline p, key inputs.x", "data/words.txt does not exist", True),
        "find.yml": program.Outcome("not-run-here", "step find", "its type is automl"),
        "edit.ipynb": program.Outcome("file-fails", "edit.ipynb, cell 1, line 2", "RuntimeError: edit me", True),
    }
    outcomes.checks.update(checks)
    outcomes.ends["fits.yml"] = ("version", "'DataFrame' object has no attribute 'append'")
    assert program.share(list(checks), outcomes, tmp_path) == "4 | 2 | 3 | 1 | 33% |"
    table = program.table(list(checks), outcomes, tmp_path)
    assert "| wrong.yml |  | this checkout lacks the file | data/words.txt does not exist | submitting |" in table
    assert "| edit.ipynb |  | raises this itself, until its reader edits it | RuntimeError: edit me |" in table
    assert "| fits.yml | 'DataFrame' object has no attribute 'append' |" in table
    assert (
        program.why(program.Outcome(found="NameError: name 'ml' is not defined"), tmp_path, []) == "no cell defines ml"
    )


def test_a_file_has_the_python_of_its_environments_or_a_reason(program: Any, tmp_path: Path) -> None:
    own, needs, elsewhere = (f"{folder}/x.yml" for folder in (*program.REALISED, "cli/jobs"))
    checks = {
        own: program.Outcome("missing-package", found="no six"),
        needs: program.Outcome("unresolved-name", found="no a:b"),
    }
    outcomes = program.Outcomes(None, {**checks, elsewhere: program.Outcome()})
    outcomes.realised[own] = ("Completed", "Python 3.8.18")
    table = program.table_of_environments(outcomes, tmp_path)
    assert f"| {own} | lacks a package | Completed | Python 3.8.18 |" in table
    needed = "needs a workspace or a download"
    assert f"| {needs} | {needed} | not run | {needed}: no a:b |" in table
    assert f"| {elsewhere} |" not in table


def test_a_download_that_is_refused_is_no_failure(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "allranks"
    warned, refused = "! a\\n  found     b\\n", "✗ p\\n  found     %s\\n  more      allranks why no-download\\n"
    command.write_text(f"#!/bin/sh\nprintf '{warned}{refused}' $2\n")
    command.chmod(0o755)
    (tmp_path / "x.yml").write_text("type: pipeline\n")
    outcomes = importlib.import_module("examples_outcomes")
    monkeypatch.setattr(outcomes, "ALLRANKS", command)
    assert outcomes.how_it_runs(str(tmp_path / "x.yml")) == ("network", str(tmp_path / "x.yml"))
    assert program.ENDED["network"] == "needs a download"
