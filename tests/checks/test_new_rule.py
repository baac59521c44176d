"""A new rule is a row of rules.csv, and a function in a table: `check`, `why` and the page of checks have it."""

import importlib
import runpy
from pathlib import Path

import pytest

from allranks import errors
from allranks.api import jobs
from allranks.checks import component, plan
from allranks.cli.commands import why
from allranks.errors import Level, Rule

RULE_OF_STEPS = """\
from allranks.errors import finding


def sudo(_scope, step):
    if "sudo " in step.command:
        yield finding("sudo", "command", step.command, "a command without sudo")
"""
RULE_OF_COMPONENTS = """\
def long_name(subject):
    if len(subject.name) > 30:
        yield subject.report("long-name", ("name",), subject.name, "at most 30 characters")
"""
JOB = "command: sudo ls{}\nenvironment: {{image: 'python:3.12'}}\ncompute: azureml:cpu\n"
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables with a row more each."""
    (tmp_path / "sudo_rule.py").write_text(RULE_OF_STEPS)
    (tmp_path / "long_rule.py").write_text(RULE_OF_COMPONENTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    fields = ("The command uses sudo.", "Azure ML runs a command as root", "remove sudo")
    rules = {
        **errors._rules(),
        "sudo": Rule("sudo", Level.WARNING, *fields, about="plan"),
        "long-name": Rule("long-name", Level.ADVICE, "The name is long.", "style", "shorten it", about="component"),
    }
    monkeypatch.setattr(errors, "_rules", lambda: rules)
    sudo, long = importlib.import_module("sudo_rule"), importlib.import_module("long_rule")
    monkeypatch.setattr(plan, "OF_KEYS", (*plan.OF_KEYS, (sudo.sudo, "sudo")))
    monkeypatch.setattr(component, "OF_COMPONENTS", (*component.OF_COMPONENTS, (long.long_name, "long-name")))


@pytest.mark.usefixtures("extended")
def test_a_check_finds_it_and_a_comment_ignores_it(tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    file.write_text(JOB.format(""))
    (warning,) = jobs.check(file, folder=tmp_path / "workspace").warnings
    assert (warning.rule, warning.fix) == ("sudo", "remove sudo")
    assert "key command" in warning.where
    file.write_text(JOB.format("  # allranks: ignore sudo"))
    assert jobs.check(file, folder=tmp_path / "workspace").warnings == ()

    spec = tmp_path / "component.yaml"
    spec.write_text(f"name: {'a' * 31}\ntype: command\ncommand: ls\nenvironment: azureml:x:1\n")
    assert "long-name" in {problem.rule for problem in component.check([spec]).advice}


@pytest.mark.usefixtures("extended")
def test_the_docs_and_why_have_it() -> None:
    page = runpy.run_path(str(DOCS.parent / "tools" / "make_checks.py"))["page"]()
    assert "| `sudo` | warning | The command uses sudo. |" in page
    assert "| `long-name` | advice | The name is long. |" in page
    assert "remove sudo" in why.rule_explanations()["sudo"]
