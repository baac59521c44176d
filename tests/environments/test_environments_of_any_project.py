"""`allranks environments check PATH`: environments of any project, by what Azure ML needs of them alone."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allranks.checks.environment import check_files
from allranks.cli.main import app
from allranks.errors import InputError, Rule

SCHEMA = "$schema: https://azuremlschemas.azureedge.net/latest/environment.schema.json\n"
IMAGE = "name: theirs\nimage: ubuntu:24.04\n"
CONDA = "dependencies: [python=3.11, pip=24, {pip: [torch==2.13.0]}]\n"
BUILD = "name: theirs\nbuild: {path: context}\n"


@dataclass(frozen=True)
class Case:
    """An environment's file, other files, and the findings: RULE:LINE of a file."""

    text: str
    found: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


CASES = {
    "an image": Case(IMAGE),
    "an image and a conda file": Case(f"{IMAGE}conda_file: conda.yml\n", files={"conda.yml": CONDA}),
    "an inline conda specification": Case(f"{IMAGE}conda_file: {{dependencies: [python=3.11]}}\n"),
    "a build context": Case(BUILD, files={"context/Dockerfile": "ARG A=1\nFROM ubuntu:24.04 AS base\nFROM base\n"}),
    "another name of the Dockerfile": Case(
        BUILD.replace("context}", "context, dockerfile_path: docker/gpu}"), files={"context/docker/gpu": "FROM a:1\n"}
    ),
    "a template of a tool": Case('name: "{{asset.name}}"\nbuild: {path: "{{image.context.path}}"}\n'),
    "no name": Case(IMAGE.replace("name: theirs\n", SCHEMA), ["environment-name e.yaml:1"]),
    "neither image nor build": Case(f"{SCHEMA}name: theirs\n", ["environment-source e.yaml:1"]),
    "image and build": Case(
        f"{BUILD}image: a:1\n", ["environment-source e.yaml:2"], {"context/Dockerfile": "FROM a:1\n"}
    ),
    "no folder": Case(BUILD, ["environment-context e.yaml:2"]),
    "no Dockerfile": Case(BUILD, ["environment-context e.yaml:2"], {"context/x": ""}),
    "no FROM": Case(BUILD, ["dockerfile context/Dockerfile"], {"context/Dockerfile": "RUN true\n"}),
    "an unknown key": Case(f"{IMAGE}conda_fil: x\n", ["environment-refused e.yaml:3, key conda_fil"]),
    "what azure-ai-ml refuses": Case(f"{IMAGE}tags: 3\n", ["environment-refused e.yaml:3, key tags"]),
    "no YAML": Case("name: [\nimage: x", ["environment-refused e.yaml:2"]),
    "no conda file": Case(f"{IMAGE}conda_file: conda.yml\n", ["conda-file e.yaml:3"]),
    "a conda file that is a list": Case(
        f"{IMAGE}conda_file: conda.yml\n", ["conda-file conda.yml"], {"conda.yml": "[a, b]\n"}
    ),
    "no dependencies": Case(
        f"{IMAGE}conda_file: conda.yml\n", ["conda-dependencies conda.yml"], {"conda.yml": "name: x\n"}
    ),
    "a dependency that is none": Case(
        f"{IMAGE}conda_file: conda.yml\n",
        ["conda-dependencies conda.yml:2"],
        {"conda.yml": "name: x\ndependencies: [python=3.11, {npm: [a]}]\n"},
    ),
    "a conda file with a build context": Case(
        f"{BUILD}conda_file: conda.yml\n",
        ["conda-with-build e.yaml:3"],
        {"conda.yml": CONDA, "context/Dockerfile": "FROM a:1\n"},
    ),
    "an image that moves": Case("name: theirs\nimage: pytorch/pytorch:latest\n", ["latest-image e.yaml:2"]),
    "a base image that moves": Case(
        BUILD,
        ["latest-image context/Dockerfile:2"],
        {"context/Dockerfile": "FROM a:1 AS base\nFROM --platform=linux/amd64 ubuntu AS b\nFROM base\nFROM $X\n"},
    ),
    "a secret": Case(
        BUILD,
        ["image-secret context/Dockerfile:2"],
        {"context/Dockerfile": "FROM a:1\nENV API_TOKEN=abcdefgh12345678\n"},
    ),
}  # fmt: skip


def write(folder: Path, case: Case) -> Path:
    for name, text in {"e.yaml": case.text, **case.files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "e.yaml"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each(tmp_path: Path, case: Case) -> None:
    _, found = check_files(write(tmp_path, case))
    problems = (*found.errors, *found.warnings, *found.advice)
    assert [f"{problem.rule} {problem.where.removeprefix(f'{tmp_path}/')}" for problem in problems] == case.found
    levels = {rule.code: rule.level.name for rule in Rule.all_about("environment")}
    assert all(levels[problem.rule] == "ERROR" for problem in found.errors)
    assert not any(levels[problem.rule] == "ERROR" for problem in (*found.warnings, *found.advice))


def test_each_rule_has_a_case() -> None:
    tried = {found.partition(" ")[0] for case in CASES.values() for found in case.found}
    assert {rule.code for rule in Rule.all_about("environment")} == tried


def test_a_folder_at_any_depth_by_what_its_files_say(tmp_path: Path) -> None:
    files = {
        "a/env.yml": IMAGE,
        "b/c/cpu.yaml": f"{SCHEMA}name: b\nimage: a:latest # allranks: ignore latest-image\n",
        "b/conda.yaml": f"name: x\n{CONDA}",
        "job.yml": "type: command\nname: x\nimage: y\ncommand: z\n",
        "compose.yml": "name: x\nservices: {}\nimage: y\n",
        ".hidden/env.yml": "name: a\nimage: b\nbuild: c\n",
        "wrong.yml": "name: [",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found_files, found = check_files(tmp_path)
    assert [str(file.relative_to(tmp_path)) for file in found_files] == ["a/env.yml", "b/c/cpu.yaml"]
    assert (found.errors, found.warnings, found.advice) == ((), (), ())


def test_the_command(tmp_path: Path) -> None:
    path = str(write(tmp_path, CASES["an image that moves"]))
    good = CliRunner().invoke(app, ["environments", "check", path])
    assert (good.exit_code, good.stdout) == (0, f"{path}: no problems\n")
    strict = CliRunner().invoke(app, ["environments", "check", "--strict", path])
    assert isinstance(strict.exception, InputError)
    done = CliRunner().invoke(app, ["environments", "check", "--json", path])
    assert done.exit_code == 0
    assert [warning["rule"] for warning in json.loads(done.stdout)["warnings"]] == ["latest-image"]
    bad = CliRunner().invoke(app, ["environments", "check", "--json", str(write(tmp_path, CASES["no folder"]).parent)])
    assert bad.exit_code == 2


@pytest.mark.parametrize(("name", "said"), [("./nothing", "no such file"), (".", "contains no environment")])
def test_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["environments", "check", name])
    assert said in str(done.exception)
