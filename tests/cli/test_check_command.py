"""`allranks check` with several files, and the messages about a file's keys."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from allranks.cli.main import app
from allranks.errors import InputError, Problem
from allranks_command import called, write, write_job

PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:cpu}
jobs:
  a: {type: command, command: echo hi, environment: azureml:base:1}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path, "echo a", "a.yml")
    write_job(tmp_path, "echo b", "b.yml")
    write_job(tmp_path, "echo b", "wrong.yml", computte="gpu")
    return tmp_path


def check(*words: str) -> Result:
    return CliRunner().invoke(app, ["check", *words])


def problems(done: Result) -> tuple[Problem, ...]:
    assert isinstance(done.exception, InputError), done.output
    return done.exception.problems


def test_a_line_for_each_file(folder: Path) -> None:
    done = check("a.yml", "b.yml", "a.yml")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [f"{name}.yml: {name}, 1 step, no problems" for name in "aba"]


def test_one_wrong_file_among_several(folder: Path) -> None:
    (folder / "empty").mkdir()
    done = check("a.yml", "wrong.yml", "gone.yml", "empty")
    assert done.stdout.splitlines() == [
        "a.yml: a, 1 step, no problems",
        "wrong.yml: 1 problem",
        "gone.yml: 1 problem",
        "empty: 1 problem",
    ]
    assert [problem.where for problem in problems(done)] == ["key computte (wrong.yml:1)", "gone.yml", "empty"]


def test_several_as_json(folder: Path) -> None:
    done = check("a.yml", "wrong.yml", "--json")
    right, wrong = json.loads(done.stdout)
    assert done.exit_code == 2
    assert (right["file"], right["problems"]) == ("a.yml", [])
    assert wrong["problems"][0]["fix"] == "did you mean compute?"


def test_values_are_for_one_file(folder: Path) -> None:
    (problem,) = problems(check("a.yml", "b.yml", "--set", "x=1"))
    assert (problem.where, problem.found) == ("--set", "2 files are given")


@pytest.mark.parametrize(
    ("text", "where", "found", "expected", "fix"),
    [
        (
            "command: ls\nenvironment: azureml:x:1\ndistribution:\n  type: jaxx\n",
            "key distribution.type (x.yml:4)",
            "'jaxx'",
            "one of pytorch, tensorflow, mpi, ray",
            "",
        ),
        (
            (
                "type: pipeline\njobs:\n  a:\n    command: ls\n    environment: azureml:x:1\n    distribution:\n"
                "      type: pytorhc\n"
            ),
            "step a, key distribution.type (x.yml:7)",
            "'pytorhc'",
            "one of pytorch, tensorflow, mpi, ray",
            "did you mean pytorch?",
        ),
        (
            "command: ls\nenvironment: azureml:x:1\nresources: 3\n",
            "key resources (x.yml:3)",
            "3",
            "keys and values",
            "",
        ),
    ],
)
def test_a_message_names_the_line_and_everything_that_is_allowed(
    folder: Path, text: str, where: str, found: str, expected: str, fix: str
) -> None:
    write(folder, "x.yml", text)
    (problem,) = problems(check("x.yml"))
    assert (problem.where, problem.found, problem.expected, problem.fix) == (where, found, expected, fix)


def test_a_component_with_a_misspelt_key_and_an_unknown_distribution(folder: Path) -> None:
    text = "type: command\nname: x\nversion: '1'\ncommand: ls\nenviroment: azureml:x:1\ndistribution:\n  type: jaxx\n"
    path = write(folder, "component.yaml", text)
    found = {problem.where: problem for problem in problems(check("component.yaml"))}
    assert found[f"{path.name}:5, key enviroment"].fix == "did you mean environment?"
    assert found[f"{path.name}:7, key distribution.type"].expected == "one of mpi, tensorflow, pytorch, ray"


def test_a_device_is_no_misspelt_name(folder: Path) -> None:
    (problem,) = problems(check("/dev/null"))
    assert (problem.where, problem.found, problem.fix) == ("/dev/null", "it is not a regular file", "")


def test_names_with_spaces_and_umlauts(folder: Path) -> None:
    place = folder / "Erste Übung"
    write_job(place, "echo ${{inputs.wert}}", "mein job – 訓練.yml", inputs={"wert": 1})
    code = "from azure.ai.ml import command\njob = command(command='ls', environment='azureml:cpu:1')\n"
    write(place, "größe 2.py", code)
    names = ["Erste Übung/mein job – 訓練.yml", "Erste Übung/größe 2.py"]
    done = check(*names)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        f"{names[0]}: mein_job, 1 step, no problems",
        f"{names[1]}: grosse_2, 1 step, no problems",
    ]


@pytest.mark.slow
def test_files_with_spaces_and_umlauts_run_and_are_printed(folder: Path) -> None:
    place = folder / "Erste Übung"
    write(place, "der code/größe 訓練.txt", "Maße\n")
    command = "cat 'größe 訓練.txt' ${{inputs.daten}} && cat größe* > ${{outputs.ergebnis}}/'Maß 2.txt'"
    write(place, "daten – 2/übung.csv", "Wörter\n")
    data = {"type": "uri_file", "path": "daten – 2/übung.csv"}
    outputs = {"ergebnis": {"type": "uri_folder"}}
    write_job(place, command, "mein job.yml", code="der code", inputs={"daten": data}, outputs=outputs)
    write(place, "der code/.env", "TOKEN=1\n")
    line = "left out of the code of mein_job: .env (settings with secrets)"
    checked = check("Erste Übung/mein job.yml")
    assert (checked.exit_code, line in checked.stderr) == (0, True)
    assert json.loads(check("Erste Übung/mein job.yml", "--json").stdout)["left_out"] == [line]
    done = called("run", "Erste Übung/mein job.yml", "--instances", "loopback", "--json", folder=folder)
    assert done.code == 0, done.err
    assert line in done.json["notes"]
    (step,) = done.json["steps"]
    (output,) = step["outputs"]
    assert (Path(output["path"]) / "Maß 2.txt").read_text(encoding="utf-8") == "Maße\n"
    shown = called("logs", "mein_job", folder=folder)
    assert shown.out == "Maße\nWörter\n"


def test_a_schedule_is_checked_by_itself_and_in_its_folder(folder: Path) -> None:
    trigger = "trigger: {type: recurrence, frequency: FREQUENCY, interval: 1, schedule: {hours: [4], minutes: [0]}}\n"
    text = f"name: nightly\n{trigger}create_job: ./pipeline.yml\n"
    write(folder, "all/pipeline.yml", PIPELINE)
    write(folder, "all/right.yml", text.replace("FREQUENCY", "day"))
    done = check("all")
    assert (done.exit_code, done.stdout) == (0, "all: 1 job, 1 schedule, no problems\n")
    write(folder, "all/nightly.yml", text.replace("nightly", "other").replace("FREQUENCY", "daily"))
    for target in ("all/nightly.yml", "all"):
        (problem,) = problems(check(target))
        assert problem.where.endswith("nightly.yml:2)")
        assert (problem.found, problem.fix) == ("'daily'", "did you mean day?")


def test_what_this_machine_lacks_is_no_mistake_of_the_file(folder: Path) -> None:
    write(folder / "code", "train.py", "import no_such_package\n")
    write_job(folder, "python train.py", "c.yml", code="./code")
    done = check("c.yml")
    assert (done.exit_code, done.stdout) == (0, "c.yml: c, 1 step, no problems, cannot run on this machine\n")
    assert "this machine lacks what these steps need" in done.stderr
    (lacking,) = json.loads(check("c.yml", "--json").stdout)["machine"]
    assert lacking["found"] == "no Python package no_such_package, which train.py:1 needs"
    ran = CliRunner().invoke(app, ["run", "c.yml"])
    (problem,) = problems(ran)
    assert problem.found == lacking["found"]
    assert not (folder / ".allranks").exists()
