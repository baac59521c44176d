"""What `allranks check` prints for CI services: the same places as the text, in files that their readers accept."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from sarif_kit.validate import assert_valid

from allranks.cli.commands.check import result_of
from allranks.cli.commands.ci_reports import github, junit, sarif
from allranks.errors import Problem
from allranks_command import called, environment, words, write, write_job
from bad_inputs.row import prepare
from bad_inputs.tables import ROWS

PLACE = re.compile(r"(?:.*\()?([\w/]+\.(?:py|yml|yaml|ipynb))(?::(\d+))?(?::(\d+))?\)?(?:, .*)?")
COMMAND = re.compile(r"::(?P<level>error|warning|notice) (?P<properties>.+?)::(?P<message>.*)")
FILES = [
    row
    for row in ROWS.values()
    if row.command.startswith(("run ", "check "))
    and not ("--set" in row.command or row.runs or row.closed or row.other or row.variables)
]
ODD = "a, %0A (b)\n\x1b\ufffe:c.yml"


def of_github(text: str) -> list[dict[str, str]]:
    """Return the commands with their values, as GitHub reads them."""
    found = []
    for line in text.split("\n")[:-1]:
        match = COMMAND.fullmatch(line)
        assert match, line
        properties = dict(each.split("=", 1) for each in match["properties"].split(","))
        found.append({name: unquote(value) for name, value in (match.groupdict() | properties).items()})
    return found


def of_sarif(text: str) -> list[Any]:
    log = json.loads(text)
    assert_valid(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == list(dict.fromkeys(result["ruleId"] for result in run["results"]))
    return list(run["results"])


def of_junit(text: str) -> dict[str, ElementTree.Element]:
    suite = ElementTree.fromstring(text)
    cases = {case.attrib["name"]: case for case in suite.iter("testcase")}
    assert suite.attrib["tests"] == str(len(cases))
    assert suite.attrib["failures"] == str(len(list(suite.iter("failure"))))
    return cases


def place(problem: Problem, target: str) -> tuple[str, ...]:
    """Return the file, the line and the column that the text names; the file that was checked if it names none."""
    match = PLACE.fullmatch(problem.where)
    return tuple(value or "" for value in match.groups()) if match else (target, "", "")


def test_each_place_in_the_table_of_bad_inputs_is_that_of_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = 0
    for number, row in enumerate(FILES):
        folder = tmp_path / str(number)
        prepare(row, folder, tmp_path)
        monkeypatch.chdir(folder)
        for checked in result_of(row.arguments[1], {}, False).checked:
            text = (*checked.findings.errors, *checked.findings.warnings)
            places = [place(problem, checked.path or ".") for problem in text]
            total += len(places)
            commands = of_github(github([checked]))
            assert len(commands) == len(text) + len(checked.findings.machine)
            commands = commands[: len(text)]
            assert [tuple(each.get(name, "") for name in ("file", "line", "col")) for each in commands] == places
            results = of_sarif(sarif([checked]))
            assert [of_result(each) for each in results] == places
            assert [each["message"]["text"] for each in results] == [each["message"] for each in commands]
            assert [each["level"] for each in results] == [each["level"] for each in commands]
            cases = of_junit(junit([checked]))
            for problem, (file, line, _) in zip(checked.findings.errors, places, strict=False):
                (failure,) = cases[file].findall("failure")
                assert f"✗ {problem.where}\n" in f"{failure.text}\n"
                is_first = failure.attrib["message"].startswith(f"{problem.where}: ")
                assert not is_first or cases[file].get("line", "") == line
    assert total > 60


def of_result(result: Any) -> tuple[str, ...]:
    (location,) = result["locations"]
    at = location["physicalLocation"]
    lines = (str(at.get("region", {}).get(name, "")) for name in ("startLine", "startColumn"))
    return (unquote(at["artifactLocation"]["uri"]), *lines)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose root is above the folder with its jobs."""
    (tmp_path / ".git").mkdir()
    write_job(tmp_path, "echo", "jobs/right.yml")
    return tmp_path


def test_what_a_reader_could_misread_is_escaped(repository: Path) -> None:
    write_job(repository, "echo", f"jobs/{ODD}", computte="\x1b[31m\ufffe,%0A")
    write_job(repository, "echo \\", f"jobs/part/{ODD}", inputs={"a": {"type": "string", "default": "b"}})
    folder = repository / "jobs"
    (command,) = of_github(called("check", ODD, "--format", "github", folder=folder).out)
    assert (command["file"], command["line"], command["title"]) == (f"jobs/{ODD}", "1", "unknown-key")
    assert command["message"].startswith("key computte (a, %0A (b)\n")
    done = called("check", ODD, "--format", "sarif", folder=folder)
    (result,) = of_sarif(done.out)
    assert of_result(result) == (f"jobs/{ODD}", "1", "")
    assert "did you mean compute?" in done.err  # for the log of the service
    (case,) = of_junit(called("check", ODD, "--format", "junit", folder=folder).out).values()
    assert case.attrib["file"] == "jobs/a, %0A (b)\n\ufffd\ufffd:c.yml"


def test_a_file_without_findings(repository: Path) -> None:
    folder = repository / "jobs"
    done = {
        name: called("check", "right.yml", "--format", name, folder=folder) for name in ("github", "sarif", "junit")
    }
    assert [each.code for each in done.values()] == [0, 0, 0]
    assert done["github"].out == ""
    assert of_sarif(done["sarif"].out) == []
    (case,) = of_junit(done["junit"].out).values()
    assert (case.attrib["name"], [*case]) == ("jobs/right.yml", [])


def test_a_problem_that_is_a_warning_of_the_job_which_uses_its_component(repository: Path) -> None:
    component = "name: a\nversion: '1'\ntype: command\ncommand: x\nenvironment: azureml:x:1\ntags: {a: 1}\n"
    write(repository, "jobs/a.yaml", component)
    write(repository, "jobs/b.yml", "type: pipeline\njobs: {b: {type: command, component: ./a.yaml}}\n")
    commands = of_github(called("check", "b.yml", "a.yaml", "--format", "github", folder=repository / "jobs").out)
    levels = [each["level"] for each in commands if each["title"] == "tag-text"]
    assert levels == ["warning", "error"]
    assert {each["file"] for each in commands} == {"jobs/a.yaml", "jobs/b.yml"}
    cases = of_junit(called("check", "jobs", "--format", "junit", folder=repository).out)
    failed = {name: case.find("failure") is not None for name, case in cases.items()}
    assert failed == {"jobs/a.yaml": True, "jobs/b.yml": False}


def test_what_this_machine_lacks_is_a_notice_and_not_in_the_code(repository: Path) -> None:
    write(repository, "jobs/train.py", "import no_such_package\n")
    write_job(repository, "python train.py", "jobs/train.yml", code=".")
    folder = repository / "jobs"
    (command,) = of_github(called("check", "train.yml", "--format", "github", folder=folder).out)
    assert (command["level"], command["file"]) == ("notice", "jobs/train.yml")
    assert of_sarif(called("check", "train.yml", "--format", "sarif", folder=folder).out) == []
    (case,) = of_junit(called("check", "train.yml", "--format", "junit", folder=folder).out).values()
    assert [each.tag for each in case] == ["system-out"]


def test_a_line_of_a_cell_is_not_a_line_of_the_notebook(repository: Path) -> None:
    cells = [{"cell_type": "code", "source": "x = 1\n1 / 0", "metadata": {}, "outputs": []}]
    write(repository, "a.ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    (result,) = of_sarif(called("check", "a.ipynb", "--format", "sarif", folder=repository).out)
    assert result["message"]["text"].startswith("a.ipynb, cell 1, line 2: ")
    assert of_result(result) == ("a.ipynb", "", "")


def test_environments_have_the_same_formats(repository: Path) -> None:
    write(repository, "environments/torch/environment.yaml", "name: torch\nimage: ubuntu\n")
    done = called("environments", "check", "--format", "github", folder=repository)
    (command,) = of_github(done.out)
    assert (command["file"], command["line"]) == ("environments/torch/environment.yaml", "2")


@pytest.mark.slow
def test_a_reader_that_has_gone(repository: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = words("check", "jobs", "--format", "sarif")
    done = subprocess.run(
        command, cwd=repository, env=environment(), stdout=writer, stderr=subprocess.PIPE, timeout=120
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")
